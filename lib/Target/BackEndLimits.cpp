//===- BackEndLimits.cpp - What LLVM compiles for no chip -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The NVPTX back end ends the process on these, most of them without saying
// where they are.
//
//===----------------------------------------------------------------------===//

#include "BackEndLimits.h"

#include "kvcache/Support/Nesting.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Intrinsics.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The name of an intrinsic of all targets, such as `tanh`; empty for others.
static StringRef getIntrinsicName(Operation *op) {
  StringRef name;
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op)) {
    name = call.getIntrin();
    return name.consume_front("llvm.") ? name.split('.').first : StringRef();
  }
  name = op->getName().getStringRef();
  return name.consume_front("llvm.intr.") ? name : StringRef();
}

/// Intrinsics that other targets call a C library for. PTX has approximations
/// of a few, in at most 32 bits.
static LogicalResult checkMath(Operation *op) {
  enum Instruction { None, Approximate, UpTo32Bits };
  std::optional<Instruction> instruction =
      llvm::StringSwitch<std::optional<Instruction>>(getIntrinsicName(op))
          .Cases({"tan", "asin", "acos", "atan", "atan2", "sinh", "cosh"}, None)
          .Cases({"exp", "exp10", "log", "log2", "log10", "pow", "powi"}, None)
          .Cases({"lrint", "llrint", "lround", "llround"}, None)
          .Cases({"sin", "cos", "tanh"}, Approximate)
          .Case("exp2", UpTo32Bits)
          .Default(std::nullopt);
  if (!instruction || op->getNumOperands() == 0)
    return success();
  Type type = getElementTypeOrSelf(op->getOperandTypes().front());
  if (*instruction == None || type.isF64())
    return op->emitOpError("has no instruction in PTX for ")
           << type << "; ops of the math dialect call libdevice instead";
  auto fastmath = dyn_cast<LLVM::FastmathFlagsInterface>(op);
  if (*instruction == Approximate && fastmath &&
      !bitEnumContainsAll(fastmath.getFastmathAttr().getValue(),
                          LLVM::FastmathFlags::afn))
    return op->emitOpError("has only an approximation in PTX, which the "
                           "fast-math flag 'afn' allows; ops of the math "
                           "dialect call libdevice instead");
  return success();
}

static LogicalResult checkIntrinsic(Operation *op) {
  auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
  if (!call || call.getIntrin().starts_with("llvm.nvvm."))
    return success();
  if (llvm::Intrinsic::isTargetIntrinsic(
          llvm::Intrinsic::lookupIntrinsicID(call.getIntrin())))
    return op->emitOpError("calls an intrinsic of another target than NVPTX: ")
           << call.getIntrinAttr();
  return success();
}

static LogicalResult checkTypes(Operation *op) {
  for (Type type : op->getResultTypes()) {
    if (auto vector = dyn_cast<VectorType>(type); vector && vector.isScalable())
      return op->emitOpError("has a result of ")
             << type << ", but PTX has no vectors of unknown size";
    Type element = getElementTypeOrSelf(type);
    if (auto number = dyn_cast<FloatType>(element);
        number && number.getWidth() > 64)
      return op->emitOpError("has a result of ")
             << type << ", but PTX has floats of at most 64 bits";
    // NVPTX's address spaces are those of NVVM.
    if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(element);
        pointer && !NVVM::symbolizeNVVMMemorySpace(pointer.getAddressSpace()))
      return op->emitOpError("has a result of ")
             << type << ", but PTX has no such address space";
  }
  return success();
}

/// Between floats and integers of more than 64 bits there are only functions.
static LogicalResult checkConversion(Operation *op) {
  if (!isa<LLVM::FPToSIOp, LLVM::FPToUIOp, LLVM::SIToFPOp, LLVM::UIToFPOp>(op))
    return success();
  for (Type type : {op->getOperandTypes()[0], op->getResultTypes()[0]})
    if (auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
        integer && integer.getWidth() > 64)
      return op->emitOpError("converts ")
             << integer << ", but PTX converts at most 64 bits";
  return success();
}

static LogicalResult checkAtomic(Operation *op, StringRef scope,
                                 LLVM::AtomicOrdering ordering, Type type) {
  if (!llvm::is_contained({"", "singlethread", "block", "cluster", "device"},
                          scope))
    return op->emitOpError("expects the scope 'singlethread', 'block', "
                           "'cluster', 'device' or none, got '")
           << scope << "'";
  if (ordering == LLVM::AtomicOrdering::seq_cst && type && type.isInteger(128))
    return op->emitOpError("is sequentially consistent, which PTX has for at "
                           "most 64 bits");
  return success();
}

