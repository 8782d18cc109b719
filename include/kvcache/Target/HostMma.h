//===- HostMma.h - Matrix instructions of CPUs ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_HOSTMMA_H
#define KVCACHE_TARGET_HOSTMMA_H

namespace mlir::kvcache {

/// The instructions by which a CPU multiplies matrices.
enum class HostMma {
  /// Multiply-adds of f32, on all CPUs.
  FMA,
  /// Dot products of pairs of bf16: AVX512-BF16.
  Dot,
  /// Products of tiles of bf16: AMX-BF16, beside AVX-512.
  AMX
};

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_HOSTMMA_H
