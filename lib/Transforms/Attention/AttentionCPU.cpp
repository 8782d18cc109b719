//===- AttentionCPU.cpp - Expand kvcache.attention for the CPU ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "AttentionSizes.h"
#include "MaskBounds.h"
#include "RowNormalizer.h"
#include "ScoreMath.h"
#include "ScoreRegions.h"
#include "SeenRanges.h"
#include "TokenLoader.h"
#include "VisibleTokens.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Tokens whose scores one vector has.
constexpr int64_t kTile = 16;
/// Vectors of products that are summed at once, of all rows together.
constexpr int64_t kVectors = 16;
/// Floats that are computed with at once.
constexpr int64_t kLanes = 16;
/// Bytes of the queries and sums of a block of rows.
constexpr int64_t kBlockBytes = 1 << 18;
/// Bytes of a token that are read one after the other, where it has as many.
constexpr int64_t kTokenBytes = 1 << 10;

/// One pass over the keys for a block of query rows: the rows of all heads that
/// share a head of the cache, of one or several tokens, for several heads.
/// Keys and values become f32 once for all rows of the block, `kTile` tokens at
/// a time. The next ones are prefetched while these are multiplied. Up to four
/// rows of one token are computed at once, so that a loaded key or value serves
/// all of them. Softmax is online, and in base 2.
class CPUAttention {
public:
  CPUAttention(AttentionOp op, const Frame &frame)
      : op(op), frame(frame), builder(frame.builder), loc(frame.loc), f(frame),
        sizes(op), math(frame, op), visible(frame, op), loader(frame, op),
        normalizer(frame, op), ranges(frame, op), heads(sizes.heads),
        group(sizes.group), keySize(sizes.keySize), valueSize(sizes.valueSize),
        contentSize(sizes.contentSize), keyLanes(getKeyLanes(op, contentSize)),
        valueLanes(getLanes(op.getValues(), valueSize, kLanes)),
        together(std::gcd(group, 4)),
        columns(std::min<int64_t>(8, kVectors / together)) {
    auto cache = cast<CacheTypeInterface>(op.getKeyCache().getType());
    int64_t bits = keySize * cache.getElementType().getIntOrFloatBitWidth();
    chunk = getDivisorUpTo(
        heads, std::max<int64_t>(llvm::divideCeil(8 * kTokenBytes, bits), 1));
    int64_t rows = kBlockBytes / (4 * (keySize + valueSize) * chunk);
    block = std::max(rows / together, int64_t(1)) * together;
  }

  void expand() {
    allocate();
    factor = math.getFactor();
    Value blocks = op.getRows() ? frame.countRows(op.getRowOffsets())
                                : frame.sub(frame.dim(op.getRowOffsets(), 0),
                                            frame.index(1));
    Value chunks = frame.index(heads / chunk);
    frame.forBlocks({blocks, chunks}, {1, 1}, [&](ValueRange id) {
      rows = op.getRows() ? getSparseRow(frame, op, id[0])
                          : loadRowsAndTokens(frame, op, id[0]);
      Value all = frame.mul(rows.count, group);
      // With many rows, those of one head are enough for a cache.
      Value isFew = frame.below(all, frame.index(block + 1));
      auto choose = [&](int64_t few, int64_t many) -> Value {
        return arith::SelectOp::create(builder, loc, isFew, frame.index(few),
                                       frame.index(many));
      };
      headsAtOnce = choose(chunk, 1);
      Value most = choose(block, chunk * block);
      Value begin = frame.mul(id[1], chunk);
      Value end = frame.add(begin, frame.index(chunk));
      frame.loop(begin, end, headsAtOnce, [&](Value head) {
        firstHead = head;
        frame.loop(frame.index(0), all, most, [&](Value first) {
          attend(first, frame.min(frame.sub(all, first), most));
        });
      });
    });
  }

private:
  /// Elements of a key, or a query, that are loaded at once: those of one
  /// array.
  static int64_t getKeyLanes(AttentionOp op, int64_t contentSize) {
    int64_t own = cast<MemRefType>(op.getQ().getType()).getDimSize(2);
    int64_t border = std::gcd(std::gcd(own, op.getKeySize()), contentSize);
    return getLanes(op.getKeyCache(), border, kLanes);
  }

