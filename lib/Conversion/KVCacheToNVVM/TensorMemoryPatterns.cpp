//===- TensorMemoryPatterns.cpp - Lower products in tensor memory ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptors.h"
#include "Patterns.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/Support/Threads.h"
#include "kvcache/TMA/InstructionDescriptor.h"
#include "kvcache/Target/Wgmma.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Addresses: the lane in the high half of a word, the column in the low one
//===----------------------------------------------------------------------===//

static constexpr int64_t kLane = 1 << 16;
/// The lanes of a warp, and those that a fragment has of them.
static constexpr int64_t kWarpLanes = 32, kFragmentLanes = 16;

/// The address of a tile, before or after the lowering of its type.
static Value getAddress(const IndexBuilder &b, Value tile) {
  Type i32 = b.builder.getI32Type();
  auto cast = tile.getDefiningOp<UnrealizedConversionCastOp>();
  if (cast && cast.getOperandTypes() == TypeRange(i32))
    return cast.getOperand(0);
  return UnrealizedConversionCastOp::create(b.builder, b.loc, i32, tile)
      .getResult(0);
}

static Value toPointer(const IndexBuilder &b, Value address) {
  auto tensor = static_cast<unsigned>(NVVM::NVVMMemorySpace::Tensor);
  return LLVM::IntToPtrOp::create(
      b.builder, b.loc,
      LLVM::LLVMPointerType::get(b.builder.getContext(), tensor), address);
}

static Value offset(const IndexBuilder &b, Value address, int64_t distance) {
  return distance == 0 ? address : b.add(address, b.i32(distance));
}

static void emitFence(const IndexBuilder &b, NVVM::Tcgen05FenceKind kind) {
  NVVM::Tcgen05FenceOp::create(b.builder, b.loc, kind);
}

/// Orders what other threads have done before what comes next. PTX ISA, "Memory
/// Consistency Model for 5th generation of TensorCore operations".
static void emitFenceAfterOthers(const IndexBuilder &b) {
  emitFence(b, NVVM::Tcgen05FenceKind::AFTER_THREAD_SYNC);
}

