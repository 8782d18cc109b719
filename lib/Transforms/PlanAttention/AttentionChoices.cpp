//===- AttentionChoices.cpp - How blocks divide attention -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The choices from the tables of AttentionTables.h.
//
//===----------------------------------------------------------------------===//

#include "../Builders/Heads.h"
#include "SharedBytes.h"
#include "TileStaging.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

int64_t getLanesPerStored(Value cache) {
  return cast<CacheTypeInterface>(cache.getType()).getLanesPerStored();
}

/// Whether queries can become f16: rows of bf16 are scaled, and the threads
/// that store a row, 8 elements each, find its largest element by shuffles.
bool canBecomeHalf(AttentionOp op, const AttentionShape &shape) {
  constexpr int64_t run = 8;
  int64_t runs = shape.keySize / run;
  return !getElementTypeOrSelf(op.getQ()).isBF16() ||
         (runs <= kWarp && llvm::isPowerOf2_64(runs));
}

/// Whether warps can dequantize keys and values in registers.
bool canDequantizeBoth(AttentionOp op, const AttentionShape &shape) {
  return shape.caches == Caches::Values && canBecomeHalf(op, shape) &&
         canDequantizeInRegisters(op.getKeyCache(), shape.keySize) &&
         canDequantizeInRegisters(op.getValues(), shape.valueSize);
}

/// Whether the config has a matrix instruction.
bool hasMma(const AttentionShape &shape) {
  return shape.config.mma && *shape.config.mma != MmaKind::None;
}

/// 0 without tensor cores.
int64_t chooseRows(AttentionOp op, const AttentionShape &shape) {
  if (shape.config.mma == MmaKind::None)
    return 0;
  if (shape.config.rows)
    return *shape.config.rows;
  if (!op.getTileObstacle().empty())
    return 0;
  const RowsChoice *choice = llvm::find_if(kRows, [&](const RowsChoice &row) {
    return shape.isOf(row.caches) && shape.isOf(row.tokens) &&
           shape.heads >= row.heads && shape.bits >= row.bits &&
           (row.rows || !hasMma(shape)) &&
           (!row.dequantizesInRegisters || canDequantizeBoth(op, shape));
  });
  int64_t most = choice != std::end(kRows) ? choice->rows : kMostFewRows;
  bool hasValues = shape.caches == Caches::Values;
  bool isFew = shape.tokens == Tokens::Ids ||
               (shape.tokens == Tokens::SequenceInSplits && hasValues);
  if (!isFew || !most)
    return most;
  int64_t tokens =
      shape.tokens == Tokens::Ids ? 1 : op.getSplitOrDefault().getRows();
  int64_t needed =
      llvm::PowerOf2Ceil(std::max(shape.heads * tokens, kLeastRows));
  return std::min(most, needed);
}

/// Warps or warpgroups that share an accumulator. Tensor memory has all of it.
/// A warp's share has whole products: of other values, one warp has all.
int64_t countAccShares(const TilesChoice &choice, const AttentionShape &shape) {
  int64_t most = shape.hasSplits ? choice.accOfSplits : choice.acc;
  bool isDivisible =
      choice.mma != MmaKind::Sync || shape.valueSize % (2 * kLeastColumns) == 0;
  return shape.valueSize > most && isDivisible ? 2 : 1;
}

/// With swapAB, the rows of products are 64 tokens, or elements of values.
bool fitsSwap(const TilesChoice &choice, const AttentionShape &shape) {
  if (choice.swap == Swap::Never)
    return true;
  return shape.config.swapAB.value_or(choice.swap == Swap::ByDefault) &&
         shape.valueSize % kRowsOfWarpgroup == 0;
}

/// Prompts whose products overlap the softmax: two warpgroups take turns, so
/// that a block has 128 rows.
bool isOverlapped(const AttentionShape &shape) {
  constexpr int64_t bits = 16;
  return shape.canOverlap && shape.bits == bits;
}