  /// Where a row of the block is among queries and outputs, or the first of
  /// several rows of a token.
  struct Row {
    Value inBlock, i, row, head;
    /// Whether it is the first one of the head in the block.
    Value isFirst;
  };

  /// Memory of the whole function, so that loops around the op add none.
  Value allocate(ArrayRef<int64_t> shape) {
    return memref::AllocaOp::create(
        builder, loc, MemRefType::get(shape, builder.getF32Type()),
        builder.getI64IntegerAttr(64));
  }

  void allocate() {
    OpBuilder::InsertionGuard guard(builder);
    if (auto function = op->getParentOfType<FunctionOpInterface>())
      builder.setInsertionPointToStart(&function.getFunctionBody().front());
    queries = allocate({chunk * block, keySize});
    sums = allocate({chunk * block, valueSize});
    maxima = allocate({chunk * block});
    totals = allocate({chunk * block});
    keyTile = allocate({kTile, keySize});
    valueTile = op.getValueCache() ? allocate({kTile, valueSize}) : keyTile;
    auto allocateScales = [&](Value cache) {
      return loader.isUnscaled(cache) ? allocate({kTile}) : Value();
    };
    keyScales = allocateScales(op.getKeyCache());
    valueScales =
        op.getValueCache() ? allocateScales(op.getValueCache()) : keyScales;
    if (op.getRows())
      ids = memref::AllocaOp::create(
          builder, loc, MemRefType::get(kTile, builder.getI32Type()));
  }

  /// Runs `body` for each head that is computed at once.
  void forHeads(function_ref<void()> body) {
    frame.loop(frame.index(0), headsAtOnce, frame.index(1), [&](Value h) {
      head = frame.add(firstHead, h);
      firstOfHead = frame.mul(h, block);
      body();
    });
  }

  /// Runs `body` for every `step`-th row of the head.
  void forRows(Value first, Value count, int64_t step,
               function_ref<void(const Row &)> body) {
    frame.loop(frame.index(0), count, frame.index(step), [&](Value r) {
      Value number = frame.add(first, r);
      Value i = frame.div(number, group), g = frame.rem(number, group);
      body({frame.add(firstOfHead, r), i, frame.add(rows.first, i),
            frame.add(frame.mul(head, group), g),
            frame.equal(r, frame.index(0))});
    });
  }

  /// Computes `count` rows of each head from `first` on.
  void attend(Value first, Value count) {
    Value one = frame.index(1);
    Value last = frame.sub(frame.add(first, count), one);
    Value firstRow = frame.div(first, group), lastRow = frame.div(last, group);
    auto [from, to] = visible.restrict(rows, firstRow, lastRow,
                                       getSeenByRows(firstRow, lastRow));
    forHeads([&] {
      forRows(first, count, 1, [&](const Row &row) { beginRow(row); });
    });
    Value lastToken = frame.sub(to, one);
    frame.loop(from, to, frame.index(kTile), [&](Value tile) {
      forHeads([&] {
        loadTiles(tile, lastToken);
        forRows(first, count, together, [&](const Row &row) {
          TokenRange seen = visible.get(rows, row.i);
          Value end = frame.add(tile, frame.index(kTile));
          Value isAny =
              arith::AndIOp::create(builder, loc, frame.less(tile, seen.to),
                                    frame.less(seen.from, end));
          if (Region *mask = op.getMaskRegion())
            isAny = arith::AndIOp::create(builder, loc, isAny,
                                          isAnyAdmitted(*mask, row, tile));
          if (ranges.hasGaps())
            isAny = arith::AndIOp::create(
                builder, loc, isAny,
                ranges.computePairs(row.row, {tile, end}).any);
          frame.runIf(isAny, [&] { addTile(row, tile, seen, lastToken); });
        });
      });
    });
    forHeads([&] {
      forRows(first, count, 1, [&](const Row &row) { endRow(row); });
    });
  }

