//===- KernelContext.h - The op and the config of a kernel ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_KERNELCONTEXT_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_KERNELCONTEXT_H

#include "../Attention/KeySplits.h"
#include "../PlanAttention/AttentionSizes.h"
#include "../PlanAttention/BlockShape.h"

namespace mlir::kvcache {

/// The op of a kernel with tensor cores, its complete config, and sizes that
/// follow from these. All code of the kernel is emitted from it.
class KernelContext {
public:
  KernelContext(AttentionOp op, const Frame &frame,
                const AttentionConfig &config)
      : frame(frame), config(config), sizes(op), shape(op, *config.rows),
        splits(this->frame, op), op(op) {}
  // The splits refer to the frame.
  KernelContext(const KernelContext &) = delete;

  /// Returns a copy, because accessors of ops are not const.
  AttentionOp getOp() const { return op; }

  const Frame frame;
  const AttentionConfig config;
  const AttentionSizes sizes;
  const BlockShape shape;
  const KeySplits splits;

private:
  AttentionOp op;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_KERNELCONTEXT_H
