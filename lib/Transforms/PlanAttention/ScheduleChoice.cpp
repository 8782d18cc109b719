//===- ScheduleChoice.cpp - How the products of a tile overlap ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleChoice.h"

#include "AttentionTables.h"
#include "SharedBytes.h"
#include "TileSizes.h"
#include "TileStaging.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Whether a schedule's need is met, and what it is.
using Need = std::pair<bool, StringRef>;

/// The first need that is not met, or an empty text.
StringRef findUnmet(ArrayRef<Need> needs) {
  const Need *unmet =
      llvm::find_if(needs, [](const Need &need) { return !need.first; });
  return unmet == needs.end() ? StringRef() : unmet->second;
}

/// Whether the softmax of a tile can overlap products, in
/// `kvcache-tile-attention`: warpgroups multiply tiles as the caches have them.
bool canOverlap(Schedule schedule, AttentionOp op, const AttentionShape &shape,
                const AttentionConfig &plan) {
  constexpr int64_t groups = 2;
  return schedule != Schedule::Seesaw && schedule != Schedule::Roles &&
         schedule != Schedule::Pair && plan.mma == MmaKind::Wgmma &&
         !isSwapAB(plan) && plan.accShares == 1 && *plan.stages > 1 &&
         shape.tokens == Tokens::Sequence && shape.caches == Caches::Values &&
         areAllCopied(op) && !op.getRopeCache() &&
         (schedule == Schedule::Pipelined ||
          plan.rows == groups * kRowsOfWarpgroup);
}

/// Chooses the tokens of a tile whose products overlap: as many as registers
/// and shared memory have room for.
void chooseTokens(AttentionOp op, const AttentionShape &shape,
                  AttentionConfig &plan, const Target &target) {
  const OverlappedTokens *choice =
      llvm::find_if(kOverlappedTokens, [&](const OverlappedTokens &row) {
        return shape.valueSize <= row.valueSize;
      });
  assert(choice != std::end(kOverlappedTokens) && "a wgmma has such values");
  bool hasCode = !op.getCausal() || op.getSoftCap() || shape.hasBegin ||
                 op.getScoreRegion() || !hasLongBoxes(op, choice->tokens);
  plan.keys = op.getMask() || op.getMaskRegion() ? choice->tokensWithMask
              : hasCode                          ? choice->tokensWithCode
                                                 : choice->tokens;
  while (*plan.keys > kLeastTokens &&
         countBytes(op, shape, plan) + kReserved > target.sharedBytes)
    *plan.keys -= kLeastTokens;
}

/// The need of seesaw that is not met, or an empty text. Copies bring latent
/// tiles of 64 tokens, two of which have room, and the probs of a tile have the
/// place of its rope.
StringRef findSeesawNeed(AttentionOp op, const AttentionShape &shape,
                         const AttentionConfig &plan) {
  constexpr int64_t shares = 2, stages = 2;
  const Need needs[] = {
      {shape.caches == Caches::Latent, "a latent cache"},
      {shape.tokens != Tokens::Ids, "no sparse 'rows'"},
      {!shape.hasBegin, "no window, chunk or ranges"},
      {shape.canOverlap, "no regions, and no mask of all tokens"},
      {areAllCopied(op), "rows that copies bring without a conversion"},
      {plan.mma == MmaKind::Wgmma && !isSwapAB(plan), "wgmma without swapAB"},
      {plan.rows == kRowsOfWarpgroup, "64 rows"},
      {plan.keys == kRowsOfWarpgroup, "64 keys"},
      {plan.stages == stages, "2 stages"},
      {plan.accShares == shares, "values that two warpgroups share"},
      {shape.keySize - shape.valueSize == kRowsOfWarpgroup,
       "a rope of 64 elements"},
  };
  return findUnmet(needs);
}

/// The most keys of a tile with roles. Threads have registers for more than a
/// few only if copies bring whole spans of a swizzle in long boxes, and no mask
/// has code in the softmax.
int64_t countRolesKeys(AttentionOp op, const AttentionShape &shape) {
  constexpr int64_t span = 64, longBox = 64;
  bool hasSpans = shape.keySize % span == 0 && shape.valueSize % span == 0;
  return hasSpans && getTileAlignment(op, kRolesKeys) >= longBox &&
                 !op.getMask()
             ? kRolesKeys
             : kFewRolesKeys;
}