static void emitFenceBeforeOthers(const IndexBuilder &b) {
  emitFence(b, NVVM::Tcgen05FenceKind::BEFORE_THREAD_SYNC);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// (C3) of `tmem_alloc`. PTX ISA, "tcgen05.alloc": none follows the one
/// that gives up the permit, without which other blocks would wait.
static LogicalResult checkAllocation(TmemAllocOp op) {
  if (op->getParentOfType<LoopLikeOpInterface>())
    return op.emitOpError("expects not to be in a loop");
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (!function)
    return op.emitOpError("expects to be in a function");
  TmemAllocOp first;
  function->walk([&](TmemAllocOp other) {
    if (!first)
      first = other;
  });
  if (first == op)
    return success();
  InFlightDiagnostic error =
      op.emitOpError("expects to be the only one of its function");
  error.attachNote(first.getLoc()) << "another one is here";
  return error;
}

/// (C4) of fragments, of constants.
template <typename OpTy> static LogicalResult checkFragment(OpTy op) {
  TmemTileType tile = op.getTile().getType();
  int64_t n = op.countColumns(), unit = tile.getFragmentUnit();
  std::optional<int64_t> half =
      op.getHalf() ? getConstantIntValue(op.getHalf()) : 0;
  if (half && *half != 0 && *half != 1)
    return op.emitOpError("expects 'half' to be 0 or 1, got ") << *half;
  std::optional<int64_t> column = getConstantIntValue(op.getColumn());
  if (!column)
    return success();
  if (*column % unit != 0)
    return op.emitOpError("expects 'column' to be a multiple of ")
           << unit << ", got " << *column;
  if (*column < 0 || *column > tile.getColumns() - n)
    return op.emitOpError("expects 'column' to be from 0 to ")
           << tile.getColumns() - n
           << ", so that the fragment is in the tile, got " << *column;
  int64_t together = tile.getColumns() / (tile.isSplitByLanes() ? 2 : 1);
  if (*column % together + n > together)
    return op.emitOpError("expects the columns from ")
           << *column << " to " << *column + n - 1
           << " to be in one half of the tile (" << together << ")";
  return success();
}

LogicalResult kvcache::checkTensorMemory(Operation *op) {
  if (failed(checkFeature(op, Feature::TensorMemory)))
    return failure();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([](TmemAllocOp op) { return checkAllocation(op); })
      .Case([](TmemMmaOp op) -> LogicalResult {
        if (op.getB().getType().getElementType().isInteger() &&
            failed(checkFeature(op, Feature::TensorIntegers)))
          return failure();
        return checkPlaces(op, op.getParts());
      })
      .Case<TmemLoadOp, TmemStoreOp>([](auto op) { return checkFragment(op); })
      .Default(success());
}

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

namespace {

struct LowerTmemAlloc : OpConversionPattern<TmemAllocOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemAllocOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkTensorMemory(op)))
      return failure();
    if (auto kernel = op->getParentOfType<gpu::GPUFuncOp>())
      allowOneBlock(rewriter, kernel);
    Location loc = op.getLoc();
    IndexBuilder b(rewriter, loc);
    Value columns = b.i32(countColumns(op));
    Value isFirstWarp = b.below(getThread(b), b.index(kWarpLanes));
    Value address = allocate(b, isFirstWarp, columns);
    SmallVector<Value> tiles;
    int64_t used = 0;
    for (Type type : op.getTiles().getTypes()) {
      Value begin = offset(b, address, used);
      tiles.push_back(
          UnrealizedConversionCastOp::create(rewriter, loc, type, begin)
              .getResult(0));
      used += cast<TmemTileType>(type).getWidth();
    }
    // All threads have executed the fences of their accesses.
    rewriter.setInsertionPoint(op->getBlock()->getTerminator());
    gpu::BarrierOp::create(rewriter, loc);
    emitFenceAfterOthers(b);
    b.runIf(isFirstWarp, [&] {
      NVVM::Tcgen05DeallocOp::create(rewriter, loc, toPointer(b, address),
                                     columns);
    });
    rewriter.replaceOp(op, tiles);
    return success();
  }