bool fits(const TilesChoice &choice, const AttentionShape &shape, int64_t rows,
          const Target &target) {
  // Fields that are set are kept.
  if (shape.config.mma && *shape.config.mma != choice.mma)
    return false;
  if (choice.rows && shape.config.rows && choice.rows != rows)
    return false;
  bool hasRows = (rows >= choice.leastRows && rows <= choice.mostRows) ||
                 (shape.config.rows && choice.rows == rows);
  // A warpgroup's share of a value, or the second product into tensor memory,
  // begins a span of the swizzle.
  constexpr int64_t span = 64, columnsOfProduct = 256;
  int64_t shares = choice.mma == MmaKind::Tcgen05
                       ? llvm::divideCeil(shape.valueSize, columnsOfProduct)
                       : countAccShares(choice, shape);
  if (choice.mma != MmaKind::Sync && shares > 1 &&
      shape.valueSize % (shares * span))
    return false;
  return target.has(choice.chips) && fitsSwap(choice, shape) &&
         shape.isOf(choice.caches) && shape.isOf(choice.tokens) &&
         shape.heads % choice.heads == 0 && hasRows &&
         (!choice.isOverlapped || isOverlapped(shape)) &&
         std::max(shape.keySize, shape.valueSize) <= choice.size;
}

/// Whether copies bring tiles of keys or values as they are.
bool isAnyCopied(AttentionOp op) {
  return areTilesCopied(op, op.getKeyCache()) ||
         areTilesCopied(op, op.getValues());
}

/// Whether copies bring all tiles as they are.
bool areAllCopied(AttentionOp op) {
  return areTilesCopied(op, op.getKeyCache()) &&
         areTilesCopied(op, op.getValues());
}

/// Loads of elements that a thread converts. The accumulator of a long row
/// leaves few registers for these. A tile of 64 rows of 576 bytes takes 9 times
/// as many of 256 threads.
int64_t countLoads(const TilesChoice &choice, const AttentionShape &shape) {
  constexpr int64_t longRow = 256;
  if (choice.mma == MmaKind::Tcgen05)
    return 9;
  if (shape.keySize <= longRow)
    return 4;
  return choice.mma == MmaKind::Wgmma ? 3 : 2;
}

/// Groups of elements of a key or a value that have scales of their own.
int64_t countMostGroups(AttentionOp op, const AttentionShape &shape) {
  return std::max(countScaleGroups(op.getKeyCache(), shape.keySize),
                  countScaleGroups(op.getValues(), shape.valueSize));
}

/// Whether warps dequantize in registers: each of them converts all elements.
bool dequantizesInRegisters(AttentionOp op, const AttentionShape &shape,
                            const TilePlan &plan) {
  constexpr int64_t mostRows = 32;
  return plan.mma == MmaKind::Sync && plan.rows <= mostRows &&
         shape.config.dequant != DequantPlace::Tile &&
         canDequantizeBoth(op, shape);
}

/// The blocks of a persistent kernel, or 0.
int64_t choosePersistentBlocks(AttentionOp op, const AttentionShape &shape,
                               const TilePlan &plan, const Target &target) {
  if (shape.config.persistent)
    return *shape.config.persistent;
  if (shape.tokens != Tokens::SequenceInSplits || !target.has(kPersistent))
    return 0;
  int64_t bytes = countSharedBytes(op, shape, plan);
  int64_t byMemory = target.sharedBytes / (bytes + kReserved);
  int64_t threadRegisters = kMostRegisters;
  if (plan.swapAB)
    threadRegisters =
        std::min(threadRegisters, kBesideAcc + plan.rows * shape.valueSize /
                                                   plan.countThreads());
  int64_t byRegisters = kRegisters / (threadRegisters * plan.countThreads());
  return kMultiprocessors *
         std::max<int64_t>(std::min(byMemory, byRegisters), 1);
}

/// The hint of reads of the cache by blocks, or warps, of so many query rows.
/// Splits of a sequence are read once if a block has all of its rows that are
/// split, for all heads of a group. The blocks of a prompt read the same
/// tokens, and sparse rows may name them as well.
EvictionAttr chooseHint(AttentionOp op, const AttentionShape &shape,
                        int64_t rows) {
  if (std::optional<Eviction> given = shape.config.l2Hint)
    return *given == Eviction::Normal
               ? EvictionAttr()
               : EvictionAttr::get(op.getContext(), *given);
  int64_t sequenceRows =
      shape.heads * static_cast<int64_t>(op.getSplitOrDefault().getRows());
  if (shape.tokens != Tokens::SequenceInSplits || sequenceRows > rows)
    return {};
  return EvictionAttr::get(op.getContext(), kOfStreams);
}