/// The need of roles that is not met, or an empty text. Tensor memory has the
/// scores and the accumulators of two query tiles.
StringRef findRolesNeed(AttentionOp op, const AttentionShape &shape,
                        const AttentionConfig &plan) {
  constexpr int64_t most = 128, granule = 16;
  int64_t keys = shape.config.keys.value_or(countRolesKeys(op, shape));
  const Need needs[] = {
      {plan.mma == MmaKind::Tcgen05, "tcgen05"},
      {shape.caches == Caches::Values, "keys and values"},
      {shape.tokens == Tokens::Sequence, "no workspace and no sparse 'rows'"},
      {!op.getRanges(), "no ranges"},
      {shape.canOverlap, "no regions, and no mask of all tokens"},
      {areAllCopied(op) && !op.getRopeCache(),
       "rows that copies bring without a conversion"},
      {std::max(shape.keySize, shape.valueSize) <= most &&
           shape.valueSize % granule == 0,
       "at most 128 elements, a multiple of 16"},
      {hasLongBoxes(op, keys), "pages of a multiple of 16 tokens"},
      {keys <= kFewRolesKeys || keys == countRolesKeys(op, shape),
       "at most 64 keys, or 128 without a mask in pages of a multiple of 64 "
       "tokens and heads of a multiple of 64 elements"},
  };
  return findUnmet(needs);
}

/// The need of pairs that is not met, or an empty text.
StringRef findPairNeed(AttentionOp op, const AttentionShape &shape,
                       const AttentionConfig &plan) {
  constexpr int64_t stages = 2, sizes[] = {128, 256, 512};
  const Need needs[] = {
      {shape.caches == Caches::Latent, "a latent cache"},
      {shape.tokens == Tokens::Sequence, "no workspace and no sparse 'rows'"},
      {!shape.hasBegin, "no window, chunk or ranges"},
      {shape.canOverlap, "no regions, and no mask of all tokens"},
      {areAllCopied(op) && !op.getRopeCache(),
       "rows that copies bring without a conversion"},
      {plan.mma == MmaKind::Tcgen05, "tcgen05"},
      {shape.heads % (kBlocksOfPair * kRowsOfWarpgroup) == 0,
       "a multiple of 128 query heads"},
      {plan.rows == kRowsOfWarpgroup, "64 rows"},
      {plan.keys == kRowsOfWarpgroup, "64 keys"},
      {plan.stages == stages, "2 stages"},
      {llvm::is_contained(sizes, shape.valueSize),
       "values of 128, 256 or 512 elements"},
  };
  return findUnmet(needs);
}

/// Chooses two query tiles, and a tile of as many keys as there are registers
/// for.
void chooseRoles(AttentionOp op, const AttentionShape &shape,
                 AttentionConfig &plan) {
  plan.schedule = Schedule::Roles;
  plan.rows = kRowsOfRoles;
  plan.keys = shape.config.keys.value_or(countRolesKeys(op, shape));
}

} // namespace

bool kvcache::overlapsByDefault(const AttentionShape &shape) {
  constexpr int64_t bits = 16;
  return shape.canOverlap && shape.bits == bits;
}

void kvcache::chooseSchedule(AttentionOp op, const AttentionShape &shape,
                             bool isPersistent, AttentionConfig &plan,
                             const Target &target) {
  if (findSeesawNeed(op, shape, plan).empty()) {
    Schedule wanted = shape.config.schedule.value_or(
        isPersistent ? Schedule::Prefetch : Schedule::Seesaw);
    plan.schedule =
        wanted == Schedule::Prefetch ? Schedule::Prefetch : Schedule::Seesaw;
    return;
  }
  if (shape.config.schedule == Schedule::Roles &&
      findRolesNeed(op, shape, plan).empty())
    return chooseRoles(op, shape, plan);
  if (isPair(shape.config) && findPairNeed(op, shape, plan).empty()) {
    plan.schedule = Schedule::Pair;
    return;
  }
  Schedule wanted = shape.config.schedule.value_or(
      overlapsByDefault(shape) ? Schedule::PingPong : Schedule::Prefetch);
  if (wanted == Schedule::Prefetch || !canOverlap(wanted, op, shape, plan))
    return;
  plan.schedule = wanted;
  if (!shape.config.keys)
    chooseTokens(op, shape, plan, target);
}

std::string kvcache::refuseSchedule(AttentionOp op, const AttentionShape &shape,
                                    const AttentionConfig &plan,
                                    Schedule given) {
  std::string possible = stringifySchedule(*plan.schedule).str();
  if (plan.schedule == Schedule::Seesaw)
    possible += " or prefetch";
  std::string reason;
  if (given == Schedule::Seesaw)
    reason = (", as seesaw needs " + findSeesawNeed(op, shape, plan)).str();
  if (given == Schedule::Roles)
    reason = (", as roles needs " + findRolesNeed(op, shape, plan)).str();
  if (given == Schedule::Pair)
    reason = (", as pair needs " + findPairNeed(op, shape, plan)).str();
  return llvm::formatv("'schedule' = {0} here{1}, got {2}", possible, reason,
                       stringifySchedule(given))
      .str();
}