  /// The tokens that some rows see, by their positions and ranges.
  TokenRange getSeenByRows(Value first, Value last) {
    TokenRange seen{visible.getByPosition(rows, first).from,
                    visible.getByPosition(rows, last).to};
    if (!op.getRanges())
      return seen;
    Value count = frame.sub(frame.add(last, frame.index(1)), first);
    TokenRange hull = ranges
                          .computeHulls(frame.add(rows.first, first), count,
                                        /*lane=*/Value())
                          .any;
    return {frame.max(seen.from, hull.from), frame.min(seen.to, hull.to)};
  }

  /// Whether the region `mask` may admit a token of a tile for rows of a token.
  Value isAnyAdmitted(Region &mask, const Row &row, Value tile) {
    Value query = getQueryPosition(frame, op, rows, row.i);
    Value lastHead = together == 1
                         ? row.head
                         : frame.add(row.head, frame.index(together - 1));
    RowBox box{rows.batch, {row.head, lastHead}, {query, query}, rows.tokens};
    Value last = frame.add(tile, frame.index(kTile - 1));
    return computePairs(frame, mask, box, {tile, last}).any;
  }

  //===--------------------------------------------------------------------===//
  // Memory of floats
  //===--------------------------------------------------------------------===//

  Value load(Value memref, ValueRange indices) {
    return memref::LoadOp::create(builder, loc, memref, indices);
  }
  void store(Value value, Value memref, ValueRange indices) {
    memref::StoreOp::create(builder, loc, value, memref, indices);
  }
  Value loadVector(Value memref, Value row, Value d, int64_t lanes) {
    return vector::LoadOp::create(builder, loc, f.vectorOf(lanes), memref,
                                  ValueRange{row, d});
  }
  void storeVector(Value value, Value memref, Value row, Value d) {
    vector::StoreOp::create(builder, loc, value, memref, ValueRange{row, d});
  }

  /// Numbers of the rows that are computed at once.
  Value loadOfRows(Value memref, const Row &first) {
    return vector::LoadOp::create(builder, loc, f.vectorOf(together), memref,
                                  first.inBlock);
  }
  void storeOfRows(Value numbers, Value memref, const Row &first) {
    vector::StoreOp::create(builder, loc, numbers, memref, first.inBlock);
  }

  /// The scales of the tokens of the tile.
  Value loadScales(Value scales) {
    return vector::LoadOp::create(builder, loc, f.vectorOf(kTile), scales,
                                  frame.index(0));
  }

  /// Runs `body` with the first element of each piece of a row.
  void forPieces(int64_t size, int64_t lanes, function_ref<void(Value)> body) {
    frame.loop(frame.index(0), frame.index(size), frame.index(lanes), body);
  }

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  /// The rows of the tiles that are loaded: groups of `columns` with a token.
  /// Other groups are not multiplied, but the scales of all tokens are.
  Value countRows(Value tile, Value lastToken) {
    if (op.getRows() || keyScales || valueScales)
      return frame.index(kTile);
    Value count = frame.add(frame.sub(lastToken, tile), frame.index(columns));
    Value groups = frame.div(count, frame.index(columns));
    return frame.min(frame.mul(groups, frame.index(columns)),
                     frame.index(kTile));
  }

