//===- IR.h - Types, attributes and modules for Python ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// To Python, a type or an attribute is its text, or the name of its class with
// the arguments of the constructor: its fields. A field is a number, a text or
// a list of them, and absent where it says nothing. Types of elements and cases
// of enums are text.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_IR_H
#define KVCACHE_PYTHON_IR_H

#include "kvcache/IR/KVCacheDialect.h"
#include "mlir-c/IR.h"
#include <nanobind/nanobind.h>

namespace mlir::kvcache::python {

nanobind::object toText(MlirType type);
nanobind::object toText(MlirAttribute attribute);

/// The name of the class, the text, and the fields, which are None where the
/// class is the base of all.
nanobind::tuple describe(MlirType type);
nanobind::tuple describe(MlirAttribute attribute);

/// The checked arguments of a constructor.
class Fields {
public:
  /// Types and attributes, of which it has the text, are parsed into the
  /// context.
  Fields(MlirContext context, nanobind::dict values)
      : context(context), values(std::move(values)) {}

  /// 0 where it is absent.
  int64_t getInteger(const char *name) const;
  std::vector<int64_t> getIntegers(const char *name) const;
  bool getFlag(const char *name) const;
  std::string getText(const char *name) const;
  /// Null where it is absent.
  MlirType getType(const char *name) const;
  std::vector<MlirType> getTypes(const char *name) const;
  MlirAttribute getAttribute(const char *name) const;
  /// Null where it is absent.
  MlirAttribute getOptionalAttribute(const char *name) const;
  template <typename Enum> Enum getCase(const char *name) const {
    if (std::optional<Enum> known = symbolizeEnum<Enum>(getText(name)))
      return *known;
    throw nanobind::value_error("no case of the enum");
  }

private:
  bool has(const char *name) const;
  MlirType parseType(const std::string &text) const;

  MlirContext context;
  nanobind::dict values;
};

/// A class of types or of attributes.
template <typename Value> struct Kind {
  const char *name;
  bool (*isInstance)(Value);
  /// Null, and an error at the location, where a rule is broken.
  Value (*make)(MlirLocation, const Fields &);
  nanobind::dict (*getFields)(Value);
};

ArrayRef<Kind<MlirType>> getTypeKinds();
ArrayRef<Kind<MlirAttribute>> getAttributeKinds();

/// Adds what `kvcache.ir` needs to the extension.
void addIR(nanobind::module_ &module);
void addParsedModule(nanobind::module_ &module);
/// Adds what is chosen for attention.
void addAttentionPlans(nanobind::module_ &module);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_IR_H
