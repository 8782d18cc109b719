//===- CompleteConfig.h - The config of an op with all fields ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_COMPLETECONFIG_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_COMPLETECONFIG_H

#include "../Builders/Frame.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// Returns the config of an op with all fields of its kernel, which runs on all
/// chips of a target: those that are set, and otherwise the choices of tables.
/// Without tensor cores, `mma` is `none`, and only `l2_hint` is set as well.
/// Emits an error for a field that the target can't have.
///
/// Each pass that reads configs calls this once for an op. The config of a
/// complete config is the same.
FailureOr<AttentionConfig> completeConfig(AttentionOp op, const Target &target);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_COMPLETECONFIG_H
