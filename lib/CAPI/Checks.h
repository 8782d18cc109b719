//===- Checks.h - Checks of arguments from C --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CAPI_CHECKS_H
#define KVCACHE_LIB_CAPI_CHECKS_H

#include "kvcache-c/Attributes.h"
#include "kvcache/IR/KVCacheDialect.h"

#include "llvm/ADT/bit.h"

namespace mlir::kvcache {

/// Checks that the context has loaded the dialect; otherwise MLIR would end the
/// process.
inline LogicalResult checkLoaded(Location loc) {
  if (loc.getContext()->getLoadedDialect<KVCacheDialect>())
    return success();
  return emitError(loc) << "expects the dialect '"
                        << KVCacheDialect::getDialectNamespace()
                        << "' to be loaded into the context";
}

/// Returns the attribute or type. If the arguments violate a constraint, emits
/// an error at `loc` and returns null.
template <typename T, typename... Args>
T getChecked(Location loc, Args &&...args) {
  if (failed(checkLoaded(loc)))
    return T();
  return T::getChecked([=] { return emitError(loc); }, loc.getContext(),
                       std::forward<Args>(args)...);
}

/// Returns the enum case of a number. For an invalid number, which C callers
/// may pass, emits an error at `loc` and returns `nullopt`.
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
