//===- TiledCache.cpp - Tiles of the tokens of a cache --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TiledCache.h"
#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/Formats.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/QuantizationOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/CachePolicy.h"
#include "kvcache/Support/Loops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::kvcache;

Swizzle kvcache::getMatrixSwizzle(int64_t columns) {
  // Spans of 64, 32 and 16 elements.
  if (columns % 64 == 0)
    return Swizzle::Span128;
  return columns % 32 == 0 ? Swizzle::Span64 : Swizzle::Span32;
}

TileType kvcache::getMatrixTile(Type lane, int64_t rows, int64_t columns) {
  return TileType::get(lane.getContext(), rows, columns, lane,
                       getMatrixSwizzle(columns));
}

/// Elements of 16 bits that a thread stores into a tile at once.
constexpr int64_t kUnit = 8;
/// Units of a raw tile that a thread loads before it converts one. Ids of
/// sparse rows take registers as well.
constexpr int64_t kRawLoads = 6, kGatheredRawLoads = 2;

void kvcache::emitAsyncFence(const Frame &frame) {
  NVVM::FenceProxyOp::create(
      frame.builder, frame.loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(frame.builder.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

TiledCache::TiledCache(const Frame &frame, AttentionOp op, Value cache,
                       int64_t size, const TilePlan &plan)
    : frame(frame), builder(frame.builder), loc(frame.loc), cache(cache),
      rope(size == op.getKeySize() ? op.getRopeCache() : Value()),
      lane(plan.multipliesRaw ? FloatType(builder.getF16Type())
                              : op.getTileElement(cache)),
      size(size), tokensOfTile(plan.tokens), stages(plan.stages),
      producers(plan.countProducerWarps()), threads(plan.countThreads()),
      mostLoads(plan.loads),
      unscaled(isUnscaled(op, cache) && !plan.multipliesRaw),
      gathered(op.getRows()), copied(isCopied(op, cache) || plan.multipliesRaw),
      raw(plan.raw && canBeRaw(op, cache)), multipliesRaw(plan.multipliesRaw),
      hint(plan.hint) {
  if (raw)
    stages = plan.raw;
  if (raw && rope)
    groupScales.emplace(frame, cache, size - op.getRopeSize(), tokensOfTile,
                        threads);
}

static CacheTypeInterface getCacheType(Value cache) {
  return cast<CacheTypeInterface>(cache.getType());
}

CacheTypeInterface TiledCache::getType() const { return getCacheType(cache); }

bool TiledCache::isCopied(AttentionOp op, Value cache) {
  CacheTypeInterface type = getCacheType(cache);
  return type.getElementType() == op.getTileElement(cache) &&
         !type.isQuantized() && !type.getLayout() && !op.getRopeCache();
}

/// Whether threads can convert the elements of rows in two caches from raw
/// tiles, in units of one group.
static bool canStagePair(AttentionOp op) {
  CacheTypeInterface type = getCacheType(op.getKeyCache());
  int64_t size = op.getKeySize() - op.getRopeSize();
  if (!type.isQuantized())
    return true;
  return type.getElementType().getIntOrFloatBitWidth() == 8 &&
         (!type.hasZeroPoints() && type.getTokenGranularity() == 1 &&
          multipliesInF32(type) && type.getGranularity() % kUnit == 0 &&
          size % type.getGranularity() == 0);
}

int64_t TiledCache::countPairBytes(AttentionOp op, int64_t tokens,
                                   int64_t tiles) {
  int64_t ropeSize = op.getRopeSize(), size = op.getKeySize() - ropeSize;
  auto countBytes = [](Value cache, int64_t elements) {
    Type element = getCacheType(cache).getElementType();
    return elements * element.getIntOrFloatBitWidth() / 8;
  };
  return tiles * tokens *
             (countBytes(op.getKeyCache(), size) +
              countBytes(op.getRopeCache(), ropeSize)) +
         GroupScales::countBytes(op.getKeyCache(), size, tokens);
}

bool TiledCache::canBeRaw(AttentionOp op, Value cache) {
  if (op.getRopeCache())
    return canStagePair(op);
  CacheTypeInterface type = getCacheType(cache);
  return type.getElementType().getIntOrFloatBitWidth() == 8 &&
         !type.getLayout() && (!type.isQuantized() || isUnscaled(op, cache));
}

bool TiledCache::isUnscaled(AttentionOp op, Value cache) {
  // Scales may make weights of f16 infinite.
  bool isWeighed = !op.getValueCache() || cache == op.getValueCache();
  return !op.getRopeCache() && hasTokenScales(getCacheType(cache)) &&
         !(isWeighed && op.getTileElement(cache).isF16());
}

// Products have whole groups. Those of many groups would take more registers
// than there are. Two warps may share the sums of a larger row.
bool TiledCache::canMultiplyRaw(Value cache, int64_t size) {
  constexpr int64_t productSize = 16, small = 128;
  int64_t loadSize = size <= small ? 32 : 64,
          mostGroups = size <= small ? 4 : 1;
  CacheTypeInterface type = getCacheType(cache);
  Type element = type.getElementType();
  if (!hasUse(element, FormatUse::FP8) && !element.isSignlessInteger(8))
    return false;
  int64_t groups = countScaleGroups(cache, size);
  return !type.getLayout() && !type.hasZeroPoints() && multipliesInF32(type) &&
         type.getTokenGranularity() == 1 && size % loadSize == 0 &&
         (groups <= 1 ||
          (type.getGranularity() % productSize == 0 &&
           size % type.getGranularity() == 0 && groups <= mostGroups));
}

int64_t TiledCache::countAhead() const {
  if (raw)
    return stages;
  return copied ? stages - 1 : 0;
}

// Without a swizzle, a box or the copy of a row by id has whole rows. Threads
// that copy rows of tokens take fewer instructions with one.
TileType TiledCache::getRawTile() const {
  constexpr int64_t widest = 256;
  bool hasBoxes = frame.target.has(Feature::TMA);
  bool isPlain = !multipliesRaw && (size <= widest || gathered || hasBoxes);
  return getRawTile(isPlain ? Swizzle::None : getRawSwizzle());
}

TileType TiledCache::getRawTile(Swizzle swizzle) const {
  return TileType::get(builder.getContext(), tokensOfTile, size,
                       getType().getElementType(), swizzle);
}

Swizzle TiledCache::getRawSwizzle() const {
  constexpr int64_t bytesOfLane = 2;
  return getMatrixSwizzle(size / bytesOfLane);
}

void TiledCache::allocate() {
  TileType type = getMatrixTile(lane, tokensOfTile, size);
  auto allocatePipe = [&](ArrayRef<Type> types) {
    pipe = PipeOp::create(
        builder, loc,
        PipeType::get(builder.getContext(), stages, types, producers));
  };
  if (isCopied())
    return allocatePipe(Type(multipliesRaw ? getRawTile() : type));
  if (groupScales) {
    SmallVector<Type> types;
    for (const Field &field : getFields())
      types.push_back(TileType::get(
          builder.getContext(), tokensOfTile, field.size,
          getCacheType(field.cache).getElementType(), Swizzle::None));
    allocatePipe(types);
    groupScales->allocate();
  } else if (raw) {
    allocatePipe(Type(getRawTile()));
  }
  auto allocateTile = [&](TileType type) {
    return AllocTileOp::create(builder, loc, type, IntegerAttr());
  };
  tile = allocateTile(type);
  if (unscaled)
    scales = allocateTile(TileType::get(builder.getContext(), 1, tokensOfTile,
                                        builder.getF32Type(), Swizzle::None));
}

/// Creates the block of a region that has the tiles of a pipe.
static Block *createPipeBody(OpBuilder &builder, Location loc, Region &region,
                             Value pipe) {
  ArrayRef<Type> types = cast<PipeType>(pipe.getType()).getTiles();
  SmallVector<Location> locs(types.size(), loc);
  return builder.createBlock(&region, {}, types, locs);
}

void TiledCache::copyField(Value from, Value target, Value tile, Value token,
                           const TiledTokens &tokens) const {
  if (tokens.ids)
    AsyncGatherTileOp::create(builder, loc, from, tokens.head, frame.index(0),
                              tokens.ids->getMemory(tile), target,
                              /*descriptor=*/Value(), CopyKindAttr(), hint);
  else
    AsyncLoadTileOp::create(
        builder, loc, from, tokens.batch, tokens.head, token, frame.index(0),
        frame.sub(tokens.all.to, token), target,
        /*descriptor=*/Value(), /*zeros=*/Value(),
        builder.getI64IntegerAttr(tokens.alignment), CopyKindAttr(),
        /*multicast=*/false, hint);
}

void TiledCache::copy(Value use, Value tile, Value token,
                      const TiledTokens &tokens) const {
  if (!pipe)
    return;
  auto produce = ProduceOp::create(builder, loc, pipe, use);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = createPipeBody(builder, loc, produce.getBody(), pipe);
  for (auto [field, target] :
       llvm::zip_equal(getFields(), body->getArguments()))
    copyField(field.cache, target, tile, token, tokens);
  YieldOp::create(builder, loc);
}

void TiledCache::fill(Value thread, Value use, Value tile, Value token,
                      const TiledTokens &tokens) const {
  if (isCopied())
    return;
  Source source{tile, token, tokens};
  std::function<void()> storeScales;
  // Ids take the registers in which scales would wait.
  if (scales && tokens.ids && !raw)
    loadScales(thread, source)();
  else if (scales)
    storeScales = loadScales(thread, source);
  if (raw) {
    useOfPipe(use, {}, [&](ValueRange rawTiles) {
      clearUnseen(thread, rawTiles, token, tokens);
      if (groupScales)
        fillFromPair(thread, rawTiles, tile);
      else
        storeUnits(
            thread, size, kUnit, gathered ? kGatheredRawLoads : kRawLoads,
            [&](Value number) { return loadRawUnit(rawTiles[0], number); });
      return SmallVector<Value>();
    });
  } else {
    for (const Field &field : getFields())
      fillField(thread, source, field);
  }
  if (storeScales)
    storeScales();
}

SmallVector<TiledCache::Field> TiledCache::getFields() const {
  if (!rope)
    return {{cache, 0, size}};
  int64_t ropeSize = getCacheType(rope).getHeadSize();
  return {{cache, 0, size - ropeSize}, {rope, size - ropeSize, ropeSize}};
}

void TiledCache::fillField(Value thread, const Source &source,
                           const Field &field) const {
  int64_t bits =
      getCacheType(field.cache).getElementType().getIntOrFloatBitWidth();
  int64_t width = getLanes(field.cache, field.size,
                           std::min<int64_t>(2 * kUnit, 128 / bits));
  storeUnits(thread, field.size, width, mostLoads, [&](Value number) {
    return loadUnit(source, field, width, number);
  });
}

// One tile of a thread block needs it: few instructions matter.
void TiledCache::clearRows(Value thread, Value copiedTile, Value rows) const {
  constexpr int64_t unitBits = 128;
  auto type = cast<TileType>(copiedTile.getType());
  Type element = type.getElementType();
  int64_t width = unitBits / element.getIntOrFloatBitWidth();
  int64_t units = type.getColumns() / width;
  auto vector = VectorType::get(width, element);
  Value zeros =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vector));
  auto loop = scf::ForOp::create(builder, loc, thread, frame.mul(rows, units),
                                 frame.index(threads));
  disableUnrolling(loop);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  TileStoreOp::create(builder, loc, zeros, copiedTile, frame.div(number, units),
                      frame.mul(frame.rem(number, units), width));
}

void TiledCache::clearUnseen(Value thread, ValueRange copiedTiles,
                             Value firstToken, const TiledTokens &tokens,
                             std::optional<int64_t> barrier) const {
  if (!tokens.begin || !hasCopies())
    return;
  Value rows = frame.sub(tokens.begin, firstToken);
  frame.runIf(frame.less(frame.index(0), rows), [&] {
    for (Value copiedTile : copiedTiles)
      clearRows(thread, copiedTile, rows);
    // Products of whole tiles, and the next copy, are of another proxy.
    if (frame.target.has(Feature::TMA))
      emitAsyncFence(frame);
    if (barrier)
      NVVM::BarrierOp::create(builder, loc, TypeRange(), frame.i32(*barrier),
                              frame.i32(threads), /*reductionOp=*/{},
                              /*reductionPredicate=*/Value());
    else
      gpu::BarrierOp::create(builder, loc);
  });
}

void TiledCache::storeUnits(Value thread, int64_t columns, int64_t width,
                            int64_t mostLoads,
                            function_ref<Unit(Value number)> load) const {
  int64_t all = tokensOfTile * (columns / width);
  int64_t loads =
      raw ? getDivisorUpTo(std::max<int64_t>(all / threads, 1), mostLoads)
          : std::clamp<int64_t>(all / threads, 1, mostLoads);
  int64_t step = loads * threads;
  frame.loop(
      frame.index(0), frame.index(all), frame.index(step), [&](Value base) {
        SmallVector<std::pair<Value, Unit>> loaded;
        for (int64_t i = 0; i < loads; ++i) {
          Value stepThread = frame.add(thread, frame.index(i * threads));
          Value number = frame.add(base, stepThread);
          loaded.emplace_back(number, load(number));
        }
        for (const auto &[number, unit] : loaded) {
          Value isInTile;
          if (all % step)
            isInTile = frame.below(number, frame.index(all));
          runIfGiven(frame, isInTile, [&, &unit = unit] { storeUnit(unit); });
        }
      });
}

std::pair<Place, Value> TiledCache::getPlace(Value tile, Value token,
                                             const TiledTokens &tokens,
                                             Value row) const {
  if (!tokens.ids) {
    Value last = frame.sub(tokens.all.to, frame.index(1));
    Value ownToken = frame.min(frame.add(token, row), last);
    if (tokens.begin)
      ownToken = frame.max(ownToken, tokens.begin);
    return {{tokens.batch, ownToken, Value()}, Value()};
  }
  // Some threads have rows after the last.
  row = frame.min(row, frame.index(tokensOfTile - 1));
  Value id = tokens.ids->get(tile, row, 1);
  Value safe = frame.fromI32(frame.max(id, frame.i32(0)));
  return {getPlaceOfRow(frame, cache, safe), tokens.ids->isRow(id)};
}

/// Zeros unless the condition is null or holds.
static Value selectIfGiven(const Frame &frame, Value condition, Value value) {
  if (!condition)
    return value;
  Value zero = arith::ConstantOp::create(
      frame.builder, frame.loc, frame.builder.getZeroAttr(value.getType()));
  return arith::SelectOp::create(frame.builder, frame.loc, condition, value,
                                 zero);
}

TiledCache::Unit TiledCache::loadUnit(const Source &source, const Field &field,
                                      int64_t width, Value number) const {
  int64_t units = field.size / width;
  Value row = frame.div(number, units);
  Value d = frame.mul(frame.rem(number, units), width);
  auto [place, isRow] = getPlace(source, row);
  Value head = source.tokens.head;
  Value elements =
      unscaled ? loadUnscaled(frame, field.cache, place, head, d, width, lane,
                              isStreamed(hint))
               : loadElements(frame, field.cache, place, head, d, width, lane,
                              /*factor=*/Value(), isStreamed(hint));
  if (field.first)
    d = frame.add(d, frame.index(field.first));
  return {row, d, selectIfGiven(frame, isRow, elements)};
}

// Neighbouring threads have units of a row, and then of the next row of the
// same chunk: so they are in different banks, of raw tiles and of those that
// they store.
TiledCache::Unit TiledCache::loadRawUnit(Value rawTile, Value number) const {
  TileType type = getRawTile();
  // Some threads have units after the last.
  int64_t all = tokensOfTile * size / kUnit;
  if (all % threads)
    number = frame.min(number, frame.index(all - 1));
  // Chunks that a swizzle would have: their units are fewer instructions away.
  TileType order = gathered ? type : getRawTile(getRawSwizzle());
  int64_t columns = std::min(order.getLayout().getChunkColumns(), size);
  int64_t units = columns / kUnit;
  Value row = frame.div(number, units), first = frame.index(0);
  if (columns < size) {
    first = frame.mul(frame.div(row, tokensOfTile), columns);
    row = frame.rem(row, tokensOfTile);
  }
  Value d = frame.add(first, frame.mul(frame.rem(number, units), kUnit));
  Value elements = TileLoadOp::create(
      builder, loc, VectorType::get(kUnit, type.getElementType()), rawTile, row,
      d);
  Value one =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1));
  return {row, d,
          DequantizeOp::create(builder, loc, VectorType::get(kUnit, lane),
                               elements, one, /*tensor_scale=*/Value())};
}

