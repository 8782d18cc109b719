//===- TileChoices.cpp - Tiles of attention on tensor cores ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileChoices.h"

#include "../Builders/Heads.h"
#include "HintChoice.h"
#include "ScheduleChoice.h"
#include "SharedBytes.h"
#include "TileSizes.h"
#include "TileStaging.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

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

/// Whether the config asks for a matrix instruction.
bool isMmaWanted(const AttentionShape &shape) {
  return shape.config.mma.value_or(MmaKind::None) != MmaKind::None ||
         isSwapAB(shape.config) || mergesInCluster(shape.config);
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

/// Two warpgroups take turns with products and the softmax, or share what they
/// convert, so that a block has 128 rows.
bool fitsProducts(Products products, const AttentionShape &shape) {
  constexpr int64_t bits = 16;
  switch (products) {
  case Products::Any:
    return true;
  case Products::Overlapped:
    return overlapsByDefault(shape);
  case Products::Converted:
    return shape.bits < bits;
  }
  llvm_unreachable("there are no other products");
}

bool fits(const TilesChoice &choice, const AttentionShape &shape, int64_t rows,
          const Target &target) {
  // Fields that are set are kept.
  if (shape.config.mma && *shape.config.mma != choice.mma)
    return false;
  // Other warps than those that multiply would have to execute its barriers.
  if (mergesInCluster(shape.config) && choice.mma != MmaKind::Sync)
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
         fitsProducts(choice.products, shape) &&
         std::max(shape.keySize, shape.valueSize) <= choice.size;
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

/// Groups of elements of a key or a value whose products have scales of their
/// own.
int64_t countMostGroups(AttentionOp op, const AttentionShape &shape) {
  return std::max(countProductGroups(op.getKeyCache(), shape.keySize),
                  countProductGroups(op.getValues(), shape.valueSize));
}

/// Whether warps dequantize in registers: each of them converts all elements.
bool canDequantize(AttentionOp op, const AttentionShape &shape,
                   const AttentionConfig &plan) {
  constexpr int64_t mostRows = 32;
  return plan.mma == MmaKind::Sync && *plan.rows <= mostRows &&
         shape.config.dequant != DequantPlace::Tile &&
         canDequantizeBoth(op, shape);
}

/// Whether the blocks of a kernel take work items until there are none.
bool becomesPersistent(const AttentionShape &shape, const Target &target) {
  if (shape.config.persistent)
    return *shape.config.persistent != 0;
  return shape.tokens == Tokens::SequenceInSplits &&
         !mergesInCluster(shape.config) && target.has(kPersistent);
}

/// The blocks of a persistent kernel, or 0.
int64_t choosePersistentBlocks(AttentionOp op, const AttentionShape &shape,
                               const AttentionConfig &plan,
                               const Target &target) {
  if (shape.config.persistent)
    return *shape.config.persistent;
  if (!becomesPersistent(shape, target))
    return 0;
  int64_t bytes = countSharedBytes(op, shape, plan);
  int64_t byMemory = target.sharedBytes / (bytes + kReserved);
  int64_t threadRegisters = kMostRegisters;
  if (isSwapAB(plan))
    threadRegisters =
        std::min(threadRegisters, kBesideAcc + *plan.rows * shape.valueSize /
                                                   countThreads(plan));
  int64_t byRegisters = kRegisters / (threadRegisters * countThreads(plan));
  return kMultiprocessors *
         std::max<int64_t>(std::min(byMemory, byRegisters), 1);
}

/// The plan of a choice, before the sizes that the user's config has.
AttentionConfig makePlan(AttentionOp op, const AttentionShape &shape,
                         const TilesChoice &choice, int64_t rows,
                         const Target &target) {
  AttentionConfig plan;
  plan.mma = choice.mma;
  if (choice.mma == MmaKind::Wgmma)
    plan.swapAB = choice.swap != Swap::Never;
  plan.rows = choice.rows ? choice.rows : rows;
  plan.keys = choice.tokensOfTile;
  plan.stages = choice.tiles;
  plan.accShares = countAccShares(choice, shape);
  plan.dequant = DequantPlace::Tile;
  plan.rawStages = 0;
  plan.convertLoads = countLoads(choice, shape);
  plan.schedule = Schedule::Prefetch;
  plan.l2Hint = chooseHint(op, shape, *plan.rows);
  plan.merge = shape.config.merge;
  int64_t most =
      choice.bytes == kChip ? target.sharedBytes - kBesideTiles : choice.bytes;
  auto hasRoom = [&] { return countBytes(op, shape, plan) <= most; };
  if (canDequantize(op, shape, plan)) {
    plan.dequant = DequantPlace::Registers;
    // Products of each group with scales of its own take registers, and so do
    // copies by all threads.
    if (countMostGroups(op, shape) > 1 || !target.has(Feature::TMA))
      plan.keys = kWarp;
    return plan;
  }
  if (plan.mma == MmaKind::Sync && !hasRoom())
    plan.stages = 1;
  while (plan.mma != MmaKind::Sync && !hasRoom() && *plan.keys > kLeastTokens)
    *plan.keys /= 2;
  // Threads fill the only tile of elements that they convert.
  if (!isAnyCopied(op))
    plan.stages = 1;
  Value caches[] = {op.getKeyCache(), op.getValues()};
  if (llvm::any_of(caches, [&](Value cache) { return canStageRaw(op, cache); }))
    for (int64_t raw = 1;
         raw <=
         std::min(choice.rawStages, shape.config.rawStages.value_or(kAnySize));
         ++raw) {
      AttentionConfig more = plan;
      more.rawStages = raw;
      if (countBytes(op, shape, more) <= most)
        plan = more;
    }
  return plan;
}

/// The reason why a kernel of this plan can't have a field of the config, or an
/// empty text.
std::string findConfigObstacle(AttentionOp op, const AttentionShape &shape,
                               const AttentionConfig &plan,
                               const Target &target) {
  const AttentionConfig &config = shape.config;
  auto refuse = [](StringRef name, int64_t possible, int64_t given) {
    return llvm::formatv("'{0}' = {1} here, got {2}", name, possible, given)
        .str();
  };
  if (config.accShares && config.accShares != plan.accShares)
    return refuse("acc_shares", *plan.accShares, *config.accShares);
  if (config.rawStages && config.rawStages != plan.rawStages)
    return refuse("raw_stages", *plan.rawStages, *config.rawStages);
  if (mergesInCluster(config) && !target.has(Feature::Clusters))
    return "'merge' = launch on chips without clusters, which need " +
           getChipsWith(Feature::Clusters) + ", got cluster";
  if (isSwapAB(config) && !isSwapAB(plan))
    return "'swap_ab' = false here, got true";
  if (config.convertLoads && !plan.convertLoads)
    return llvm::formatv("no 'convert_loads' here, where threads convert no "
                         "elements, got {0}",
                         *config.convertLoads)
        .str();
  if (config.dequant == DequantPlace::Registers &&
      !dequantizesInRegisters(plan))
    return "'dequant' = tile here, got registers";
  if (isSwapAB(plan) && *plan.keys != kRowsOfWarpgroup)
    return refuse("keys", kRowsOfWarpgroup, *plan.keys);
  if (*plan.stages > 1 && !dequantizesInRegisters(plan) && !isAnyCopied(op))
    return refuse("stages", 1, *plan.stages);
  if (plan.mma == MmaKind::Tcgen05 && !hasRoles(plan)) {
    constexpr int64_t columns = 512, lanes = 128;
    int64_t needed = llvm::PowerOf2Ceil(shape.valueSize + *plan.keys * 3 / 2);
    if (needed > columns * (lanes / *plan.rows))
      return llvm::formatv("tiles that tensor memory has room for, got {0} "
                           "keys",
                           *plan.keys)
          .str();
  }
  if (config.schedule && config.schedule != plan.schedule)
    return refuseSchedule(op, shape, plan, *config.schedule);
  int64_t rows = config.rows.value_or(*plan.rows);
  if (hasRoles(plan) != (rows == kRowsOfRoles))
    return llvm::formatv("{0} 'rows' with the schedule roles, and only then, "
                         "got {1}",
                         kRowsOfRoles, rows)
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

int64_t kvcache::chooseRows(AttentionOp op, const AttentionShape &shape) {
  if (shape.config.mma == MmaKind::None)
    return 0;
  if (shape.config.rows)
    return *shape.config.rows;
  if (!op.getTileObstacle().empty())
    return 0;
  const RowsChoice *choice = llvm::find_if(kRows, [&](const RowsChoice &row) {
    return shape.isOf(row.caches) && shape.isOf(row.tokens) &&
           shape.heads >= row.heads && shape.bits >= row.bits &&
           (row.rows || !isMmaWanted(shape)) &&
           (!row.dequantizesInRegisters || canDequantizeBoth(op, shape));
  });
  int64_t most = choice != std::end(kRows) ? choice->rows : kMostFewRows;
  if (isSwapAB(shape.config))
    most = std::min(most, kMostSwapABRows);
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

FailureOr<AttentionConfig> kvcache::planTiles(AttentionOp op,
                                              const AttentionShape &shape,
                                              int64_t rows,
                                              const Target &target) {
  // The table has one query tile.
  rows = std::min(rows, kRowsOfRoles / 2);
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
  AttentionConfig plan = makePlan(op, shape, *choice, rows, target);
  plan.keys = shape.config.keys.value_or(*plan.keys);
  plan.stages = shape.config.stages.value_or(*plan.stages);
  if (dequantizesInRegisters(plan) || areAllCopied(op))
    plan.convertLoads = std::nullopt;
  else if (shape.config.convertLoads)
    plan.convertLoads = shape.config.convertLoads;
  chooseSchedule(op, shape, becomesPersistent(shape, target), plan, target);
  std::string obstacle = findConfigObstacle(op, shape, plan, target);
  if (!obstacle.empty() && op.getConfigAttr()) {
    op.emitOpError("expects 'config' to have ") << obstacle;
    return failure();
  }
  plan.persistent = choosePersistentBlocks(op, shape, plan, target);
  return plan;
}
