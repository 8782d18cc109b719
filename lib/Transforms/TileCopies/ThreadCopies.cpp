//===- ThreadCopies.cpp - Copies by all threads ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadCopies.h"
#include "Geometry.h"
#include "Source.h"

#include "kvcache/IR/AccessOps.h"
#include "kvcache/IR/QuantizationOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/CachePolicy.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// The number of columns of the tile in `bytes` bytes.
static int64_t getColumns(const tma::TileLayout &layout, int64_t bytes) {
  return bytes / layout.elementBytes;
}

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

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// A vector of `columns` stored elements as the cache holds them.
static Value loadUnit(const IndexBuilder &b, Source &source,
                      const SourceRow &row, Value column, VectorType type,
                      bool nontemporal) {
  TypedValue<CacheTypeInterface> cache = source.getCache();
  Value element = source.getElementAt(column);
  CacheTypeInterface cacheType = cache.getType();
  if (!cacheType.isQuantized())
    return LoadOp::create(b.builder, b.loc, type, cache, row.batch,
                          source.getHead(), row.token, element, row.page,
                          /*scale_page=*/Value(), /*tensor_scale=*/Value(),
                          nontemporal);
  auto lanes =
      VectorType::get(type.getNumElements() * cacheType.getLanesPerStored(),
                      cacheType.getElementType());
  Value loaded = LoadQuantizedOp::create(b.builder, b.loc, lanes, cache,
                                         row.batch, source.getHead(), row.token,
                                         element, row.page, nontemporal);
  return b.builder.createOrFold<vector::BitCastOp>(b.loc, type, loaded);
}

void kvcache::emitPlain(OpBuilder &builder, TileCopyOpInterface copy,
                        Threads threads) {
  IndexBuilder b(builder, copy->getLoc());
  Source source(b, copy);
  tma::TileLayout layout = source.getLayout();
  int64_t columns = getColumns(layout, 16);
  auto type =
      VectorType::get(columns, source.getTile().getType().getElementType());
  bool nontemporal = isStreamed(copy.getL2HintAttr());
  forEachUnit(b, layout, columns, threads, [&](Value tileRow, Value column) {
    SourceRow row = source.getRow(tileRow);
    auto read = [&] {
      return loadUnit(b, source, row, column, type, nontemporal);
    };
    auto zeros = [&]() -> Value {
      return arith::ConstantOp::create(builder, b.loc,
                                       builder.getZeroAttr(type));
    };
    Value value = row.isValid ? b.selectIf(row.isValid, read, zeros) : read();
    TileStoreOp::create(builder, b.loc, value, source.getTile(), tileRow,
                        column);
  });
}

//===----------------------------------------------------------------------===//
// cp.async
//===----------------------------------------------------------------------===//

namespace {

/// How a known number of threads shares a tile so that the addresses of a
/// thread differ by constants: neighbouring threads copy neighbouring units of
/// a row, and then the units at the same distance further on.
struct Share {
  int64_t threadsPerRow;
  /// The granules of each row that a thread copies.
  int64_t unitsPerThread;
  /// The rows in which all threads have a part.
  int64_t rowsAtOnce;
};

/// Copies that a thread issues one after the other, without a loop.
constexpr int64_t kMaxUnrolled = 64;

/// The share of each thread, or nothing if the threads can't share the tile
/// evenly, or would read less than 64 bytes of memory, or of a row of a chunk,
/// together.
std::optional<Share> getShare(const tma::TileLayout &layout, int64_t columns,
                              Value numThreads) {
  std::optional<int64_t> threads = getConstantIntValue(numThreads);
  if (!threads)
    return std::nullopt;
  int64_t unitsOfRow = layout.columns / columns;
  int64_t unitsOfChunk = layout.getChunkColumns() / columns;
  int64_t together = std::gcd(std::gcd(unitsOfRow, unitsOfChunk), *threads);
  constexpr int64_t leastBytes = 64;
  bool isTooNarrow = together < unitsOfChunk &&
                     together * columns * layout.elementBytes < leastBytes;
  int64_t each = unitsOfRow / together;
  if (isTooNarrow || each > kMaxUnrolled)
    return std::nullopt;
  return Share{together, each, *threads / together};
}

class AsyncCopy {
public:
  AsyncCopy(const IndexBuilder &b, TileCopyOpInterface copy, int64_t unitBytes)
      : b(b), source(b, copy), layout(source.getLayout()),
        hint(copy.getL2HintAttr()), unitBytes(unitBytes),
        columns(getColumns(layout, unitBytes)),
        memory(TileMemoryOp::create(b.builder, b.loc,
                                    source.getTile().getType().getMemoryType(),
                                    source.getTile())) {}

  void emit(Threads threads) {
    if (std::optional<Share> share = getShare(layout, columns, threads.count))
      return emitShare(*share, threads.thread);
    forEachUnit(b, layout, columns, threads, [&](Value row, Value column) {
      SourceRow from = source.getRow(row);
      copyUnit(from, getSource(from, source.getSafePage(from), column),
               getDestination(row, column));
    });
  }

private:
  /// Emits the share of `thread` in the whole tile.
  void emitShare(const Share &share, Value thread) {
    Value threadRow = b.div(thread, b.index(share.threadsPerRow));
    Value column =
        b.mul(b.rem(thread, b.index(share.threadsPerRow)), b.index(columns));
    int64_t rounds = layout.rows / share.rowsAtOnce;
    if (rounds)
      emitRounds(share, threadRow, column, rounds);
    int64_t done = rounds * share.rowsAtOnce;
    if (int64_t rest = layout.rows - done)
      b.runIf(b.below(threadRow, b.index(rest)), [&] {
        copyRows(share, b.add(threadRow, b.index(done)), column, /*count=*/1,
                 /*distance=*/1);
      });
  }