// Threads beside each other have units of one row: no bank serves two of them.
void TiledCache::fillFromPair(Value thread, ValueRange rawTiles,
                              Value tile) const {
  for (auto [field, rawTile] : llvm::zip_equal(getFields(), rawTiles)) {
    int64_t units = field.size / kUnit, all = tokensOfTile * units;
    auto vector = VectorType::get(
        kUnit, cast<TileType>(rawTile.getType()).getElementType());
    bool isNarrow = vector.getElementTypeBitWidth() == 8;
    auto load = [&, &field = field, rawTile = rawTile](Value number) -> Unit {
      // Some threads have units after the last.
      if (all % threads)
        number = frame.min(number, frame.index(all - 1));
      Value row = frame.div(number, units);
      Value d = frame.mul(frame.rem(number, units), kUnit);
      Value elements =
          TileLoadOp::create(builder, loc, vector, rawTile, row, d);
      if (isNarrow)
        elements = DequantizeOp::create(
            builder, loc, VectorType::get(kUnit, lane), elements,
            groupScales->get(tile, row, d), /*tensor_scale=*/Value());
      return {row, frame.add(d, frame.index(field.first)), elements};
    };
    storeUnits(thread, field.size, kUnit, mostLoads, load);
  }
}

std::function<void()>
TiledCache::loadGroupScales(Value thread, Value tile, Value token,
                            const TiledTokens &tokens) const {
  return groupScales->load(thread, tokens.head, tile, [&](Value row) {
    return getPlace(tile, token, tokens, row);
  });
}

