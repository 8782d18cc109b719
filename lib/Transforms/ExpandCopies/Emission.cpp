//===- Emission.cpp - What copies into tiles are made of
//---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emission.h"

#include "kvcache/Target/Pointers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Where the rows of a copy come from
//===----------------------------------------------------------------------===//

namespace {

/// A row of the cache that becomes one of the tile.
struct SourceRow {
  /// Whether the row is to be read; null if it surely is.
  Value isValid;
  Value batch, token;
  /// The page, if it is known without the lookup table.
  Value page;
};

/// The copy, whichever it is.
class Source {
public:
  Source(const IndexBuilder &b, Operation *copy)
      : b(b), load(dyn_cast<AsyncLoadTileOp>(copy)),
        gather(dyn_cast<AsyncGatherTileOp>(copy)) {}

  TypedValue<CacheTypeInterface> getCache() {
    return load ? load.getCache() : gather.getCache();
  }
  Value getHead() { return load ? load.getHead() : gather.getHead(); }
  Value getElement() { return load ? load.getElement() : gather.getElement(); }
  TypedValue<TileType> getTile() {
    return load ? load.getTile() : gather.getTile();
  }
  tma::TileLayout getLayout() { return getTile().getType().getLayout(); }

  SourceRow getRow(Value row) {
    if (load) {
      Value isValid = load.getValid() ? b.less(row, load.getValid()) : Value();
      return {isValid, load.getBatch(), b.add(load.getToken(), row), Value()};
    }
    return getGathered(loadRowId(b, gather, row));
  }

  /// Elements of the head from `column` of the tile on.
  Value getElementAt(Value column) {
    int64_t lanes = getCache().getType().getLanesPerStored();
    return b.add(getElement(), b.mul(column, b.index(lanes)));
  }

  /// `columns` stored elements of a row from a column of the tile on, as a
  /// memref of one row. The page may be null.
  Value getMemory(const SourceRow &row, Value column, int64_t columns,
                  Value page) {
    CacheTypeInterface cache = getCache().getType();
    int64_t stride = cache.getNumHeads() * cache.getStoredHeadSize();
    auto layout = StridedLayoutAttr::get(b.builder.getContext(),
                                         ShapedType::kDynamic, {stride, 1});
    auto type = MemRefType::get({1, columns}, cache.getStorageType(), layout);
    return BlockTileOp::create(b.builder, b.loc, type, getCache(), row.batch,
                               getHead(), row.token, getElementAt(column),
                               page);
  }

private:
  SourceRow getGathered(Value id) {
    CacheTypeInterface cache = getCache().getType();
    Value batch = b.index(0);
    Type index = b.builder.getIndexType();
    // In a continuous cache the rows of all blocks are one page.
    if (!cache.isPaged()) {
      Value rows = NumKVRowsOp::create(b.builder, b.loc, index, getCache());
      return {b.below(id, rows), batch, id, b.index(0)};
    }
    Value pageSize = b.index(cache.getPageSize());
    Value pages =
        ExtentOp::create(b.builder, b.loc, index, Extent::Pages, getCache());
    return {b.below(id, b.mul(pages, pageSize)), batch, b.rem(id, pageSize),
            b.div(id, pageSize)};
  }

  const IndexBuilder &b;
  AsyncLoadTileOp load;
  AsyncGatherTileOp gather;
};

} // namespace

Value kvcache::loadRowId(const IndexBuilder &b, AsyncGatherTileOp gather,
                         Value row) {
  Value id = memref::LoadOp::create(b.builder, b.loc, gather.getRows(), row);
  return arith::IndexCastOp::create(b.builder, b.loc, b.builder.getIndexType(),
                                    id);
}

int64_t kvcache::getTileBytes(Operation *copy) {
  OpBuilder builder(copy);
  return Source(IndexBuilder(builder, copy->getLoc()), copy)
      .getLayout()
      .getBytes();
}

//===----------------------------------------------------------------------===//
// By all threads
//===----------------------------------------------------------------------===//

/// Calls `body(row, column)` for every `columns` of the tile, spread over the
/// threads.
static void forEachUnit(const IndexBuilder &b, const tma::TileLayout &layout,
                        int64_t columns, Threads threads,
                        function_ref<void(Value row, Value column)> body) {
  int64_t perRow = layout.columns / columns;
  b.loop(threads.thread, b.index(layout.rows * perRow), threads.count,
         [&](Value unit) {
           Value column = b.mul(b.rem(unit, b.index(perRow)), b.index(columns));
           body(b.div(unit, b.index(perRow)), column);
         });
}

/// A vector of `columns` stored elements as the cache holds them.
static Value loadUnit(const IndexBuilder &b, Source &source,
                      const SourceRow &row, Value column, VectorType type) {
  TypedValue<CacheTypeInterface> cache = source.getCache();
  Value element = source.getElementAt(column);
  CacheTypeInterface cacheType = cache.getType();
  if (!cacheType.isQuantized())
    return LoadOp::create(b.builder, b.loc, type, cache, row.batch,
                          source.getHead(), row.token, element, row.page,
                          /*scale_page=*/Value(), /*tensor_scale=*/Value());
  auto lanes =
      VectorType::get(type.getNumElements() * cacheType.getLanesPerStored(),
                      cacheType.getElementType());
  Value loaded =
      LoadQuantizedOp::create(b.builder, b.loc, lanes, cache, row.batch,
                              source.getHead(), row.token, element, row.page);
  return b.builder.createOrFold<vector::BitCastOp>(b.loc, type, loaded);
}

/// Columns of the tile that have so many bytes.
static int64_t getColumns(const tma::TileLayout &layout, int64_t bytes) {
  return bytes / layout.elementBytes;
}