  /// The rounds in which all threads copy, unrolled as far as the limit allows.
  void emitRounds(const Share &share, Value threadRow, Value column,
                  int64_t rounds) {
    int64_t batch = std::min(rounds, kMaxUnrolled / share.unitsPerThread);
    while (rounds % batch)
      --batch;
    // Neighbouring rows have row ids that can be read together. But where they
    // are short, those of neighbouring threads share a line of shared memory.
    constexpr int64_t lineBytes = 128;
    bool isWide = source.getIdsPerAccess() > 1 &&
                  share.threadsPerRow * unitBytes % lineBytes == 0;
    auto copyBatch = [&](Value first) {
      Value row = isWide ? b.mul(threadRow, b.index(batch)) : threadRow;
      copyRows(share, b.add(first, row), column, batch,
               isWide ? 1 : share.rowsAtOnce);
    };
    if (batch == rounds)
      return copyBatch(b.index(0));
    b.loop(b.index(0), b.index(rounds * share.rowsAtOnce),
           b.index(batch * share.rowsAtOnce), copyBatch);
  }

  /// The thread's part of `count` rows, each `distance` after the one before.
  /// It starts with the unit at `column`.
  void copyRows(const Share &share, Value first, Value column, int64_t count,
                int64_t distance) {
    SmallVector<SourceRow> rows = source.getRows(first, count, distance);
    SmallVector<Value> pages;
    for (const SourceRow &row : rows)
      pages.push_back(source.getSafePage(row));
    SmallVector<Value> firstTo = getDestinations(share, first, column);
    for (int64_t i = 0; i < count; ++i) {
      Value from = getSource(rows[i], pages[i], column);
      int64_t rowsAfter = i * distance;
      // Swizzles repeat after eight rows.
      if (layout.swizzle == tma::Swizzle::None || rowsAfter % 8 == 0) {
        copyRow(share, rows[i], from, firstTo,
                rowsAfter * getChunkRowBytes(layout));
        continue;
      }
      Value row = b.add(first, b.index(rowsAfter));
      copyRow(share, rows[i], from, getDestinations(share, row, column),
              /*shift=*/0);
    }
  }

  /// The thread's part of a row. From a unit of it to the next it is always as
  /// far, in the cache and, by chunks, in the tile, `shift` bytes after `to`.
  void copyRow(const Share &share, const SourceRow &row, Value from,
               ArrayRef<Value> to, int64_t shift) {
    int64_t stepBytes = share.threadsPerRow * unitBytes;
    int64_t stepsOfChunk = getChunkRowBytes(layout) / stepBytes;
    for (int64_t unit = 0; unit < share.unitsPerThread; ++unit) {
      int64_t inChunk = unit % stepsOfChunk;
      int64_t offset = shift + unit / stepsOfChunk * layout.getChunkBytes();
      // Where there is no swizzle, steps are a constant apart.
      if (to.size() == 1)
        offset += inChunk * stepBytes;
      copyUnit(row, advance(from, unit * stepBytes),
               advance(to[to.size() == 1 ? 0 : inChunk], offset));
    }
  }

  /// Where the thread's units go of a row, in its first chunk: all of them with
  /// a swizzle, without one the first.
  SmallVector<Value> getDestinations(const Share &share, Value row,
                                     Value column) {
    SmallVector<Value> to;
    int64_t step = share.threadsPerRow * columns;
    for (int64_t next = 0; next < layout.getChunkColumns(); next += step) {
      to.push_back(getDestination(row, b.add(column, b.index(next))));
      if (layout.swizzle == tma::Swizzle::None)
        break;
    }
    return to;
  }

  Value getSource(const SourceRow &row, Value page, Value column) {
    return getGlobalPointer(b.builder, b.loc,
                            source.getMemory(row, column, columns, page));
  }
  Value getDestination(Value tileRow, Value column) {
    Value offset =
        TileOffsetOp::create(b.builder, b.loc, b.builder.getIndexType(),
                             source.getTile(), tileRow, column);
    return getSharedPointer(b.builder, b.loc, memory, offset);
  }

  Value advance(Value pointer, int64_t bytes) {
    if (bytes == 0)
      return pointer;
    return LLVM::GEPOp::create(b.builder, b.loc, pointer.getType(),
                               b.builder.getI8Type(), pointer,
                               ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
  }

  void copyUnit(const SourceRow &row, Value from, Value to) {
    // What is not read is filled with zeros.
    Value bytes;
    if (row.isValid)
      bytes = arith::SelectOp::create(b.builder, b.loc, row.isValid,
                                      b.i32(unitBytes), b.i32(0));
    // Only copies of 16 bytes can leave out the L1 cache.
    auto modifier = unitBytes == 16 ? NVVM::LoadCacheModifierKind::CG
                                    : NVVM::LoadCacheModifierKind::CA;
    auto op = NVVM::CpAsyncOp::create(b.builder, b.loc, to, from, unitBytes,
                                      modifier, bytes);
    if (hint)
      op->setAttr(kL2HintAttr, hint);
  }

  IndexBuilder b;
  Source source;
  tma::TileLayout layout;
  EvictionAttr hint;
  /// The size of one copy, in bytes and in columns.
  int64_t unitBytes, columns;
  Value memory;
};

} // namespace

void kvcache::emitAsyncCopy(OpBuilder &builder, TileCopyOpInterface copy,
                            Threads threads) {
  IndexBuilder b(builder, copy->getLoc());
  AsyncCopy(b, copy, getRowAlignment(copy.getViewType())).emit(threads);
}
