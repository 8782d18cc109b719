//===- Matrices.cpp - What ops on matrices do -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matrices.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

using Parsed = FailureOr<std::optional<MatrixInstruction>>;

/// The parts of a structure, or the type itself.
static SmallVector<Type, 4> getParts(Type type) {
  if (auto structure = dyn_cast<LLVM::LLVMStructType>(type))
    return SmallVector<Type, 4>(structure.getBody());
  return {type};
}

//===----------------------------------------------------------------------===//
// ldmatrix, stmatrix
//===----------------------------------------------------------------------===//

/// The layout of one form; none for those that have no lowering.
static std::optional<uint32_t> getLayout(NVVM::LdStMatrixShapeAttr shape,
                                         NVVM::LdStMatrixEltType element,
                                         NVVM::MMALayout layout) {
  bool isTransposed = layout == NVVM::MMALayout::col;
  if (element == NVVM::LdStMatrixEltType::B16)
    return isTransposed ? KVCacheMatrixB16Transposed : KVCacheMatrixB16;
  if (element == NVVM::LdStMatrixEltType::B8 && isTransposed)
    return KVCacheMatrixB8Transposed;
  bool hasEightRows = shape.getM() == 8 && !isTransposed;
  if (element == NVVM::LdStMatrixEltType::B8X16_B6X16_P32 && hasEightRows)
    return KVCacheMatrixB6;
  if (element == NVVM::LdStMatrixEltType::B8X16_B4X16_P64 && hasEightRows)
    return KVCacheMatrixB4;
  return std::nullopt;
}

static LogicalResult failForm(Operation *op, NVVM::LdStMatrixShapeAttr shape,
                              NVVM::LdStMatrixEltType element) {
  return op->emitOpError("of ")
         << shape.getM() << "x" << shape.getN() << " matrices of "
         << NVVM::stringifyLdStMatrixEltType(element)
         << " has no lowering for the emulator";
}

static Parsed parseLoad(NVVM::LdMatrixOp op) {
  std::optional<uint32_t> layout =
      getLayout(op.getShape(), op.getEltType(), op.getLayout());
  if (!layout)
    return failForm(op, op.getShape(), op.getEltType());
  MatrixInstruction load;
  load.kind = KVCacheMatrixLoad;
  load.layout = *layout;
  load.count = op.getNum();
  load.row = op.getPtr();
  load.results = getParts(op.getType());
  return std::optional(load);
}

static Parsed parseStore(NVVM::StMatrixOp op) {
  std::optional<uint32_t> layout =
      getLayout(op.getShape(), op.getEltType(), op.getLayout());
  if (!layout)
    return failForm(op, op.getShape(), op.getEltType());
  MatrixInstruction store;
  store.kind = KVCacheMatrixStore;
  store.layout = *layout;
  store.count = op.getSources().size();
  store.row = op.getPtr();
  store.a = op.getSources();
  return std::optional(store);
}

//===----------------------------------------------------------------------===//
// mma
//===----------------------------------------------------------------------===//

/// The element types of A and B, then those of C and D.
static constexpr MatrixElement kElements[] = {
    {"f16", KVCacheElementF16, 16},   {"bf16", KVCacheElementBF16, 16},
    {"tf32", KVCacheElementTF32, 32}, {"e4m3", KVCacheElementE4M3, 8},
    {"e5m2", KVCacheElementE5M2, 8},  {"s8", KVCacheElementS8, 8},
    {"u8", KVCacheElementU8, 8},      {"s4", KVCacheElementS4, 4},
    {"u4", KVCacheElementU4, 4},      {"f32", KVCacheElementF32, 32},
    {"s32", KVCacheElementS32, 32}};

const MatrixElement *kvcache::findElement(StringRef name) {
  const MatrixElement *found =
      llvm::find_if(kElements, [&](const MatrixElement &element) {
        return element.name == name;
      });
  return found == std::end(kElements) ? nullptr : found;
}

namespace {
/// An mma, by what its name in PTX has.
struct Mma {
  int64_t m, n, k;
  StringRef a, b, c, d;
  bool isSaturated = false;
  ValueRange operandsA, operandsB, operandsC;
  SmallVector<Type, 4> results;
};
} // namespace

static constexpr int64_t kRegisterBits = 32;

bool kvcache::isMatrixRegister(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  Type part = vector ? vector.getElementType() : type;
  return part.isIntOrFloat() &&
         part.getIntOrFloatBitWidth() *
                 (vector ? vector.getNumElements() : 1) ==
             kRegisterBits;
}

/// Whether the registers of all lanes hold just the elements of a matrix.
static bool isFragment(TypeRange registers, int64_t rows, int64_t columns,
                       const MatrixElement &element) {
  constexpr int64_t lanes = 32;
  return llvm::all_of(registers, isMatrixRegister) &&
         static_cast<int64_t>(registers.size()) * lanes * kRegisterBits ==
             rows * columns * element.bits;
}

static bool isInteger(const MatrixElement &element) {
  return element.kind == KVCacheElementS8 || element.kind == KVCacheElementU8 ||
         element.kind == KVCacheElementS4 || element.kind == KVCacheElementU4;
}

