//===- ScheduleChoice.h - How the products of a tile overlap -- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_SCHEDULECHOICE_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_SCHEDULECHOICE_H

#include "AttentionShape.h"
#include "kvcache/Target/Chip.h"

#include <string>

namespace mlir::kvcache {

/// Whether products and softmax overlap on chips that can, unless the config
/// says otherwise.
bool overlapsByDefault(const AttentionShape &shape);

/// Chooses the schedule of a plan, and with it the tokens of a tile. In the
/// loop of a persistent kernel, ptxas has too few registers for seesaw, and
/// waits for each product, so only a config that asks has it there.
void chooseSchedule(AttentionOp op, const AttentionShape &shape,
                    bool isPersistent, AttentionConfig &plan,
                    const Target &target);

/// The reason why a kernel of this plan can't have a schedule.
std::string refuseSchedule(AttentionOp op, const AttentionShape &shape,
                           const AttentionConfig &plan, Schedule given);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_SCHEDULECHOICE_H
