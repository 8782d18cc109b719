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
    return getGathered(getId(row));
  }

  /// The row id that the gather has for a row of the tile.
  Value getId(Value row) {
    Value id = memref::LoadOp::create(b.builder, b.loc, gather.getRows(), row);
    return arith::IndexCastOp::create(b.builder, b.loc,
                                      b.builder.getIndexType(), id);
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

//===----------------------------------------------------------------------===//
// By tensor copies
//===----------------------------------------------------------------------===//

/// `compute(first)` to `compute(first + count - 1)`, 32-bit numbers, in every
/// lane. Each lane computes one, so that what they read is under way together;
/// `count` is at most 32.
static SmallVector<Value> computeInLanes(const IndexBuilder &b,
                                         const Issuer &issuer, Value first,
                                         int64_t count,
                                         function_ref<Value(Value)> compute) {
  SmallVector<Value> values;
  // Few are sooner computed than passed on.
  constexpr int64_t few = 2;
  if (issuer.numLanes == 1 || count <= few) {
    for (int64_t i = 0; i < count; ++i)
      values.push_back(compute(b.add(first, b.index(i))));
    return values;
  }
  Value own = b.min(issuer.lane, b.index(count - 1));
  Value computed = b.toI32(compute(b.add(first, own)));
  for (int64_t i = 0; i < count; ++i) {
    Value value = NVVM::ShflOp::create(
        b.builder, b.loc, b.builder.getI32Type(), b.i32(-1), computed, b.i32(i),
        b.i32(BlockBuilder::kWarp - 1), NVVM::ShflKind::idx,
        /*return_value_and_is_valid=*/UnitAttr());
    values.push_back(arith::IndexCastOp::create(
        b.builder, b.loc, b.builder.getIndexType(), value));
  }
  return values;
}

/// How many of the tile's rows from `row` on are valid, up to those of a box.
static Value getValidRows(const IndexBuilder &b, AsyncLoadTileOp op, Value row,
                          int64_t boxRows) {
  Value valid = b.sub(op.getValid(), row);
  return b.min(b.max(valid, b.index(0)), b.index(boxRows));
}

/// What of the coordinates of the box at row `row` of the tile takes a lookup:
/// the page, and for a ragged box the row of the view.
static Value lookUpBox(const IndexBuilder &b, AsyncLoadTileOp op, Value row,
                       int64_t boxRows) {
  Type index = b.builder.getIndexType();
  Value token = b.add(op.getToken(), row);
  if (!op.getValid() && op.getCache().getType().isPaged())
    return PageIdOp::create(b.builder, b.loc, index, op.getCache(),
                            op.getBatch(), token);
  auto getRow = [&]() -> Value {
    return RowIndexOp::create(b.builder, b.loc, index, op.getCache(),
                              op.getBatch(), token, /*page=*/Value());
  };
  if (!op.getValid())
    return getRow();
  // Where no row is valid any will do, and the page need not exist.
  Value isAny = b.below(b.index(0), getValidRows(b, op, row, boxRows));
  return b.selectIf(isAny, getRow, [&] { return b.index(0); });
}

/// The coordinates of the box, with what was looked up.
static SmallVector<Value> getBoxCoordinates(const IndexBuilder &b,
                                            AsyncLoadTileOp op, Value row,
                                            int64_t boxRows, Value found) {
  CacheTypeInterface cache = op.getCache().getType();
  Value column = b.div(op.getElement(), b.index(cache.getLanesPerStored()));
  if (!op.getValid() && cache.isPaged()) {
    // The page is known: only the row in it is of use.
    auto coords = TMACoordsOp::create(b.builder, b.loc, op.getCache(),
                                      op.getBatch(), b.add(op.getToken(), row));
    return {column, op.getHead(), coords.getRow(), found};
  }
  if (!op.getValid())
    return {column, b.index(0), op.getHead(), b.add(found, b.index(boxRows))};
  // Rows that are not valid are out of bounds in dimension 1.
  Value valid = getValidRows(b, op, row, boxRows);
  return {column, b.sub(b.index(boxRows), valid), op.getHead(),
          b.add(found, valid)};
}

static void emitBoxes(const IndexBuilder &b, AsyncLoadTileOp op,
                      int64_t boxRows, TypedValue<TMATileType> descriptor,
                      Barrier barrier, const Issuer &issuer) {
  int64_t rows = op.getTile().getType().getRows();
  int64_t numBoxes = rows / boxRows;
  auto getFirstRow = [&](Value box) { return b.mul(box, b.index(boxRows)); };
  for (int64_t first = 0; first < numBoxes; first += BlockBuilder::kWarp) {
    int64_t count = std::min(numBoxes - first, BlockBuilder::kWarp);
    SmallVector<Value> found =
        computeInLanes(b, issuer, b.index(first), count, [&](Value box) {
          return lookUpBox(b, op, getFirstRow(box), boxRows);
        });
    b.runIf(issuer.isElected, [&] {
      for (int64_t i = 0; i < count; ++i) {
        Value row = getFirstRow(b.index(first + i));
        TMALoadOp::create(b.builder, b.loc, descriptor,
                          getBoxCoordinates(b, op, row, boxRows, found[i]),
                          barrier.group, barrier.index, op.getTile(),
                          numBoxes == 1 ? Value() : row,
                          /*l2_hint=*/EvictionAttr());
      }
    });
  }
}

/// The first column of a gather, in elements of the descriptor.
static Value getGatherColumn(const IndexBuilder &b, AsyncGatherTileOp op,
                             TMATileType descriptor) {
  CacheTypeInterface cache = op.getCache().getType();
  int64_t stored = cache.getStorageType().getIntOrFloatBitWidth() / 8;
  Value column =
      b.add(b.mul(op.getHead(), b.index(cache.getStoredHeadSize())),
            b.div(op.getElement(), b.index(cache.getLanesPerStored())));
  return b.div(b.mul(column, b.index(stored)),
               b.index(descriptor.getElementBytes()));
}

/// The gathers of `count` rows of the tile from `first` on.
static void emitGathers(const IndexBuilder &b, AsyncGatherTileOp op,
                        TypedValue<TMATileType> descriptor, Barrier barrier,
                        const Issuer &issuer, Value first, int64_t count) {
  SmallVector<Value> rows =
      computeInLanes(b, issuer, first, count, [&](Value tileRow) {
        Value row =
            TMARowOp::create(b.builder, b.loc, b.builder.getIndexType(),
                             op.getCache(), Source(b, op).getId(tileRow));
        // No view has this many rows: what 32 bits don't hold stays out of
        // bounds.
        return b.min(row, b.index((int64_t(1) << 31) - 1));
      });
  b.runIf(issuer.isElected, [&] {
    Value column = getGatherColumn(b, op, descriptor.getType());
    for (int64_t i = 0; i < count; i += 4)
      TMAGather4Op::create(b.builder, b.loc, descriptor, column, rows[i],
                           rows[i + 1], rows[i + 2], rows[i + 3], barrier.group,
                           barrier.index, op.getTile(),
                           b.add(first, b.index(i)),
                           /*l2_hint=*/EvictionAttr());
  });
}

static void emitGather(const IndexBuilder &b, AsyncGatherTileOp op,
                       TypedValue<TMATileType> descriptor, Barrier barrier,
                       const Issuer &issuer) {
  // More copies are a loop.
  constexpr int64_t maxUnrolled = 64;
  tma::TileLayout layout = op.getTile().getType().getLayout();
  int64_t batch = BlockBuilder::kWarp;
  if (layout.rows % batch == 0 &&
      layout.rows / 4 * layout.getNumChunks() > maxUnrolled)
    return b.loop(b.index(0), b.index(layout.rows), b.index(batch),
                  [&](Value row) {
                    emitGathers(b, op, descriptor, barrier, issuer, row, batch);
                  });
  for (int64_t row = 0; row < layout.rows; row += batch)
    emitGathers(b, op, descriptor, barrier, issuer, b.index(row),
                std::min(batch, layout.rows - row));
}

void kvcache::emitTensorCopies(OpBuilder &builder, Operation *copy,
                               const Choice &choice, Value descriptor,
                               Barrier barrier, const Issuer &issuer) {
  IndexBuilder b(builder, copy->getLoc());
  auto typed = cast<TypedValue<TMATileType>>(descriptor);
  if (auto load = dyn_cast<AsyncLoadTileOp>(copy))
    emitBoxes(b, load, choice.boxRows, typed, barrier, issuer);
  else
    emitGather(b, cast<AsyncGatherTileOp>(copy), typed, barrier, issuer);
}
