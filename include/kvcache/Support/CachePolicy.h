//===- CachePolicy.h - Cache policies of instructions -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_CACHEPOLICY_H
#define KVCACHE_SUPPORT_CACHEPOLICY_H

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::kvcache {

/// The attribute of an `nvvm.cp.async.shared.global`, which has no operand for
/// a cache policy, with the priority that `kvcache-cache-operators` gives it.
inline constexpr StringLiteral kL2HintAttr{"kvcache.l2_hint"};

/// Returns the cache policy of a priority as an operand of an instruction, an
/// i64: the result of "createpolicy.fractional" for a whole access, as in
/// CUTLASS, TMA::CacheHintSm90. ptxas makes the same constants of that
/// instruction on all chips.
inline int64_t getCachePolicy(Eviction priority) {
  constexpr uint64_t policies[] = {0x1000000000000000, 0x12F0000000000000,
                                   0x14F0000000000000};
  return static_cast<int64_t>(policies[static_cast<uint32_t>(priority)]);
}

/// Whether loads with a hint, or without one, are nontemporal: plain loads have
/// no other priority.
inline bool isStreamed(EvictionAttr hint) {
  return hint && hint.getValue() == Eviction::First;
}

/// Returns this operand as a constant; null without a hint.
inline Value createCachePolicy(OpBuilder &builder, Location loc,
                               EvictionAttr hint) {
  if (!hint)
    return {};
  return arith::ConstantIntOp::create(builder, loc,
                                      getCachePolicy(hint.getValue()), 64);
}

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_CACHEPOLICY_H