private:
  /// Promises ptxas that one block is enough for a multiprocessor. Otherwise it
  /// spills registers to make room for blocks that tensor memory has no columns
  /// for. PTX ISA, ".minnctapersm": beside a known number of threads.
  static void allowOneBlock(ConversionPatternRewriter &rewriter,
                            gpu::GPUFuncOp kernel) {
    StringRef name = NVVM::NVVMDialect::getMinctasmAttrName();
    if (!kernel.isKernel() || !kernel.getKnownBlockSize() ||
        kernel->hasAttr(name) ||
        kernel->hasAttr(NVVM::NVVMDialect::getMaxnregAttrName()))
      return;
    rewriter.modifyOpInPlace(
        kernel, [&] { kernel->setAttr(name, rewriter.getI32IntegerAttr(1)); });
  }

  static int64_t countColumns(TmemAllocOp op) {
    constexpr uint64_t least = 32;
    uint64_t columns = 0;
    for (Type tile : op.getTiles().getTypes())
      columns += cast<TmemTileType>(tile).getWidth();
    return static_cast<int64_t>(std::max(llvm::PowerOf2Ceil(columns), least));
  }

  /// The first warp allocates, and all threads read the address.
  static Value allocate(const IndexBuilder &b, Value isFirstWarp,
                        Value columns) {
    MLIRContext *context = b.builder.getContext();
    Type i32 = b.builder.getI32Type();
    constexpr int64_t unitWords = 4;
    auto type = TileType::get(context, 1, unitWords, i32, Swizzle::None);
    Value tile = AllocTileOp::create(b.builder, b.loc, type, IntegerAttr());
    Value slot = getTileAddress(b.builder, b.loc, tile, b.index(0));
    b.runIf(isFirstWarp, [&] {
      NVVM::Tcgen05AllocOp::create(b.builder, b.loc, slot, columns);
      NVVM::Tcgen05RelinquishAllocPermitOp::create(b.builder, b.loc);
    });
    gpu::BarrierOp::create(b.builder, b.loc);
    return LLVM::LoadOp::create(b.builder, b.loc, i32, slot);
  }
};

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The instructions of one product into tensor memory, along K.
class TensorProducts {
public:
  TensorProducts(OpBuilder &builder, TmemMmaOp op, TmemMmaOp::Adaptor adaptor)
      : b(builder, op.getLoc()), op(op), adaptor(adaptor),
        d(op.getD().getType()), parts(op.getParts()) {
    instruction.m = op.getSizeM();
    instruction.n = op.getSizeN() / d.getNumProducts();
    Type a = op.getTileA()
                 ? op.getTileA().getType().getElementType()
                 : cast<TmemTileType>(op.getA().getType()).getElementType();
    Type typeB = op.getB().getType().getElementType();
    instruction.a = getType(a);
    instruction.b = getType(typeB);
    if (d.getElementType().isInteger())
      instruction.d = tma::InstructionDescriptor::ResultS32;
    instruction.majorA = getMajor(op.getMajorA());
    instruction.majorB = getMajor(op.getMajorB());
    constexpr int64_t bits = 8 * MatrixPart::kStepBytes;
    step = bits / typeB.getIntOrFloatBitWidth();
    kind = typeB.isInteger()                    ? NVVM::Tcgen05MMAKind::I8
           : typeB.getIntOrFloatBitWidth() == 8 ? NVVM::Tcgen05MMAKind::F8F6F4
                                                : NVVM::Tcgen05MMAKind::F16;
  }

  void create() {
    emitFenceAfterOthers(b);
    for (int64_t i = 0; i < d.getNumProducts(); ++i)
      multiply(i);
  }

private:
  static tma::Major getMajor(Major major) {
    return major == Major::K ? tma::Major::K : tma::Major::MN;
  }

  static tma::InstructionDescriptor::Type getType(Type type) {
    using Descriptor = tma::InstructionDescriptor;
    if (type.isF16())
      return Descriptor::F16;
    if (type.isBF16())
      return Descriptor::BF16;
    if (type.isInteger())
      return Descriptor::S8;
    return isa<Float8E4M3FNType>(type) ? Descriptor::E4M3 : Descriptor::E5M2;
  }

  Value constant(int64_t value, unsigned bits) {
    return arith::ConstantIntOp::create(b.builder, b.loc, value, bits);
  }

  /// B of product `i`: with the columns of D from `i n` on.
  MatrixPart getPartB(int64_t i) {
    MatrixPart part = parts.front();
    if (i == 0)
      return part;
    Value &place = part.major == Major::K ? part.row : part.column;
    place = b.add(place, b.index(i * instruction.n));
    return part;
  }

  /// Where product `i` begins in D, and with it in A in tensor memory, which is
  /// in all lanes that D has.
  int64_t getLanes(int64_t i) {
    return d.isSplitByLanes() ? i * kFragmentLanes * kLane : 0;
  }