static LogicalResult checkAtomic(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([](LLVM::FenceOp op) {
        return checkAtomic(op, op.getSyncscope().value_or(""), op.getOrdering(),
                           Type());
      })
      .Case([](LLVM::LoadOp op) {
        return checkAtomic(op, op.getSyncscope().value_or(""), op.getOrdering(),
                           op.getType());
      })
      .Case([](LLVM::StoreOp op) {
        return checkAtomic(op, op.getSyncscope().value_or(""), op.getOrdering(),
                           op.getValue().getType());
      })
      .Case([](LLVM::AtomicRMWOp op) {
        return checkAtomic(op, op.getSyncscope().value_or(""), op.getOrdering(),
                           op.getType());
      })
      .Case([](LLVM::AtomicCmpXchgOp op) {
        return checkAtomic(op, op.getSyncscope().value_or(""),
                           LLVM::AtomicOrdering::monotonic, Type());
      })
      .Default(success());
}

/// "wgmma.mma_async", .b1: its operator, .and.popc, is not in the text that
/// MLIR writes.
static LogicalResult checkBits(NVVM::WgmmaMmaAsyncOp op) {
  if (op.getTypeA() == NVVM::WGMMATypes::b1)
    return op.emitOpError("has no instruction in PTX for single bits without "
                          "an operator; write it as inline PTX");
  return success();
}

/// The intrinsic of a product of matrices on the tensor cores, from its types,
/// shape, layouts and operator; none where LLVM has none, or where the op
/// leaves a type out.
template <typename Op> static llvm::Intrinsic::ID getProductIntrinsic(Op op) {
  std::optional<NVVM::MMATypes> a = op.getMultiplicandAPtxType();
  std::optional<NVVM::MMATypes> b = op.getMultiplicandBPtxType();
  std::optional<NVVM::MMATypes> result = NVVM::MmaOp::inferOperandMMAType(
      op.getRes().getType(), /*isAccumulator=*/true);
  if (!a || !b || !result)
    return llvm::Intrinsic::not_intrinsic;
  NVVM::MMAShapeAttr shape = op.getShape();
  int64_t m = shape.getM(), n = shape.getN(), k = shape.getK();
  if constexpr (std::is_same_v<Op, NVVM::MmaOp>)
    return Op::getIntrinsicID(
        m, n, k, op.getB1Op(), op.getIntOverflowBehavior(), op.getLayoutA(),
        op.getLayoutB(), *a, *b, op.accumPtxType(), *result);
  else if constexpr (std::is_same_v<Op, NVVM::MmaSpOp>)
    return Op::getIntrinsicID(m, n, k, op.getIntOverflowBehavior(),
                              op.getOrderedMetadata(), op.getKind(), *a, *b,
                              op.accumPtxType(), *result);
  else
    return Op::getIntrinsicID(m, n, k, *a, *b, *result, op.getScaleVecSize(),
                              op.getBlockScaleFormat(), op.getKind());
}

