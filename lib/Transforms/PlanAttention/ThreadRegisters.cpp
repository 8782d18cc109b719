//===- ThreadRegisters.cpp - Registers of the threads of a kernel ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadRegisters.h"

#include "SharedBytes.h"
#include "TileSizes.h"
#include "TileStaging.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The bound of threads that multiply by `mma.sync`, or 0. With it, a
/// multiprocessor has registers for as many blocks as shared memory has room
/// for. Otherwise ptxas loads operands earlier.
static int64_t boundRegisters(AttentionOp op, const AttentionConfig &config,
                              const Target &target) {
  AttentionShape shape(op);
  int64_t blocks =
      target.sharedBytes / (countSharedBytes(op, shape, config) + kReserved);
  int64_t registers =
      kRegisters / (std::max<int64_t>(blocks, 1) * countThreads(config));
  // Without a bound, ptxas 13.0 gives short heads of 4 bits 168 on sm_100a, and
  // spills.
  if (shape.keySize <= kMostBounded && (areElementsScaled(op.getKeyCache()) ||
                                        areElementsScaled(op.getValues())))
    return kMostRegisters - kRegisterGranule;
  bool isBounded = shape.keySize <= kMostBounded &&
                   registers >= kLeastRegisters && registers < kMostRegisters;
  return isBounded ? llvm::alignDown(registers, kRegisterGranule) : 0;
}

ThreadRegisters kvcache::chooseRegisters(AttentionOp op,
                                         const AttentionConfig &config,
                                         const Target &target) {
  if (config.mma == MmaKind::Sync)
    return {0, boundRegisters(op, config, target)};
  if (hasRoles(config))
    return *config.keys > kFewRolesKeys ? kWithRoles : kWithRolesOfFewKeys;
  int64_t producers = countProducerWarps(config) * kWarp;
  // In a block with few threads, each has as many as it can use.
  constexpr int64_t few = 2 * kWarpgroup;
  if (!producers || producers + countThreads(config) <= few)
    return {};
  return hasLongBoxes(op, *config.keys) ? kWithLongBoxes : kWithShortBoxes;
}