  void multiply(int64_t i) {
    DescriptorBuilder descriptorB(b.builder, b.loc, getPartB(i),
                                  tma::MatrixFormat::TCGen05);
    std::optional<DescriptorBuilder> descriptorA;
    Value addressA;
    if (op.getTileA())
      descriptorA.emplace(b.builder, b.loc, parts.back(),
                          tma::MatrixFormat::TCGen05);
    else
      addressA = offset(b, getAddress(b, adaptor.getA()), getLanes(i));
    int64_t begin = d.isSplitByLanes() ? getLanes(i) : i * instruction.n;
    Value to = toPointer(b, offset(b, getAddress(b, adaptor.getD()), begin));
    Value bits = constant(instruction.encode(), 32);
    Value adds = op.getAdd() ? Value(op.getAdd()) : constant(0, 1);
    for (int64_t k = 0; k < op.getSizeK(); k += step) {
      constexpr int64_t stepColumns = MatrixPart::kStepBytes / 4;
      Value a = descriptorA
                    ? descriptorA->get(k)
                    : toPointer(b, offset(b, addressA, k / step * stepColumns));
      NVVM::Tcgen05MMAOp::create(
          b.builder, b.loc, kind, NVVM::CTAGroupKind::CTA_1,
          NVVM::Tcgen05MMACollectorOp::DISCARD, /*aShift=*/false, to, a,
          descriptorB.get(k), bits, adds, /*scaleInputD=*/Value(),
          /*disableOutputLane=*/Value());
      if (k == 0)
        adds = constant(1, 1);
    }
  }

  IndexBuilder b;
  TmemMmaOp op;
  TmemMmaOp::Adaptor adaptor;
  TmemTileType d;
  SmallVector<MatrixPart, 2> parts;
  tma::InstructionDescriptor instruction;
  NVVM::Tcgen05MMAKind kind;
  /// Elements of K of one instruction.
  int64_t step;
};

struct LowerTmemMma : OpConversionPattern<TmemMmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemMmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkTensorMemory(op)))
      return failure();
    TensorProducts(rewriter, op, adaptor).create();
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerTmemCommit : OpConversionPattern<TmemCommitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemCommitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkTensorMemory(op)))
      return failure();
    Value barrier = getBarrierPointer(rewriter, op.getLoc(), op.getBarriers(),
                                      op.getBarrier());
    rewriter.replaceOpWithNewOp<NVVM::Tcgen05CommitOp>(
        op, barrier, /*multicastMask=*/Value());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// The accesses of a warp to its fragment of a tile. Words of 32 bits are in
/// two columns for each register, whatever the elements are.
class FragmentBuilder {
public:
  template <typename OpTy>
  FragmentBuilder(OpBuilder &builder, OpTy op, Value tile, VectorType vector)
      : b(builder, op.getLoc()), type(op.getTile().getType()),
        numRegisters(vector.getNumElements() * vector.getElementTypeBitWidth() /
                     32) {
    constexpr int64_t wordBits = 32;
    int64_t perWord = wordBits / vector.getElementTypeBitWidth();
    Value column = b.toI32(op.getColumn());
    address = getAddress(b, tile);
    if (type.isSplitByLanes()) {
      int64_t together = type.getColumns() / 2;
      address = b.add(address,
                      b.mul(b.div(column, together), kFragmentLanes * kLane));
      column = b.rem(column, together);
    }
    // Threads of a warp have the lanes of its number in the warpgroup.
    Value lane =
        arith::AndIOp::create(builder, b.loc, b.toI32(getThread(b)),
                              b.i32(TmemTileType::kMemoryLanes - kWarpLanes));
    if (op.getHalf())
      lane = b.add(lane, b.mul(b.toI32(op.getHalf()), kFragmentLanes));
    address = b.add(address, b.mul(lane, kLane));
    address = b.add(address, b.div(column, perWord));
  }

  /// The registers, after the wait for all of them.
  SmallVector<Value> load() {
    emitFenceAfterOthers(b);
    SmallVector<Value> registers;
    forChunks([&](Value pointer, int64_t, int64_t count) {
      auto words = VectorType::get(count, b.builder.getI32Type());
      Value loaded =
          NVVM::Tcgen05LdOp::create(b.builder, b.loc, words, /*pack=*/false,
                                    getShape(), pointer, /*offset=*/Value());
      auto elements = vector::ToElementsOp::create(b.builder, b.loc, loaded);
      llvm::append_range(registers, elements.getResults());
    });
    NVVM::Tcgen05WaitOp::create(b.builder, b.loc, NVVM::Tcgen05WaitKind::LOAD);
    emitFenceBeforeOthers(b);
    // Keeps uses of the registers after the wait, also in LLVM.
    return createRegisterFence(b.builder, b.loc, registers);
  }

