//===- TMAPatterns.cpp - Lower tensor copies ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/PageTableOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/Support/CachePolicy.h"
#include "kvcache/Support/IndexBuilder.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/Support/Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The maximum number of unrolled copies; more copies become a loop.
constexpr int64_t kMaxUnrolled = 64;

/// Builds the operands of tensor copies.
class CopyBuilder : public IndexBuilder {
public:
  CopyBuilder(OpBuilder &builder, Operation *op)
      : IndexBuilder(builder, op->getLoc()) {}

  using IndexBuilder::add;
  Value add(Value lhs, int64_t rhs) const {
    return rhs ? add(lhs, index(rhs)) : lhs;
  }

  /// Returns the parameter of a descriptor.
  Value getDescriptor(Value descriptor) const {
    auto type = LLVM::LLVMPointerType::get(builder.getContext());
    return UnrealizedConversionCastOp::create(builder, loc, type, descriptor)
        .getResult(0);
  }

  Value getAddress(Value tile, Value offset) const {
    return getTileAddress(builder, loc, tile, offset);
  }
};

/// Calls `copy(first coordinate, address)` for each chunk of a tile.
void forEachChunk(const CopyBuilder &b, TMATileType descriptor, Value tile,
                  Value column, Value row,
                  function_ref<void(Value column, Value address)> copy) {
  tma::TileLayout layout = cast<TileType>(tile.getType()).getLayout();
  int64_t boxColumns = descriptor.getBox()[0];
  for (int64_t chunk = 0; chunk < layout.getNumChunks(); ++chunk) {
    Value offset = b.index(chunk * layout.getChunkBytes());
    if (row)
      offset = b.add(offset, b.mul(row, b.index(descriptor.getInnerBytes())));
    copy(b.add(column, chunk * boxColumns), b.getAddress(tile, offset));
  }
}

/// Lowers an op for a chip that supports it.
template <typename OpTy> struct TensorCopyPattern : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor,
                  ConversionPatternRewriter &rewriter) const final {
    if (failed(checkTensorCopy(op)))
      return failure();
    return lower(op, rewriter);
  }

  virtual LogicalResult lower(OpTy op,
                              ConversionPatternRewriter &rewriter) const = 0;
};

//===----------------------------------------------------------------------===//
// Descriptors and barriers
//===----------------------------------------------------------------------===//

struct LowerPrefetch : TensorCopyPattern<TMAPrefetchOp> {
  using TensorCopyPattern::TensorCopyPattern;