/// The plan of the first choice that fits, before the config's sizes.
TilePlan makePlan(AttentionOp op, const AttentionShape &shape,
                  const TilesChoice &choice, int64_t rows,
                  const Target &target) {
  TilePlan plan{choice.mma,
                choice.rows ? choice.rows : rows,
                choice.tokensOfTile,
                choice.tiles,
                countAccShares(choice, shape),
                countLoads(choice, shape)};
  plan.swapAB = choice.swap != Swap::Never;
  plan.hint = chooseHint(op, shape, plan.rows);
  int64_t most =
      choice.bytes == kChip ? target.sharedBytes - kBesideTiles : choice.bytes;
  auto hasRoom = [&] { return countBytes(op, shape, plan) <= most; };
  if (dequantizesInRegisters(op, shape, plan)) {
    plan.dequantizesInRegisters = true;
    // Products of each group with scales of its own take registers, and so do
    // copies by all threads.
    if (countMostGroups(op, shape) > 1 || !target.has(Feature::TMA))
      plan.tokens = kWarp;
    return plan;
  }
  if (plan.mma == MmaKind::Sync && !hasRoom())
    plan.stages = 1;
  while (plan.mma != MmaKind::Sync && !hasRoom() && plan.tokens > kLeastTokens)
    plan.tokens /= 2;
  // Threads fill the only tile of elements that they convert.
  if (!isAnyCopied(op))
    plan.stages = 1;
  Value caches[] = {op.getKeyCache(), op.getValues()};
  if (llvm::any_of(caches, [&](Value cache) { return canStageRaw(op, cache); }))
    for (int64_t raw = 1;
         raw <=
         std::min(choice.rawStages, shape.config.rawStages.value_or(kAnySize));
         ++raw) {
      TilePlan more = plan;
      more.rawStages = raw;
      if (countBytes(op, shape, more) <= most)
        plan = more;
    }
  return plan;
}

/// Whether the softmax of a tile can overlap products, in
/// `kvcache-tile-attention`: warpgroups multiply tiles as the caches have them.
bool canOverlap(Schedule schedule, AttentionOp op, const AttentionShape &shape,
                const TilePlan &plan) {
  constexpr int64_t groups = 2;
  return plan.mma == MmaKind::Wgmma && !plan.swapAB && plan.accShares == 1 &&
         plan.stages > 1 && shape.tokens == Tokens::Sequence &&
         shape.caches == Caches::Values && areAllCopied(op) &&
         !op.getRopeCache() &&
         (schedule == Schedule::Pipelined ||
          plan.rows == groups * kRowsOfWarpgroup);
}

/// Chooses the tokens of a tile whose products overlap: as many as registers
/// and shared memory have room for.
void chooseTokens(AttentionOp op, const AttentionShape &shape, TilePlan &plan,
                  const Target &target) {
  const OverlappedTokens *choice =
      llvm::find_if(kOverlappedTokens, [&](const OverlappedTokens &row) {
        return shape.valueSize <= row.valueSize;
      });
  assert(choice != std::end(kOverlappedTokens) && "a wgmma has such values");
  bool hasCode = !op.getCausal() || op.getSoftCap() || shape.hasBegin ||
                 op.getScoreRegion() || !hasLongBoxes(op, choice->tokens);
  plan.tokens = op.getMask() || op.getMaskRegion() ? choice->tokensWithMask
                : hasCode                          ? choice->tokensWithCode
                                                   : choice->tokens;
  while (plan.tokens > kLeastTokens &&
         countBytes(op, shape, plan) + kReserved > target.sharedBytes)
    plan.tokens -= kLeastTokens;
}

/// Chooses the schedule, and with it the tokens of a tile.
void chooseSchedule(AttentionOp op, const AttentionShape &shape, TilePlan &plan,
                    const Target &target) {
  Schedule wanted = shape.config.schedule.value_or(
      isOverlapped(shape) ? Schedule::PingPong : Schedule::Prefetch);
  if (wanted == Schedule::Prefetch || !canOverlap(wanted, op, shape, plan))
    return;
  plan.schedule = wanted;
  if (!shape.config.keys)
    chooseTokens(op, shape, plan, target);
}