void TiledCache::storeUnit(const Unit &unit) const {
  int64_t width = cast<VectorType>(unit.elements.getType()).getNumElements();
  for (int64_t i = 0; i < width; i += kUnit) {
    Value elements = unit.elements;
    if (width > kUnit)
      elements = vector::ExtractStridedSliceOp::create(
          builder, loc, elements, ArrayRef<int64_t>{i},
          ArrayRef<int64_t>{kUnit}, ArrayRef<int64_t>{1});
    TileStoreOp::create(builder, loc, elements, tile, unit.row,
                        frame.add(unit.d, frame.index(i)));
  }
}

std::function<void()> TiledCache::loadScales(Value thread,
                                             const Source &source) const {
  SmallVector<std::pair<Value, Value>> loaded;
  for (int64_t i = 0; i < tokensOfTile; i += threads) {
    Value row = frame.add(thread, frame.index(i));
    auto [place, isRow] = getPlace(source, row);
    Value scale = loadTokenScale(frame, cache, place, source.tokens.head);
    loaded.emplace_back(row, selectIfGiven(frame, isRow, scale));
  }
  return [this, loaded] {
    for (auto [row, scale] : loaded) {
      Value isInTile;
      if (tokensOfTile % threads)
        isInTile = frame.below(row, frame.index(tokensOfTile));
      runIfGiven(frame, isInTile, [&, row = row, scale = scale] {
        TileStoreOp::create(builder, loc, scale, scales, frame.index(0), row);
      });
    }
  };
}

SmallVector<Value>
TiledCache::use(Value number, TypeRange types,
                function_ref<SmallVector<Value>(Value)> body) const {
  if (tile)
    return body(tile);
  return useOfPipe(number, types,
                   [&](ValueRange tiles) { return body(tiles[0]); });
}

SmallVector<Value>
TiledCache::useOfPipe(Value number, TypeRange types,
                      function_ref<SmallVector<Value>(ValueRange)> body) const {
  auto consume = ConsumeOp::create(builder, loc, types, pipe, number);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = createPipeBody(builder, loc, consume.getBody(), pipe);
  YieldOp::create(builder, loc, body(block->getArguments()));
  return SmallVector<Value>(consume.getResults());
}

Value TiledCache::getScale(Value column) const {
  return TileLoadOp::create(builder, loc, builder.getF32Type(), scales,
                            frame.index(0), column);
}
