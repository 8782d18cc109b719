//===- Accessors.h - Accessors of types and attributes ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the functions of the C API that have the same form for each class.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CAPI_ACCESSORS_H
#define KVCACHE_LIB_CAPI_ACCESSORS_H

#include "Checks.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

namespace mlir::kvcache {

/// Converts a parameter to C: a type, an attribute, a number or an enum.
template <typename Result, typename Value> Result toC(Value value) {
  if constexpr (std::is_same_v<Result, MlirType>)
    return wrap(Type(value));
  else if constexpr (std::is_same_v<Result, MlirAttribute>)
    return wrap(Attribute(value));
  else
    return static_cast<Result>(value);
}

/// Returns the attribute for a case of an enum. For an invalid case, emits an
/// error at `loc` and returns null.
template <typename Attr, typename Enum, typename CEnum>
MlirAttribute getCaseAttr(MlirLocation loc, StringRef what,
                          std::optional<Enum> (*symbolize)(uint32_t),
                          const CEnum &value) {
  Location where = unwrap(loc);
  std::optional<Enum> known = getCase(where, what, symbolize, value);
  if (!known || failed(checkLoaded(where)))
    return {};
  return wrap(Attr::get(where.getContext(), *known));
}

} // namespace mlir::kvcache

/// Defines the test for a class; `Base` is Type or Attribute.
#define KVCACHE_IS_A(Base, Class)                                              \
  bool mlir##Base##IsAKVCache##Class(Mlir##Base value) {                       \
    return isa_and_present<Class>(unwrap(value));                              \
  }

/// Defines the test for a class and its type id.
#define KVCACHE_CLASS(Base, Class)                                             \
  KVCACHE_IS_A(Base, Class)                                                    \
  MlirTypeID mlirKVCache##Class##GetTypeID() {                                 \
    return wrap(Class::getTypeID());                                           \
  }

/// Defines the getter of a parameter of a class.
#define KVCACHE_GETTER(Base, Class, Result, Parameter)                         \
  Result mlirKVCache##Class##Get##Parameter(Mlir##Base value) {                \
    return toC<Result>(cast<Class>(unwrap(value)).get##Parameter());           \
  }

/// Defines the constructor and the getter of an attribute of an enum.
#define KVCACHE_CASE(Enum, what)                                               \
  MlirAttribute mlirKVCache##Enum##AttrGetChecked(MlirLocation loc,            \
                                                  MlirKVCache##Enum value) {   \
    return getCaseAttr<Enum##Attr, Enum>(loc, what, symbolize##Enum, value);   \
  }                                                                            \
  KVCACHE_GETTER(Attribute, Enum##Attr, MlirKVCache##Enum, Value)

#endif // KVCACHE_LIB_CAPI_ACCESSORS_H