/// The bound of the registers of a thread that multiplies by `mma.sync`, or 0.
/// With it, they have room for as many blocks as shared memory has. Otherwise
/// ptxas loads operands earlier.
int64_t chooseRegisters(AttentionOp op, const AttentionShape &shape,
                        const TilePlan &plan, const Target &target) {
  int64_t blocks =
      target.sharedBytes / (countSharedBytes(op, shape, plan) + kReserved);
  int64_t registers =
      kRegisters / (std::max<int64_t>(blocks, 1) * plan.countThreads());
  bool isBounded = shape.keySize <= kMostBounded &&
                   registers >= kLeastRegisters && registers < kMostRegisters;
  return isBounded ? llvm::alignDown(registers, kRegisterGranule) : 0;
}

/// The reason why a kernel of this plan can't have a field of the config, or an
/// empty text.
std::string findConfigObstacle(AttentionOp op, const AttentionShape &shape,
                               const TilePlan &plan, const Target &target) {
  const AttentionConfig &config = shape.config;
  auto refuse = [](StringRef name, int64_t possible, int64_t given) {
    return llvm::formatv("'{0}' = {1} here, got {2}", name, possible, given)
        .str();
  };
  if (config.accShares.value_or(plan.accShares) != plan.accShares)
    return refuse("acc_shares", plan.accShares, *config.accShares);
  if (config.rawStages.value_or(plan.rawStages) != plan.rawStages)
    return refuse("raw_stages", plan.rawStages, *config.rawStages);
  if (config.dequant == DequantPlace::Registers && !plan.dequantizesInRegisters)
    return "'dequant' = tile here, got registers";
  if (plan.swapAB && plan.tokens != kRowsOfWarpgroup)
    return refuse("keys", kRowsOfWarpgroup, plan.tokens);
  if (plan.stages > 1 && !plan.dequantizesInRegisters && !isAnyCopied(op))
    return refuse("stages", 1, plan.stages);
  if (plan.mma == MmaKind::Tcgen05) {
    constexpr int64_t columns = 512, lanes = 128;
    int64_t needed = llvm::PowerOf2Ceil(shape.valueSize + plan.tokens * 3 / 2);
    if (needed > columns * (lanes / plan.rows))
      return llvm::formatv("tiles that tensor memory has room for, got {0} "
                           "keys",
                           plan.tokens)
          .str();
  }
  if (config.schedule.value_or(plan.schedule) != plan.schedule)
    return llvm::formatv("'schedule' = {0} here, got {1}",
                         stringifySchedule(plan.schedule),
                         stringifySchedule(*config.schedule))
        .str();
  int64_t bytes = countSharedBytes(op, shape, plan);
  // No chips are given, or there is room.
  if (!target.sharedBytes || bytes + kReserved <= target.sharedBytes)
    return "";
  return llvm::formatv("tiles of at most {0} bytes of shared memory, got {1}",
                       target.sharedBytes - kReserved, bytes)
      .str();
}

} // namespace

int64_t kvcache::getTileAlignment(AttentionOp op, int64_t tokens) {
  for (Value cache : {Value(op.getKeyCache()), op.getValues()}) {
    int64_t size = cast<CacheTypeInterface>(cache.getType()).getPageSize();
    tokens = ShapedType::isDynamic(size) ? 1 : std::gcd(tokens, size);
  }
  return tokens;
}

bool kvcache::hasLongBoxes(AttentionOp op, int64_t tokens) {
  constexpr int64_t least = 16;
  return getTileAlignment(op, tokens) >= least;
}

FailureOr<std::optional<TilePlan>> kvcache::planTiles(AttentionOp op,
                                                      const Target &target) {
  AttentionShape shape(op);
  int64_t rows = chooseRows(op, shape);
  if (!rows) {
    // The fields of tiles, which a warp for each row has not.
    AttentionConfig warps = shape.config;
    warps.keys = warps.stages = warps.accShares = warps.rawStages =
        warps.convertLoads = std::nullopt;
    warps.dequant = std::nullopt;
    warps.schedule = std::nullopt;
    if (warps == shape.config)
      return std::optional<TilePlan>();
    op.emitOpError("expects 'config' to have an 'mma', or no fields of tiles, "
                   "for a kernel without tensor cores, got ")
        << op.getConfigAttr();
    return failure();
  }
  const TilesChoice *choice =
      llvm::find_if(kTiles, [&](const TilesChoice &row) {
        return fits(row, shape, rows, target);
      });
  if (choice == std::end(kTiles)) {
    op.emitOpError("expects 'config' to have an 'mma' and 'rows' that the chip "
                   "has for such caches, got ")
        << op.getConfigAttr() << " with " << rows << " rows";
    return failure();
  }
  TilePlan plan = makePlan(op, shape, *choice, rows, target);
  plan.tokens = shape.config.keys.value_or(plan.tokens);
  plan.stages = shape.config.stages.value_or(plan.stages);
  plan.convertLoads = shape.config.convertLoads.value_or(plan.convertLoads);
  chooseSchedule(op, shape, plan, target);
  std::string obstacle = findConfigObstacle(op, shape, plan, target);
  if (!obstacle.empty() && op.getConfigAttr()) {
    op.emitOpError("expects 'config' to have ") << obstacle;
    return failure();
  }
  plan.persistentBlocks = choosePersistentBlocks(op, shape, plan, target);
  if (plan.mma == MmaKind::Sync)
    plan.registers = chooseRegisters(op, shape, plan, target);
  return std::optional(plan);
}