  /// Stores the registers, and with `alsoOther` also into the lanes of the warp
  /// that a fragment leaves free.
  void store(ValueRange registers, bool alsoOther) {
    emitFenceAfterOthers(b);
    storeOnce(registers);
    if (alsoOther) {
      address = offset(b, address, kFragmentLanes * kLane);
      storeOnce(registers);
    }
    NVVM::Tcgen05WaitOp::create(b.builder, b.loc, NVVM::Tcgen05WaitKind::STORE);
    emitFenceBeforeOthers(b);
  }

private:
  void storeOnce(ValueRange registers) {
    forChunks([&](Value pointer, int64_t first, int64_t count) {
      auto words = VectorType::get(count, b.builder.getI32Type());
      Value stored = vector::FromElementsOp::create(
          b.builder, b.loc, words, registers.slice(first, count));
      NVVM::Tcgen05StOp::create(b.builder, b.loc, /*unpack=*/false, getShape(),
                                pointer, stored, /*offset=*/Value());
    });
  }

  NVVM::Tcgen05LdStShape getShape() const {
    return type.isPacked() ? NVVM::Tcgen05LdStShape::SHAPE_16X128B
                           : NVVM::Tcgen05LdStShape::SHAPE_16X256B;
  }

  /// An instruction has a power of two of registers, up to 128.
  void forChunks(
      function_ref<void(Value pointer, int64_t first, int64_t count)> body) {
    constexpr int64_t most = 128, columnsOfRegister = 2;
    for (int64_t first = 0; first < numRegisters;) {
      auto left = static_cast<uint64_t>(numRegisters - first);
      auto count = std::min(static_cast<int64_t>(llvm::bit_floor(left)), most);
      Value begin = offset(b, address, columnsOfRegister * first);
      body(toPointer(b, begin), first, count);
      first += count;
    }
  }

  IndexBuilder b;
  TmemTileType type;
  int64_t numRegisters;
  Value address;
};

struct LowerTmemLoad : OpConversionPattern<TmemLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkTensorMemory(op)))
      return failure();
    auto type = cast<VectorType>(op.getResult().getType());
    FragmentBuilder fragment(rewriter, op, adaptor.getTile(), type);
    SmallVector<Value> registers = fragment.load();
    auto words = VectorType::get(static_cast<int64_t>(registers.size()),
                                 rewriter.getI32Type());
    Value all =
        vector::FromElementsOp::create(rewriter, op.getLoc(), words, registers);
    rewriter.replaceOp(
        op, rewriter.createOrFold<vector::BitCastOp>(op.getLoc(), type, all));
    return success();
  }
};

struct LowerTmemStore : OpConversionPattern<TmemStoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkTensorMemory(op)))
      return failure();
    auto type = cast<VectorType>(op.getValue().getType());
    FragmentBuilder fragment(rewriter, op, adaptor.getTile(), type);
    constexpr int64_t wordBits = 32;
    auto words = VectorType::get(type.getNumElements() *
                                     type.getElementTypeBitWidth() / wordBits,
                                 rewriter.getI32Type());
    Value all = rewriter.createOrFold<vector::BitCastOp>(op.getLoc(), words,
                                                         op.getValue());
    ValueRange registers =
        vector::ToElementsOp::create(rewriter, op.getLoc(), all).getResults();
    // A of products of 64 rows is in the lanes of D, whichever these are.
    TmemTileType tile = op.getTile().getType();
    fragment.store(registers, tile.isPacked() &&
                                  tile.getRows() < TmemTileType::kMemoryLanes);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void kvcache::populateTensorMemoryPatterns(RewritePatternSet &patterns,
                                           bool mayBranch) {
  MLIRContext *context = patterns.getContext();
  if (mayBranch)
    patterns.add<LowerTmemAlloc>(context);
  patterns.add<LowerTmemMma, LowerTmemCommit, LowerTmemLoad, LowerTmemStore>(
      context);
}