  LogicalResult lower(TMAPrefetchOp op,
                      ConversionPatternRewriter &rewriter) const override {
    CopyBuilder b(rewriter, op);
    NVVM::PrefetchOp::create(rewriter, b.loc, /*cacheLevel=*/nullptr,
                             /*evictPriority=*/nullptr,
                             b.getDescriptor(op.getDescriptor()),
                             /*predicate=*/Value(), /*tensormap=*/true,
                             /*uniform=*/false, /*in_param_space=*/true);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerExpect : TensorCopyPattern<TMAExpectOp> {
  using TensorCopyPattern::TensorCopyPattern;

  LogicalResult lower(TMAExpectOp op,
                      ConversionPatternRewriter &rewriter) const override {
    CopyBuilder b(rewriter, op);
    Value barrier =
        getBarrierPointer(rewriter, b.loc, op.getBarriers(), op.getBarrier());
    NVVM::MBarrierArriveExpectTxOp::create(
        rewriter, b.loc, /*res=*/Type(), barrier, b.toI32(op.getBytes()),
        NVVM::MemScopeKind::CTA, /*relaxed=*/false, /*predicate=*/Value());
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Creates the load instruction; with a mask, to all blocks in it.
void createLoad(const CopyBuilder &b, Value address, Value descriptor,
                ValueRange coordinates, Value barrier, Value policy,
                NVVM::TMALoadMode mode, bool ctaOnly = true,
                Value mask = Value()) {
  SmallVector<Value> narrow;
  for (Value coordinate : coordinates)
    narrow.push_back(b.toI32(coordinate));
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b.builder, b.loc, address, descriptor, narrow, barrier,
      /*im2colOffsets=*/ValueRange(), /*multicastMask=*/mask, policy, mode,
      ctaOnly, /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
}

/// The address as one of shared memory of the cluster.
Value getClusterAddress(const CopyBuilder &b, Value address) {
  auto type = LLVM::LLVMPointerType::get(
      b.builder.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  return LLVM::AddrSpaceCastOp::create(b.builder, b.loc, type, address);
}

/// The copies of `tma_load` that this block of the cluster issues for all.
class SharedCopies {
public:
  SharedCopies(const CopyBuilder &b, TMALoadOp op, int64_t numBlocks)
      : b(b), op(op), numBlocks(numBlocks) {
    Type i32 = b.builder.getI32Type();
    Value own = NVVM::ClusterId::create(b.builder, b.loc, i32);
    rank = arith::IndexCastOp::create(b.builder, b.loc,
                                      b.builder.getIndexType(), own);
    mask = arith::ConstantIntOp::create(b.builder, b.loc,
                                        (int64_t(1) << numBlocks) - 1, 16);
  }

  /// Runs `issue` in the block whose copy is the one of a chunk.
  void runInIssuer(int64_t chunk, function_ref<void()> issue) {
    int64_t numChunks = op.getTile().getType().getLayout().getNumChunks();
    int64_t boxRows = op.getDescriptor().getType().getRows();
    Value number = b.index(chunk);
    if (op.getRow())
      number =
          b.add(b.mul(b.div(op.getRow(), b.index(boxRows)), b.index(numChunks)),
                number);
    Value issuer = b.rem(number, b.index(numBlocks));
    b.runIf(b.equal(rank, issuer), issue);
  }

  Value getMask() const { return mask; }

private:
  const CopyBuilder &b;
  TMALoadOp op;
  int64_t numBlocks;
  Value rank, mask;
};

struct LowerLoad : TensorCopyPattern<TMALoadOp> {
  using TensorCopyPattern::TensorCopyPattern;

  LogicalResult lower(TMALoadOp op,
                      ConversionPatternRewriter &rewriter) const override {
    CopyBuilder b(rewriter, op);
    std::optional<SharedCopies> shared;
    if (op.getMulticast())
      shared.emplace(b, op, countBlocksOfCluster(op));
    Value descriptor = b.getDescriptor(op.getDescriptor());
    Value barrier =
        getBarrierPointer(rewriter, b.loc, op.getBarriers(), op.getBarrier());
    Value policy = createCachePolicy(rewriter, b.loc, op.getL2HintAttr());
    SmallVector<Value> coordinates(op.getCoordinates());
    int64_t chunk = 0;
    forEachChunk(b, op.getDescriptor().getType(), op.getTile(), coordinates[0],
                 op.getRow(), [&](Value column, Value address) {
                   SmallVector<Value> chunkCoordinates(coordinates);
                   chunkCoordinates[0] = column;
                   if (!shared)
                     return createLoad(b, address, descriptor, chunkCoordinates,
                                       barrier, policy,
                                       NVVM::TMALoadMode::TILE);
                   shared->runInIssuer(chunk++, [&] {
                     createLoad(b, getClusterAddress(b, address), descriptor,
                                chunkCoordinates, barrier, policy,
                                NVVM::TMALoadMode::TILE, /*ctaOnly=*/false,
                                shared->getMask());
                   });
                 });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Lowers to one load for each box of rows of the tile.
struct LowerLoadRows : TensorCopyPattern<TMALoadRowsOp> {
  using TensorCopyPattern::TensorCopyPattern;

  LogicalResult lower(TMALoadRowsOp op,
                      ConversionPatternRewriter &rewriter) const override {
    CopyBuilder b(rewriter, op);
    int64_t boxRows = op.getDescriptor().getType().getRows();
    int64_t tileRows = op.getTile().getType().getRows();
    for (int64_t row = 0; row < tileRows; row += boxRows) {
      Value cacheRow = getCacheRow(b, op, row);
      SmallVector<Value> coordinates(op.getCoordinates());
      if (op.getValid()) {
        // Invalid rows are out of bounds in dimension 1.
        Value valid = getValidRows(b, op, row, boxRows);
        coordinates.insert(coordinates.begin() + 1,
                           b.sub(b.index(boxRows), valid));
        cacheRow = b.add(cacheRow, valid);
      }
      coordinates.push_back(cacheRow);
      TMALoadOp::create(rewriter, b.loc, op.getDescriptor(), coordinates,
                        op.getBarriers(), op.getBarrier(), op.getTile(),
                        b.index(row), op.getL2HintAttr());
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Returns the first row of the second block of a pair.
  static int64_t getPeerOffset(TMALoadRowsOp op) {
    return op.getRows().getType().getRows() / 2;
  }

  /// Selects the value of the leader or of the peer.
  static Value select(const CopyBuilder &b, TMALoadRowsOp op,
                      function_ref<Value(int64_t offset)> get) {
    if (!op.getLeader())
      return get(0);
    return arith::SelectOp::create(b.builder, b.loc, op.getLeader(), get(0),
                                   get(getPeerOffset(op)));
  }

  /// Returns row `offset` of the cache, before or after the lowering of the row
  /// indices.
  static Value getRow(const CopyBuilder &b, TypedValue<RowIndicesType> rows,
                      int64_t offset) {
    auto cast = rows.getDefiningOp<UnrealizedConversionCastOp>();
    if (!cast)
      return GetRowOp::create(b.builder, b.loc, rows, b.index(offset));
    // The first parts are the first rows of the pages.
    int64_t pageRows = rows.getType().getRowsPerPage();
    return b.add(cast.getOperand(offset / pageRows), offset % pageRows);
  }

  static Value getCacheRow(const CopyBuilder &b, TMALoadRowsOp op,
                           int64_t row) {
    return select(b, op, [&](int64_t offset) -> Value {
      return getRow(b, op.getRows(), row + offset);
    });
  }

  /// Returns the number of valid rows of the box at `row`.
  static Value getValidRows(const CopyBuilder &b, TMALoadRowsOp op, int64_t row,
                            int64_t boxRows) {
    Value before =
        select(b, op, [&](int64_t offset) { return b.index(row + offset); });
    Value rest = b.sub(op.getValid(), before);
    rest = arith::MaxSIOp::create(b.builder, b.loc, rest, b.index(0));
    return arith::MinSIOp::create(b.builder, b.loc, rest, b.index(boxRows));
  }
};

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// Whether the blocks of the kernel form clusters, so that their shared memory
/// is part of the shared memory of the cluster.
bool hasClusters(Operation *op) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  return kernel &&
         (kernel->hasAttr("known_cluster_size") ||
          kernel->hasAttr(NVVM::NVVMDialect::getClusterDimAttrName()));
}

struct LowerGather4 : TensorCopyPattern<TMAGather4Op> {
  using TensorCopyPattern::TensorCopyPattern;

  LogicalResult lower(TMAGather4Op op,
                      ConversionPatternRewriter &rewriter) const override {
    const Chip *chip = getTargetChip(op);
    if (!chip->has(Feature::Gather4))
      return copyRows(op, rewriter);
    CopyBuilder b(rewriter, op);
    bool isCluster = chip->has(Feature::Gather4Cluster) && hasClusters(op);
    Value descriptor = b.getDescriptor(op.getDescriptor());
    Value barrier =
        getBarrierPointer(rewriter, b.loc, op.getBarriers(), op.getBarrier());
    Value policy = createCachePolicy(rewriter, b.loc, op.getL2HintAttr());
    forEachChunk(b, op.getDescriptor().getType(), op.getTile(), op.getColumn(),
                 op.getRow(), [&](Value column, Value address) {
                   if (isCluster)
                     address = getClusterAddress(b, address);
                   createLoad(b, address, descriptor,
                              {column, op.getRow0(), op.getRow1(), op.getRow2(),
                               op.getRow3()},
                              barrier, policy, NVVM::TMALoadMode::TILE_GATHER4,
                              /*ctaOnly=*/!isCluster);
                 });
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Copies single rows with the same box, without gather4.
  static LogicalResult copyRows(TMAGather4Op op,
                                ConversionPatternRewriter &rewriter) {
    CopyBuilder b(rewriter, op);
    Value rows[] = {op.getRow0(), op.getRow1(), op.getRow2(), op.getRow3()};
    for (auto [i, row] : llvm::enumerate(rows))
      TMALoadOp::create(rewriter, b.loc, op.getDescriptor(),
                        ValueRange{op.getColumn(), row}, op.getBarriers(),
                        op.getBarrier(), op.getTile(), b.add(op.getRow(), i),
                        op.getL2HintAttr());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerGatherTile : TensorCopyPattern<TMAGatherTileOp> {
  LowerGatherTile(MLIRContext *context, bool mayLoop)
      : TensorCopyPattern(context), mayLoop(mayLoop) {}

  LogicalResult lower(TMAGatherTileOp op,
                      ConversionPatternRewriter &rewriter) const override {
    CopyBuilder b(rewriter, op);
    tma::TileLayout layout = op.getTile().getType().getLayout();
    if (!mayLoop || layout.rows / 4 * layout.getNumChunks() <= kMaxUnrolled) {
      for (int64_t row = 0; row < layout.rows; row += 4)
        createGather(b, op, b.index(row));
    } else {
      auto loop = scf::ForOp::create(rewriter, b.loc, b.index(0),
                                     b.index(layout.rows), b.index(4));
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(loop.getBody());
      createGather(b, op, loop.getInductionVar());
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void createGather(const CopyBuilder &b, TMAGatherTileOp op,
                           Value row) {
    SmallVector<Value, 4> rows;
    for (int64_t i = 0; i < 4; ++i) {
      Value id =
          memref::LoadOp::create(b.builder, b.loc, op.getRows(), b.add(row, i));
      Value cacheRow = arith::IndexCastOp::create(b.builder, b.loc,
                                                  b.builder.getIndexType(), id);
      // Clamp 64-bit ids to 32 bits. No view has as many rows, so ids out of
      // bounds stay out of bounds, on both sides.
      if (id.getType().isInteger(64)) {
        cacheRow = arith::MinSIOp::create(b.builder, b.loc, cacheRow,
                                          b.index((int64_t(1) << 31) - 1));
        cacheRow =
            arith::MaxSIOp::create(b.builder, b.loc, cacheRow, b.index(-1));
      }
      rows.push_back(cacheRow);
    }
    Value column = op.getColumn() ? op.getColumn() : b.index(0);
    TMAGather4Op::create(b.builder, b.loc, op.getDescriptor(), column, rows[0],
                         rows[1], rows[2], rows[3], op.getBarriers(),
                         op.getBarrier(), op.getTile(), row,
                         op.getL2HintAttr());
  }

  bool mayLoop;
};

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

struct LowerStore : TensorCopyPattern<TMAStoreOp> {
  using TensorCopyPattern::TensorCopyPattern;

  LogicalResult lower(TMAStoreOp op,
                      ConversionPatternRewriter &rewriter) const override {
    CopyBuilder b(rewriter, op);
    NVVM::FenceProxyOp::create(
        rewriter, b.loc, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(getContext(),
                                   NVVM::SharedSpace::shared_cta));
    Value descriptor = b.getDescriptor(op.getDescriptor());
    Value policy = createCachePolicy(rewriter, b.loc, op.getL2HintAttr());
    SmallVector<Value> coordinates;
    for (Value coordinate : op.getCoordinates().drop_front())
      coordinates.push_back(b.toI32(coordinate));
    forEachChunk(b, op.getDescriptor().getType(), op.getTile(),
                 op.getCoordinates()[0], /*row=*/Value(),
                 [&](Value column, Value address) {
                   SmallVector<Value> chunkCoordinates = {b.toI32(column)};
                   llvm::append_range(chunkCoordinates, coordinates);
                   NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
                       rewriter, b.loc, descriptor, address, chunkCoordinates,
                       policy, NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
                 });
    NVVM::CpAsyncBulkCommitGroupOp::create(rewriter, b.loc);
    // The token has no value.
    rewriter.replaceOpWithNewOp<ub::PoisonOp>(op, op.getType());
    return success();
  }
};

/// Waits until the copy has read the tile, so that threads may write it.
struct LowerWaitForStore : OpConversionPattern<WaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    NVVM::CpAsyncBulkWaitGroupOp::create(rewriter, op.getLoc(), /*group=*/0,
                                         /*read=*/rewriter.getUnitAttr());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void kvcache::populateTensorCopyPatterns(RewritePatternSet &patterns,
                                         bool mayLoop) {
  patterns.add<LowerPrefetch, LowerExpect, LowerLoad, LowerLoadRows,
               LowerGather4, LowerStore, LowerWaitForStore>(
      patterns.getContext());
  patterns.add<LowerGatherTile>(patterns.getContext(), mayLoop);
}