/// The shapes whose fragments follow one rule: all of m16n8 and m8n8 whose
/// lanes have whole registers of A. (m8n8k4 has a rule of its own.)
static bool isKnown(const Mma &mma, const MatrixElement &a,
                    const MatrixElement &b, const MatrixElement &c,
                    const MatrixElement &d) {
  constexpr int64_t rowBits = 128;
  int64_t bits = mma.k * a.bits;
  bool isShape = mma.n == 8 &&
                 ((mma.m == 16 && (bits == rowBits || bits == 2 * rowBits)) ||
                  (mma.m == 8 && bits == rowBits && isInteger(a)));
  auto isSum = [&](const MatrixElement &element) {
    return isInteger(a) ? element.kind == KVCacheElementS32
                        : element.kind == KVCacheElementF32 ||
                              element.kind == KVCacheElementF16;
  };
  return isShape && a.bits == b.bits && isInteger(a) == isInteger(b) &&
         isSum(c) && isSum(d) &&
         isFragment(mma.operandsA.getTypes(), mma.m, mma.k, a) &&
         isFragment(mma.operandsB.getTypes(), mma.k, mma.n, b) &&
         isFragment(mma.operandsC.getTypes(), mma.m, mma.n, c) &&
         isFragment(mma.results, mma.m, mma.n, d);
}

static Parsed parseMma(Operation *op, const Mma &mma) {
  const MatrixElement *elements[] = {findElement(mma.a), findElement(mma.b),
                                     findElement(mma.c), findElement(mma.d)};
  auto [a, b, c, d] = elements;
  if (!a || !b || !c || !d || !isKnown(mma, *a, *b, *c, *d))
    return op->emitOpError("of m")
           << mma.m << "n" << mma.n << "k" << mma.k << " on " << mma.a
           << " and " << mma.b << ", from " << mma.c << " to " << mma.d
           << ", has no lowering for the emulator";
  MatrixInstruction multiply;
  multiply.kind = KVCacheMatrixMultiply;
  multiply.mma = {static_cast<uint32_t>(mma.m),
                  static_cast<uint32_t>(mma.n),
                  static_cast<uint32_t>(mma.k),
                  a->kind,
                  b->kind,
                  c->kind,
                  d->kind,
                  mma.isSaturated};
  multiply.a = mma.operandsA;
  multiply.b = mma.operandsB;
  multiply.c = mma.operandsC;
  multiply.results = mma.results;
  return std::optional(multiply);
}

static Parsed parseMmaSync(NVVM::MmaOp op) {
  auto getType = [&](std::optional<NVVM::MMATypes> given, Value operand) {
    if (!given)
      given = NVVM::MmaOp::inferOperandMMAType(operand.getType(),
                                               /*isAccumulator=*/false);
    return given ? NVVM::stringifyMMATypes(*given) : StringRef("unknown");
  };
  Mma mma;
  mma.m = op.getShape().getM();
  mma.n = op.getShape().getN();
  mma.k = op.getShape().getK();
  mma.a = getType(op.getMultiplicandAPtxType(), op.getOperandA().front());
  mma.b = getType(op.getMultiplicandBPtxType(), op.getOperandB().front());
  mma.c = NVVM::stringifyMMATypes(op.accumPtxType());
  mma.d = NVVM::stringifyMMATypes(op.resultPtxType());
  mma.isSaturated =
      op.getIntOverflowBehavior() == NVVM::MMAIntOverflow::satfinite;
  mma.operandsA = op.getOperandA();
  mma.operandsB = op.getOperandB();
  mma.operandsC = op.getOperandC();
  mma.results = getParts(op.getType());
  return parseMma(op, mma);
}

/// Reads a shape such as `m16n8k32`.
static bool parseShape(StringRef text, Mma &mma) {
  auto read = [&](StringRef letter, int64_t &side) {
    return text.consume_front(letter) && !text.consumeInteger(10, side);
  };
  return read("m", mma.m) && read("n", mma.n) && read("k", mma.k) &&
         text.empty();
}

/// mma of fp8, which has no op: llvm.nvvm.mma.<shape>.row.col.<d>.<a>.<b>.<c>.
/// None for other intrinsics.
static std::optional<Mma> parseIntrinsic(LLVM::CallIntrinsicOp op) {
  SmallVector<StringRef> parts;
  op.getIntrin().split(parts, '.');
  constexpr size_t numParts = 10;
  Mma mma;
  if (parts.size() != numParts || parts[0] != "llvm" || parts[1] != "nvvm" ||
      parts[2] != "mma" || parts[4] != "row" || parts[5] != "col" ||
      !parseShape(parts[3], mma))
    return std::nullopt;
  mma.d = parts[6];
  mma.a = parts[7];
  mma.b = parts[8];
  mma.c = parts[9];
  // How many registers each fragment has follows from its elements.
  ValueRange rest = op.getArgs();
  auto take = [&](int64_t rows, int64_t columns, StringRef name) {
    const MatrixElement *element = findElement(name);
    constexpr int64_t warpBits = 1024;
    size_t count = element ? rows * columns * element->bits / warpBits : 0;
    ValueRange taken = rest.take_front(std::min(count, rest.size()));
    rest = rest.drop_front(taken.size());
    return taken;
  };
  mma.operandsA = take(mma.m, mma.k, mma.a);
  mma.operandsB = take(mma.k, mma.n, mma.b);
  mma.operandsC = take(mma.m, mma.n, mma.c);
  if (!rest.empty() || op->getNumResults() != 1)
    return std::nullopt;
  mma.results = getParts(op->getResult(0).getType());
  return mma;
}

Parsed kvcache::parseMatrixInstruction(Operation *op) {
  Parsed parsed =
      llvm::TypeSwitch<Operation *, Parsed>(op)
          .Case([](NVVM::LdMatrixOp op) { return parseLoad(op); })
          .Case([](NVVM::StMatrixOp op) { return parseStore(op); })
          .Case([](NVVM::MmaOp op) { return parseMmaSync(op); })
          .Case([](LLVM::CallIntrinsicOp op) -> Parsed {
            std::optional<Mma> mma = parseIntrinsic(op);
            return mma ? parseMma(op, *mma) : Parsed(std::nullopt);
          })
          .Default([](Operation *) { return Parsed(std::nullopt); });
  if (succeeded(parsed) && *parsed)
    (*parsed)->op = op;
  return parsed;
}