AttentionConfig kvcache::getConfig(const TilePlan &plan) {
  AttentionConfig config;
  config.mma = plan.mma;
  if (plan.mma == MmaKind::Wgmma)
    config.swapAB = plan.swapAB;
  config.rows = plan.rows;
  config.keys = plan.tokens;
  config.stages = plan.stages;
  config.accShares = plan.accShares;
  config.dequant = plan.dequantizesInRegisters ? DequantPlace::Registers
                                               : DequantPlace::Tile;
  config.rawStages = plan.rawStages;
  config.convertLoads = plan.convertLoads;
  config.persistent = plan.persistentBlocks;
  config.schedule = plan.schedule;
  config.l2Hint = plan.hint ? plan.hint.getValue() : Eviction::Normal;
  return config;
}

AttentionConfig kvcache::getConfig(const WarpPlan &plan) {
  AttentionConfig config;
  config.mma = MmaKind::None;
  config.l2Hint = plan.hint ? plan.hint.getValue() : Eviction::Normal;
  return config;
}

WarpPlan kvcache::chooseWarps(AttentionOp op) {
  AttentionShape shape(op);
  int64_t bits = 8;
  SmallVector<Value> caches{op.getKeyCache(), op.getValues()};
  if (op.getRopeCache())
    caches.push_back(op.getRopeCache());
  for (Value cache : caches) {
    Type element = cast<CacheTypeInterface>(cache.getType()).getElementType();
    bits = std::max<int64_t>(bits, element.getIntOrFloatBitWidth());
  }
  int64_t most = std::min<int64_t>(8, 128 / bits);
  // A piece of a key, or a query, is of one array.
  int64_t border =
      std::gcd(std::gcd(shape.keySize,
                        cast<ShapedType>(op.getQ().getType()).getDimSize(2)),
               shape.keySize - op.getRopeSize());
  int64_t common = std::gcd(getLanes(op.getKeyCache(), border, most),
                            getLanes(op.getValues(), shape.valueSize, most));
  // A lane loads whole bytes.
  int64_t leastOfKey = getLanesPerStored(op.getKeyCache()),
          leastOfValue = getLanesPerStored(op.getValues());
  WarpPlan plan{1};
  int64_t chosen = 0;
  for (int64_t lanes = 1; lanes <= kWarp; lanes *= 2) {
    if (shape.keySize % (lanes * leastOfKey) ||
        shape.valueSize % (lanes * leastOfValue))
      break;
    int64_t width =
        std::gcd(std::gcd(shape.keySize, shape.valueSize) / lanes, common);
    bool fits = shape.keySize / lanes <= kMostElements;
    bool fitted = shape.keySize / plan.lanes <= kMostElements;
    if (!fitted || (fits && width >= chosen)) {
      plan.lanes = lanes;
      chosen = width;
    }
  }
  // All are powers of two: a lane's share has whole pieces.
  plan.keyWidth = std::max(chosen, leastOfKey);
  plan.valueWidth = std::max(chosen, leastOfValue);
  int64_t perRow = (shape.keySize + shape.valueSize) / plan.lanes;
  plan.rows =
      getDivisorUpTo(shape.heads, std::max<int64_t>(kMostFloats / perRow, 1));
  plan.tokens = shape.keySize / plan.lanes > kFewElements ? 2 : 4;
  plan.hint = chooseHint(op, shape, plan.rows);
  return plan;
}