void kvcache::emitPlain(OpBuilder &builder, Operation *copy, Threads threads) {
  IndexBuilder b(builder, copy->getLoc());
  Source source(b, copy);
  tma::TileLayout layout = source.getLayout();
  int64_t columns = getColumns(layout, 16);
  auto type =
      VectorType::get(columns, source.getTile().getType().getElementType());
  forEachUnit(b, layout, columns, threads, [&](Value tileRow, Value column) {
    SourceRow row = source.getRow(tileRow);
    auto read = [&] { return loadUnit(b, source, row, column, type); };
    auto zeros = [&]() -> Value {
      return arith::ConstantOp::create(builder, b.loc,
                                       builder.getZeroAttr(type));
    };
    Value value = row.isValid ? b.selectIf(row.isValid, read, zeros) : read();
    TileStoreOp::create(builder, b.loc, value, source.getTile(), tileRow,
                        column);
  });
}

/// The page of a row, looked up only if the row is valid: its entry of the
/// table need not exist otherwise.
static Value getSafePage(const IndexBuilder &b, Source &source,
                         const SourceRow &row) {
  if (!row.isValid)
    return row.page;
  if (row.page)
    return arith::SelectOp::create(b.builder, b.loc, row.isValid, row.page,
                                   b.index(0));
  return b.selectIf(
      row.isValid,
      [&]() -> Value {
        return PageIdOp::create(b.builder, b.loc, b.builder.getIndexType(),
                                source.getCache(), row.batch, row.token);
      },
      [&] { return b.index(0); });
}

void kvcache::emitAsyncCopy(OpBuilder &builder, Operation *copy,
                            const Choice &choice, Threads threads) {
  IndexBuilder b(builder, copy->getLoc());
  Source source(b, copy);
  tma::TileLayout layout = source.getLayout();
  int64_t columns = getColumns(layout, choice.unitBytes);
  // Only copies of 16 bytes can leave out the L1 cache.
  auto modifier = choice.unitBytes == 16 ? NVVM::LoadCacheModifierKind::CG
                                         : NVVM::LoadCacheModifierKind::CA;
  Value memory = TileMemoryOp::create(
      builder, b.loc, source.getTile().getType().getMemoryType(),
      source.getTile());
  forEachUnit(b, layout, columns, threads, [&](Value tileRow, Value column) {
    SourceRow row = source.getRow(tileRow);
    Value page = getSafePage(b, source, row);
    Value from = getGlobalPointer(builder, b.loc,
                                  source.getMemory(row, column, columns, page));
    Value offset = TileOffsetOp::create(builder, b.loc, builder.getIndexType(),
                                        source.getTile(), tileRow, column);
    Value to = getSharedPointer(builder, b.loc, memory, offset);
    // What is not read is filled with zeros.
    Value bytes;
    if (row.isValid)
      bytes = arith::SelectOp::create(builder, b.loc, row.isValid,
                                      b.i32(choice.unitBytes), b.i32(0));
    NVVM::CpAsyncOp::create(builder, b.loc, to, from, choice.unitBytes,
                            modifier, bytes);
  });
}

//===----------------------------------------------------------------------===//
// By the lanes of a warp
//===----------------------------------------------------------------------===//

void kvcache::emitBulkRows(OpBuilder &builder, Operation *copy, Threads lanes,
                           Barrier barrier) {
  IndexBuilder b(builder, copy->getLoc());
  Source source(b, copy);
  tma::TileLayout layout = source.getLayout();
  int64_t rowBytes = layout.columns * layout.elementBytes;
  Value pointer =
      getBarrierPointer(b.builder, b.loc, barrier.group, barrier.index);
  Value memory = TileMemoryOp::create(
      builder, b.loc, source.getTile().getType().getMemoryType(),
      source.getTile());
  auto copyRow = [&](const SourceRow &row, Value tileRow) {
    Value from = getGlobalPointer(
        builder, b.loc,
        source.getMemory(row, b.index(0), layout.columns, row.page));
    Value to = getSharedPointer(builder, b.loc, memory,
                                b.mul(tileRow, b.index(rowBytes)));
    // A bulk copy names shared memory as one of the cluster does.
    auto ofCluster = LLVM::LLVMPointerType::get(
        builder.getContext(),
        static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
    to = LLVM::AddrSpaceCastOp::create(builder, b.loc, ofCluster, to);
    NVVM::MBarrierExpectTxOp::create(builder, b.loc, pointer, b.i32(rowBytes));
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
        builder, b.loc, to, from, pointer, b.i32(rowBytes),
        /*multicastMask=*/Value(), /*l2CacheHint=*/Value());
  };
  int64_t columns = getColumns(layout, 16);
  auto zeroRow = [&](Value tileRow) {
    auto type =
        VectorType::get(columns, source.getTile().getType().getElementType());
    Value zeros =
        arith::ConstantOp::create(builder, b.loc, builder.getZeroAttr(type));
    b.loop(b.index(0), b.index(layout.columns), b.index(columns),
           [&](Value column) {
             TileStoreOp::create(builder, b.loc, zeros, source.getTile(),
                                 tileRow, column);
           });
    // A later copy to the same place must come after these.
    emitProxyFence(b);
  };
  b.loop(lanes.thread, b.index(layout.rows), lanes.count, [&](Value tileRow) {
    SourceRow row = source.getRow(tileRow);
    auto branch = scf::IfOp::create(builder, b.loc, row.isValid,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    copyRow(row, tileRow);
    builder.setInsertionPointToStart(branch.elseBlock());
    zeroRow(tileRow);
  });
}