/// Upstream verifies the type of A, and registers, but not all types together;
/// the translation to LLVM IR ends the process on a product without an
/// intrinsic.
static LogicalResult checkProduct(Operation *op) {
  auto check = [](auto op) -> LogicalResult {
    if (getProductIntrinsic(op) != llvm::Intrinsic::not_intrinsic)
      return success();
    return op.emitOpError("has no instruction in PTX for its shape, layouts, "
                          "types ('multiplicandAPtxType' and "
                          "'multiplicandBPtxType' among them) and operator "
                          "together");
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<NVVM::MmaOp, NVVM::MmaSpOp, NVVM::MmaBlockScaleOp,
            NVVM::MmaSpBlockScaleOp>(check)
      .Case([](NVVM::WgmmaMmaAsyncOp op) { return checkBits(op); })
      .Default(success());
}

/// Whether a register of PTX can have values of a type: scalars, and vectors of
/// 32 bits.
static bool isRegister(Type type) {
  if (isa<LLVM::LLVMPointerType, MemRefType>(type))
    return true;
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.hasStaticShape() && vector.getElementType().isIntOrFloat() &&
           vector.getNumElements() * vector.getElementTypeBitWidth() == 32;
  return type.isIntOrFloat() &&
         llvm::is_contained({1u, 8u, 16u, 32u, 64u, 128u},
                            type.getIntOrFloatBitWidth());
}

static LogicalResult checkRegister(Operation *op, Type type) {
  if (isRegister(type))
    return success();
  return op->emitOpError("has a register of ")
         << type << ", but PTX has those of scalars, and of vectors of 32 bits";
}

/// The first `$` of the text of inline assembly after which LLVM expects
/// something else, to its end: an operand, `$0`, `${0}` or `${0:x}`, one of the
/// texts that LLVM has, `${:uid}`, an escape, `$$`, or variants, `$(a$|b$)`.
static StringRef findMistake(StringRef text) {
  bool isInVariants = false;
  while (true) {
    StringRef rest = text = text.drop_until([](char c) { return c == '$'; });
    if (!rest.consume_front("$"))
      return {};
    bool isOpening = rest.starts_with("(");
    if (isOpening && isInVariants)
      return text;
    if (isOpening || rest.starts_with(")"))
      isInVariants = isOpening;
    if (!rest.empty() && StringRef("$(|)").contains(rest.front())) {
      text = rest.drop_front();
      continue;
    }
    bool isBraced = rest.consume_front("{");
    if (isBraced && rest.consume_front(":")) {
      auto [name, following] = rest.split('}');
      if (!rest.contains('}') ||
          !llvm::is_contained({"private", "comment", "uid"}, name))
        return text;
      text = following;
      continue;
    }
    unsigned number;
    if (rest.consumeInteger(10, number))
      return text;
    if (isBraced) {
      if (rest.consume_front(":"))
        rest = rest.drop_front(rest.empty() ? 0 : 1);
      if (!rest.consume_front("}"))
        return text;
    }
    text = rest;
  }
}

/// Inline PTX: values without a register, text that LLVM does not take, and
/// results of another number than the constraints say.
static LogicalResult checkAssembly(Operation *op) {
  if (auto ptx = dyn_cast<NVVM::InlinePtxOp>(op)) {
    for (TypeRange types :
         {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
      for (Type type : types)
        if (failed(checkRegister(op, type)))
          return failure();
    return success();
  }
  auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
  if (!assembly)
    return success();
  if (StringRef mistake = findMistake(assembly.getAsmString());
      !mistake.empty())
    return op->emitOpError("expects an operand such as $0 or ${0}, or $$ for "
                           "the character, at '")
           << mistake << "'";
  if (!assembly.getRes())
    return success();
  SmallVector<StringRef> constraints;
  assembly.getConstraints().split(constraints, ',');
  int64_t numOutputs = llvm::count_if(
      constraints, [](StringRef text) { return text.starts_with("="); });
  Type type = assembly.getRes().getType();
  auto fields = dyn_cast<LLVM::LLVMStructType>(type);
  SmallVector<Type> types = {type};
  if (fields)
    types = llvm::to_vector(fields.getBody());
  if (static_cast<int64_t>(types.size()) != numOutputs ||
      (fields && numOutputs < 2))
    return op->emitOpError("has a result of ")
           << type << ", but " << numOutputs << " outputs in its constraints";
  if (fields)
    return success();
  if (isa<LLVM::LLVMArrayType>(type) ||
      (isa<IntegerType>(type) && !isRegister(type)))
    return checkRegister(op, type);
  return success();
}

/// Upstream makes a result of a reduction, and none without one.
static LogicalResult checkBarrier(Operation *op) {
  auto barrier = dyn_cast<NVVM::BarrierOp>(op);
  if (!barrier || !barrier.getRes() || barrier.getReductionOp())
    return success();
  return op->emitOpError("has a result, but no reduction");
}

/// Values are of functions. The translation to LLVM IR ends the process on
/// those of a module.
static LogicalResult checkPlace(Operation *op) {
  if (op->getNumResults() &&
      isa_and_nonnull<gpu::GPUModuleOp>(op->getParentOp()))
    return checkInFunction(op);
  return success();
}

static LogicalResult checkExceptions(Operation *op) {
  auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
  if (isa<LLVM::InvokeOp, LLVM::LandingpadOp, LLVM::ResumeOp>(op) ||
      (function && function.getPersonality()))
    return op->emitOpError("is for exceptions, which PTX doesn't have");
  return success();
}

/// Shared memory and the memory of a thread begin without values.
static LogicalResult checkInitialValue(Operation *op) {
  auto global = dyn_cast<LLVM::GlobalOp>(op);
  if (!global || llvm::is_contained({0u, 1u, 4u}, global.getAddrSpace()))
    return success();
  Attribute value = global.getValueOrNull();
  if (Block *initializer = global.getInitializerBlock()) {
    Operation *last =
        initializer->getTerminator()->getOperand(0).getDefiningOp();
    if (isa_and_nonnull<LLVM::UndefOp, LLVM::PoisonOp, LLVM::ZeroOp>(last))
      return success();
  } else if (!value ||
             isa<LLVM::UndefAttr, LLVM::PoisonAttr, LLVM::ZeroAttr>(value)) {
    return success();
  }
  return op->emitOpError("has an initial value, but PTX has those only in "
                         "global and constant memory");
}

/// LLVM makes identifiers of the names of what a module has for itself.
static LogicalResult checkName(Operation *op) {
  auto symbol = dyn_cast<SymbolOpInterface>(op);
  auto linkage = op->getAttrOfType<LLVM::LinkageAttr>("linkage");
  if (!symbol || !linkage || symbol.getName().starts_with("llvm.") ||
      llvm::is_contained({LLVM::Linkage::Internal, LLVM::Linkage::Private},
                         linkage.getLinkage()) ||
      isPTXIdentifier(symbol.getName()))
    return success();
  return op->emitOpError(getIdentifierRule());
}

LogicalResult kvcache::checkBackEndLimits(Operation *op) {
  if (failed(checkPlace(op)))
    return failure();
  if (failed(checkProduct(op)) || failed(checkAssembly(op)) ||
      failed(checkBarrier(op)))
    return failure();
  if (op->getName().getDialectNamespace() != "llvm")
    return success();
  return failure(failed(checkName(op)) || failed(checkExceptions(op)) ||
                 failed(checkInitialValue(op)) || failed(checkMath(op)) ||
                 failed(checkIntrinsic(op)) || failed(checkTypes(op)) ||
                 failed(checkConversion(op)) || failed(checkAtomic(op)));
}
