//===- Checks.h - What callers from C may get wrong -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CAPI_CHECKS_H
#define KVCACHE_LIB_CAPI_CHECKS_H

#include "kvcache-c/Attributes.h"
#include "kvcache/IR/KVCache.h"

#include "llvm/ADT/bit.h"

namespace mlir::kvcache {

/// Checks that the dialect is in the context: without it MLIR ends the process.
inline LogicalResult checkLoaded(Location loc) {
  if (loc.getContext()->getLoadedDialect<KVCacheDialect>())
    return success();
  return emitError(loc) << "expects the dialect '"
                        << KVCacheDialect::getDialectNamespace()
                        << "' to be loaded into the context";
}

/// The attribute or type; null, and an error at `loc`, where it breaks a rule.
template <typename T, typename... Args>
T getChecked(Location loc, Args &&...args) {
  if (failed(checkLoaded(loc)))
    return T();
  return T::getChecked([=] { return emitError(loc); }, loc.getContext(),
                       std::forward<Args>(args)...);
}

/// The case of an enum; nothing, and an error at `loc`, for a number that is
/// none: C lets callers pass any, while C++ may not even look at it as an enum.
template <typename Enum, typename CEnum>
std::optional<Enum> getCase(Location loc, StringRef what,
                            std::optional<Enum> (*symbolize)(uint32_t),
                            const CEnum &value) {
  auto number = llvm::bit_cast<uint32_t>(value);
  std::optional<Enum> result = symbolize(number);
  if (!result)
    emitError(loc) << "unknown " << what << ' ' << static_cast<int32_t>(number);
  return result;
}

inline std::optional<Swizzle> getSwizzle(Location loc,
                                         const MlirKVCacheSwizzle &value) {
  return getCase<Swizzle>(loc, "swizzle", symbolizeSwizzle, value);
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CAPI_CHECKS_H
