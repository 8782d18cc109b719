//===- TensorMemoryPatterns.cpp - Lower accesses of tensor memory ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "TensorMemory.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/Support/Threads.h"
#include "kvcache/Target/Registers.h"
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

/// (C4) of `tmem_alloc`, (C9) of `tmem_mma` and (C1) of `tmem_commit`
static LogicalResult checkPair(Operation *op) {
  constexpr int64_t pair = 2;
  int64_t blocks = countClusterBlocks(op);
  if (!op->hasAttr("pair") || blocks == pair)
    return success();
  return op->emitOpError(
             "with 'pair' expects a kernel that states clusters of ")
         << pair << " blocks, got " << blocks;
}

LogicalResult kvcache::checkTensorMemory(Operation *op) {
  if (failed(checkFeature(op, Feature::TensorMemory)) || failed(checkPair(op)))
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
    // Tensor memory has no columns for another block.
    if (auto kernel = op->getParentOfType<gpu::GPUFuncOp>())
      rewriter.modifyOpInPlace(kernel, [&] { allowOneBlock(kernel); });
    Location loc = op.getLoc();
    IndexBuilder b(rewriter, loc);
    NVVM::CTAGroupKind group = getGroup(op.getPair());
    Value columns = b.i32(countColumns(op));
    Value isFirstWarp = b.below(getThread(b), b.index(kWarpLanes));
    Value address = allocate(b, isFirstWarp, columns, group);
    SmallVector<Value> tiles;
    int64_t used = 0;
    for (Type type : op.getTiles().getTypes()) {
      Value begin = offsetAddress(b, address, used);
      tiles.push_back(
          UnrealizedConversionCastOp::create(rewriter, loc, type, begin)
              .getResult(0));
      used += cast<TmemTileType>(type).getWidth();
    }
    // All threads have executed the fences of their accesses.
    rewriter.setInsertionPoint(op->getBlock()->getTerminator());
    syncBlocks(b, group);
    emitFenceAfterOthers(b);
    b.runIf(isFirstWarp, [&] {
      NVVM::Tcgen05DeallocOp::create(rewriter, loc, toTensorPointer(b, address),
                                     columns, group);
    });
    rewriter.replaceOp(op, tiles);
    return success();
  }

private:
  static int64_t countColumns(TmemAllocOp op) {
    constexpr uint64_t least = 32;
    uint64_t columns = 0;
    for (Type tile : op.getTiles().getTypes())
      columns += cast<TmemTileType>(tile).getWidth();
    return static_cast<int64_t>(std::max(llvm::PowerOf2Ceil(columns), least));
  }

  /// Synchronizes the threads of the blocks that tensor memory is of.
  static void syncBlocks(const IndexBuilder &b, NVVM::CTAGroupKind group) {
    if (group == NVVM::CTAGroupKind::CTA_1) {
      gpu::BarrierOp::create(b.builder, b.loc);
      return;
    }
    UnitAttr aligned = b.builder.getUnitAttr();
    NVVM::ClusterArriveOp::create(b.builder, b.loc, aligned);
    NVVM::ClusterWaitOp::create(b.builder, b.loc, aligned);
  }

  /// The first warp allocates, and all threads read the address.
  static Value allocate(const IndexBuilder &b, Value isFirstWarp, Value columns,
                        NVVM::CTAGroupKind group) {
    MLIRContext *context = b.builder.getContext();
    Type i32 = b.builder.getI32Type();
    constexpr int64_t unitWords = 4;
    auto type = TileType::get(context, 1, unitWords, i32, Swizzle::None);
    Value tile = AllocTileOp::create(b.builder, b.loc, type, IntegerAttr());
    Value slot = getTileAddress(b.builder, b.loc, tile, b.index(0));
    b.runIf(isFirstWarp, [&] {
      NVVM::Tcgen05AllocOp::create(b.builder, b.loc, slot, columns, group);
      NVVM::Tcgen05RelinquishAllocPermitOp::create(b.builder, b.loc, group);
    });
    syncBlocks(b, group);
    return LLVM::LoadOp::create(b.builder, b.loc, i32, slot);
  }
};

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// The accesses of a warp to its fragment of a tile. Words of 32 bits are in
/// two columns for each register, whatever the elements are, or in one if a
/// lane has a whole row.
class FragmentBuilder {
public:
  template <typename OpTy>
  FragmentBuilder(OpBuilder &builder, OpTy op, Value tile, VectorType vector)
      : b(builder, op.getLoc()), type(op.getTile().getType()),
        hasWholeRows(op.getWholeRows()),
        numRegisters(vector.getNumElements() * vector.getElementTypeBitWidth() /
                     32) {
    constexpr int64_t wordBits = 32;
    int64_t perWord = wordBits / vector.getElementTypeBitWidth();
    Value column = b.toI32(op.getColumn());
    address = getTensorAddress(b, tile);
    if (type.isSplitByLanes()) {
      int64_t together = type.getColumns() / 2;
      address = b.add(address, b.mul(b.div(column, together),
                                     kFragmentLanes * kTensorLane));
      column = b.rem(column, together);
    }
    // Threads of a warp have the lanes of its number in the warpgroup.
    Value lane =
        arith::AndIOp::create(builder, b.loc, b.toI32(getThread(b)),
                              b.i32(TmemTileType::kMemoryLanes - kWarpLanes));
    if (op.getHalf())
      lane = b.add(lane, b.mul(b.toI32(op.getHalf()), kFragmentLanes));
    address = b.add(address, b.mul(lane, kTensorLane));
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
      address = offsetAddress(b, address, kFragmentLanes * kTensorLane);
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
    if (hasWholeRows)
      return NVVM::Tcgen05LdStShape::SHAPE_32X32B;
    return type.isPacked() ? NVVM::Tcgen05LdStShape::SHAPE_16X128B
                           : NVVM::Tcgen05LdStShape::SHAPE_16X256B;
  }

  /// An instruction has a power of two of registers, up to 128.
  void forChunks(
      function_ref<void(Value pointer, int64_t first, int64_t count)> body) {
    constexpr int64_t most = 128;
    int64_t columnsOfRegister = hasWholeRows ? 1 : 2;
    for (int64_t first = 0; first < numRegisters;) {
      auto left = static_cast<uint64_t>(numRegisters - first);
      auto count = std::min(static_cast<int64_t>(llvm::bit_floor(left)), most);
      Value begin = offsetAddress(b, address, columnsOfRegister * first);
      body(toTensorPointer(b, begin), first, count);
      first += count;
    }
  }

  IndexBuilder b;
  TmemTileType type;
  bool hasWholeRows;
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

struct LowerTmemView : OpConversionPattern<TmemViewOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemViewOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkTensorMemory(op)))
      return failure();
    IndexBuilder b(rewriter, op.getLoc());
    constexpr int64_t wordBits = 32;
    int64_t perWord =
        wordBits /
        op.getTile().getType().getElementType().getIntOrFloatBitWidth();
    Value address = b.add(getTensorAddress(b, adaptor.getTile()),
                          b.div(b.toI32(op.getColumn()), perWord));
    rewriter.replaceOpWithNewOp<UnrealizedConversionCastOp>(
        op, op.getView().getType(), address);
    return success();
  }
};

} // namespace

void kvcache::populateTensorMemoryPatterns(RewritePatternSet &patterns,
                                           bool mayBranch) {
  MLIRContext *context = patterns.getContext();
  if (mayBranch)
    patterns.add<LowerTmemAlloc>(context);
  patterns.add<LowerTmemLoad, LowerTmemStore, LowerTmemView>(context);
  populateTensorProductPatterns(patterns);
}