  /// Converts tokens from `tile` on to f32. Those after the last are copies of
  /// it, and those of negative ids zeros.
  void loadTiles(Value tile, Value lastToken) {
    frame.loop(frame.index(0), countRows(tile, lastToken), frame.index(1),
               [&](Value j) {
                 Value token = frame.min(frame.add(tile, j), lastToken);
                 if (op.getRows())
                   return loadRowOfId(token, j);
                 loadToken(j, loader.getPlace(rows, token, Value()));
               });
    if (!op.getRows())
      return;
    Value given = vector::LoadOp::create(
        builder, loc, VectorType::get(kTile, builder.getI32Type()), ids,
        frame.index(0));
    isGiven = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::sge, given,
        arith::ConstantOp::create(builder, loc,
                                  builder.getZeroAttr(given.getType())));
  }

  /// Prefetches row `j` of the tile after `tile`.
  void prefetch(Value tile, Value j, Value lastToken) {
    Value token = frame.add(tile, frame.add(j, frame.index(kTile)));
    token = frame.min(token, lastToken);
    Value id, isToken;
    if (op.getRows()) {
      id = loader.loadId(rows, token);
      isToken = frame.less(frame.index(-1), id);
    }
    runIfGiven(frame, isToken, [&] {
      Place place = loader.getPlace(rows, token, id);
      prefetchElements(frame, op.getKeyCache(), place, head, contentSize);
      if (op.getRopeCache())
        prefetchElements(frame, op.getRopeCache(), place, head,
                         op.getRopeSize());
      if (op.getValueCache())
        prefetchElements(frame, op.getValueCache(), place, head, valueSize);
    });
  }

  /// The token of an id, which is read once.
  void loadRowOfId(Value column, Value j) {
    Value id = loader.loadId(rows, column);
    store(frame.toI32(id), ids, j);
    scf::IfOp::create(
        builder, loc, frame.less(id, frame.index(0)),
        [&](OpBuilder &, Location) {
          loadToken(j, std::nullopt);
          scf::YieldOp::create(builder, loc);
        },
        [&](OpBuilder &, Location) {
          loadToken(j, loader.getPlace(rows, column, id));
          scf::YieldOp::create(builder, loc);
        });
  }

  /// Stores row `j` of the tiles: a token, or zeros.
  void loadToken(Value j, const std::optional<Place> &place) {
    auto loadElements = [&](Value cache, Value tile, int64_t first,
                            int64_t size, int64_t lanes) {
      forPieces(size, lanes, [&](Value d) {
        storeVector(place ? loader.load(cache, *place, head, d, lanes,
                                        builder.getF32Type())
                          : f.constant(f.vectorOf(lanes), 0),
                    tile, j, first ? frame.add(d, frame.index(first)) : d);
      });
    };
    auto load = [&](Value cache, Value tile, Value scales, int64_t size,
                    int64_t lanes) {
      loadElements(cache, tile, 0, size, lanes);
      if (scales)
        store(place ? loadTokenScale(frame, cache, *place, head)
                    : f.constant(0),
              scales, j);
    };
    load(op.getKeyCache(), keyTile, keyScales, contentSize, keyLanes);
    if (op.getRopeCache())
      loadElements(op.getRopeCache(), keyTile, contentSize, op.getRopeSize(),
                   keyLanes);
    if (op.getValueCache())
      load(op.getValueCache(), valueTile, valueScales, valueSize, valueLanes);
  }

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  void beginRow(const Row &row) {
    checkRow(frame, op, row.row);
    Type f32 = builder.getF32Type();
    Value factors = f.splat(math.getFactor(factor, head, row.head), keyLanes);
    forPieces(keySize, keyLanes, [&](Value d) {
      Value q =
          loadJoined(frame, getQueries(op), {row.row, row.head}, d, keyLanes);
      storeVector(f.mul(convertLanes(frame, q, f32), factors), queries,
                  row.inBlock, d);
    });
    forPieces(valueSize, valueLanes, [&](Value d) {
      storeVector(f.constant(f.vectorOf(valueLanes), 0), sums, row.inBlock, d);
    });
    store(f.constant(kLowest), maxima, row.inBlock);
    store(f.constant(0), totals, row.inBlock);
  }

  /// Adds the tokens of a tile to the sums of rows that see the same. The first
  /// rows prefetch in between their products, so that memory is always busy.
  void addTile(const Row &row, Value tile, const TokenRange &seen,
               Value lastToken) {
    prefetchSome = [=, this](int64_t first) {
      frame.runIf(row.isFirst, [&] {
        for (int64_t j = first; j < first + columns / 2; ++j)
          prefetch(tile, frame.index(j), lastToken);
      });
    };
    Value flags = getFlags(row, tile, seen);
    Value lowest = f.constant(f.vectorOf(kTile), kLowest);
    Value none = f.constant(f.vectorOf(kTile), 0);
    SmallVector<Value> isSeen, scores, weights;
    for (Value rowScores : computeScores(row, tile, seen)) {
      isSeen.push_back(math.isAdmitted(flags, rowScores));
      scores.push_back(f.select(isSeen.back(), rowScores, lowest));
    }
    // A NaN among the scores of a row makes its sums NaN in any case.
    Value oldMax = loadOfRows(maxima, row);
    Value newMax = f.larger(oldMax, f.maximaOf(scores));
    Value shrinks = f.exp2(f.sub(oldMax, newMax));
    for (auto [k, rowScores] : llvm::enumerate(scores)) {
      Value max = vector::ExtractOp::create(builder, loc, newMax, k);
      Value powers = f.exp2(f.sub(rowScores, f.splat(max, kTile)));
      weights.push_back(f.select(isSeen[k], powers, none));
    }
    Value total = f.fma(loadOfRows(totals, row), shrinks, f.sumsOf(weights));
    storeOfRows(newMax, maxima, row);
    storeOfRows(total, totals, row);
    if (valueScales)
      for (auto [k, weight] : llvm::enumerate(weights))
        weight =
            f.select(isSeen[k], f.mul(weight, loadScales(valueScales)), none);
    // A value that is not seen may be no number.
    Value all = isSeen.front();
    if (!llvm::all_equal(isSeen))
      for (Value others : ArrayRef(isSeen).drop_front())
        all = arith::AndIOp::create(builder, loc, all, others);
    Value isAll = vector::ReductionOp::create(builder, loc,
                                              vector::CombiningKind::AND, all);
    scf::IfOp::create(
        builder, loc, isAll,
        [&](OpBuilder &, Location) {
          addValues(row, tile, seen, weights, shrinks, {});
          scf::YieldOp::create(builder, loc);
        },
        [&](OpBuilder &, Location) {
          addValues(row, tile, seen, weights, shrinks, isSeen);
          scf::YieldOp::create(builder, loc);
        });
  }

  Value splatIndex(Value value) {
    auto type = VectorType::get(kTile, builder.getIndexType());
    return vector::BroadcastOp::create(builder, loc, type, value);
  }

  /// The numbers of the tokens of a tile.
  Value getTokens(Value tile) {
    auto steps = llvm::to_vector(llvm::seq<int64_t>(0, kTile));
    Value step = arith::ConstantOp::create(builder, loc,
                                           builder.getIndexVectorAttr(steps));
    return arith::AddIOp::create(builder, loc, splatIndex(tile), step);
  }

  /// Which tokens of a tile the row sees by position.
  Value getFlags(const Row &row, Value tile, const TokenRange &seen) {
    auto splat = [&](Value value) { return splatIndex(value); };
    auto both = [&](Value lhs, Value rhs) -> Value {
      return arith::AndIOp::create(builder, loc, lhs, rhs);
    };
    auto compare = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
      return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs)
          .getResult();
    };
    Value tokens = getTokens(tile);
    Value flags =
        both(compare(arith::CmpIPredicate::sge, tokens, splat(seen.from)),
             compare(arith::CmpIPredicate::slt, tokens, splat(seen.to)));
    if (op.getRows())
      flags = both(flags, isGiven);
    if (op.getMask())
      flags = both(flags, getUnmasked(row, tile, flags.getType()));
    if (!ranges.hasGaps())
      return flags;
    auto maskGap = [&](Value number, ValueRange carried) -> SmallVector<Value> {
      TokenRange gap = ranges.getGap(row.row, number);
      Value isSeen = arith::OrIOp::create(
          builder, loc,
          compare(arith::CmpIPredicate::slt, tokens, splat(gap.from)),
          compare(arith::CmpIPredicate::sge, tokens, splat(gap.to)));
      return {both(carried.front(), isSeen)};
    };
    return ranges.forGaps(flags, maskGap).front();
  }

  Value getUnmasked(const Row &row, Value tile, Type type) {
    Value end = frame.add(tile, frame.index(kTile));
    auto allCached = [&]() -> Value {
      return arith::ConstantOp::create(
          builder, loc, DenseElementsAttr::get(cast<ShapedType>(type), true));
    };
    auto loadFlags = [&]() -> Value {
      SmallVector<Value> flags;
      for (int64_t j = 0; j < kTile; ++j)
        flags.push_back(
            visible.isUnmasked(rows, row.i, frame.add(tile, frame.index(j))));
      return vector::FromElementsOp::create(builder, loc,
                                            cast<VectorType>(type), flags);
    };
    if (op.getWholeMask())
      return loadFlags();
    return frame.selectIf(frame.less(rows.own, end), loadFlags, allCached);
  }

  /// The scores of the tokens of the tile, in base 2, of each row: -inf where a
  /// region excludes a token.
  SmallVector<Value> computeScores(const Row &row, Value tile,
                                   const TokenRange &seen) {
    SmallVector<SmallVector<Value>> products(together);
    for (int64_t first = 0; first < kTile; first += columns) {
      prefetchSome(first);
      addProducts(row, tile, seen, first, products);
    }
    ScoreRegions regions(frame, op, rows);
    if (!op.getModifiers().empty())
      regions.addColumn(getTokens(tile));
    SmallVector<Value> scores;
    for (auto [k, product] : llvm::enumerate(products)) {
      Value sums = f.sumsOf(product);
      if (keyScales)
        sums = f.mul(sums, loadScales(keyScales));
      regions.addRow(frame.add(row.head, frame.index(k)), row.i);
      scores.push_back(regions.apply(math.applySoftCap(sums), k, /*column=*/0));
    }
    return scores;
  }

  /// Whether the columns of a tile from `first` on have a token before the end
  /// of what a row sees. The first column does.
  Value hasColumn(Value tile, const TokenRange &seen, int64_t first) {
    return frame.less(frame.add(tile, frame.index(first)), seen.to);
  }

  /// Appends the products of `columns` tokens, whose elements are their sums;
  /// zeros if the row sees none of them.
  void addProducts(const Row &row, Value tile, const TokenRange &seen,
                   int64_t first, SmallVector<SmallVector<Value>> &products) {
    SmallVector<Value> zeros(together * columns,
                             f.constant(f.vectorOf(keyLanes), 0));
    ValueRange found;
    if (first == 0) {
      found = sumProducts(row, first, zeros);
    } else {
      auto sums = scf::IfOp::create(
          builder, loc, hasColumn(tile, seen, first),
          [&](OpBuilder &, Location) {
            scf::YieldOp::create(builder, loc, sumProducts(row, first, zeros));
          },
          [&](OpBuilder &, Location) {
            scf::YieldOp::create(builder, loc, zeros);
          });
      found = sums.getResults();
    }
    for (int64_t k = 0; k < together; ++k)
      llvm::append_range(products[k], found.slice(k * columns, columns));
  }

  /// The products of `columns` tokens, added to `zeros`.
  ValueRange sumProducts(const Row &row, int64_t first, ValueRange zeros) {
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(0), frame.index(keySize),
        frame.index(keyLanes), zeros,
        [&](OpBuilder &, Location, Value d, ValueRange carried) {
          SmallVector<Value> keys, next;
          for (int64_t j = first; j < first + columns; ++j)
            keys.push_back(loadVector(keyTile, frame.index(j), d, keyLanes));
          for (int64_t k = 0; k < together; ++k) {
            Value q = loadVector(
                queries, frame.add(row.inBlock, frame.index(k)), d, keyLanes);
            for (auto [j, key] : llvm::enumerate(keys))
              next.push_back(f.fma(q, key, carried[k * columns + j]));
          }
          scf::YieldOp::create(builder, loc, next);
        });
    return loop.getResults();
  }

  /// Adds the values of the tile, where `isSeen` is given those that each row
  /// sees.
  void addValues(const Row &row, Value tile, const TokenRange &seen,
                 ArrayRef<Value> weights, Value shrinks,
                 ArrayRef<Value> isSeen) {
    for (int64_t first = 0; first < kTile; first += columns) {
      prefetchSome(first + columns / 2);
      auto add = [&] { addValues(row, first, weights, shrinks, isSeen); };
      if (first == 0 || isSeen.empty())
        add();
      else
        frame.runIf(hasColumn(tile, seen, first), add);
    }
  }

  /// Adds `columns` values of the tile; the first ones shrink the sums.
  void addValues(const Row &row, int64_t first, ArrayRef<Value> weights,
                 Value shrinks, ArrayRef<Value> isSeen) {
    Value none = f.constant(f.vectorOf(valueLanes), 0);
    SmallVector<SmallVector<Value>> factors(together);
    for (int64_t k = 0; k < together; ++k)
      for (int64_t j = first; j < first + columns; ++j)
        factors[k].push_back(
            f.splat(vector::ExtractOp::create(builder, loc, weights[k], j),
                    valueLanes));
    auto selectSeen = [&](Value flags, SmallVector<Value> values) {
      for (auto [j, value] : llvm::enumerate(values))
        value =
            f.select(vector::ExtractOp::create(builder, loc, flags, first + j),
                     value, none);
      return values;
    };
    bool haveOneMask = llvm::all_equal(isSeen);
    forPieces(valueSize, valueLanes, [&](Value d) {
      SmallVector<Value> all;
      for (int64_t j = first; j < first + columns; ++j)
        all.push_back(loadVector(valueTile, frame.index(j), d, valueLanes));
      if (!isSeen.empty() && haveOneMask)
        all = selectSeen(isSeen.front(), all);
      for (int64_t k = 0; k < together; ++k) {
        SmallVector<Value> values =
            haveOneMask ? all : selectSeen(isSeen[k], all);
        Value inBlock = frame.add(row.inBlock, frame.index(k));
        Value sum = loadVector(sums, inBlock, d, valueLanes);
        if (first == 0)
          sum = f.mul(
              sum, f.splat(vector::ExtractOp::create(builder, loc, shrinks, k),
                           valueLanes));
        for (auto [factor, value] : llvm::zip_equal(factors[k], values))
          sum = f.fma(factor, value, sum);
        storeVector(sum, sums, inBlock, d);
      }
    });
  }

  //===--------------------------------------------------------------------===//
  // Outputs
  //===--------------------------------------------------------------------===//

  void endRow(const Row &row) {
    RowSum scores{load(maxima, row.inBlock), load(totals, row.inBlock),
                  f.constant(1)};
    RowSum sum = normalizer.addSink(scores, row.head);
    Value factors =
        f.splat(normalizer.getQuotient(sum, head, row.head), valueLanes);
    forPieces(valueSize, valueLanes, [&](Value d) {
      Value values = loadVector(sums, row.inBlock, d, valueLanes);
      storeDense(frame, f.mul(values, factors), op.getOut(),
                 {row.row, row.head}, d);
    });
    normalizer.storeStatistics(scores, sum, /*bias=*/0, row.row, row.head);
  }

  AttentionOp op;
  const Frame &frame;
  OpBuilder &builder;
  Location loc;
  DeviceMath f;
  AttentionSizes sizes;
  ScoreMath math;
  VisibleTokens visible;
  TokenLoader loader;
  RowNormalizer normalizer;
  SeenRanges ranges;
  int64_t heads, group, keySize, valueSize, contentSize;
  int64_t keyLanes, valueLanes;
  /// Rows that are computed at once: query heads of one token.
  int64_t together;
  /// Tokens whose products are summed at once.
  int64_t columns;
  /// Heads of which few rows are computed one after the other for each tile,
  /// and rows of a block of each.
  int64_t chunk, block;
  Value queries, sums, maxima, totals, keyTile, valueTile;
  /// The scales of the tokens of the tiles, or null.
  Value keyScales, valueScales;
  Value factor, head, headsAtOnce, firstHead, firstOfHead;
  QueryRows rows;
  /// The ids of the columns of the tile, and which are not negative; null
  /// unless rows are sparse.
  Value ids, isGiven;
  /// Prefetches a share of the tile after the one in use.
  std::function<void(int64_t first)> prefetchSome;
};

} // namespace

void kvcache::expandForCPU(AttentionOp op, const Frame &frame) {
  CPUAttention(op, frame).expand();
}
