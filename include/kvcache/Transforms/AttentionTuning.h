//===- AttentionTuning.h - What configs are measured for --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TRANSFORMS_ATTENTIONTUNING_H
#define KVCACHE_TRANSFORMS_ATTENTIONTUNING_H

#include "kvcache/IR/AttentionOps.h"

#include <string>

namespace mlir::kvcache {

/// Returns the types and options of an op as text, with the fields of `config`
/// that are set: the key of its config in a tuning file. Ops with equal texts
/// have equal kernels, except for what their regions compute.
std::string describeShape(AttentionOp op);

/// Returns the fields of a complete config that decide the bits of results. The
/// others are unset.
AttentionConfig getBitFields(AttentionOp op, const AttentionConfig &config);

} // namespace mlir::kvcache

#endif // KVCACHE_TRANSFORMS_ATTENTIONTUNING_H
