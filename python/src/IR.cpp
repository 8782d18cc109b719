//===- IR.cpp - Types and attributes for Python ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IR.h"
#include "Conversions.h"
#include "kvcache-c/Dialect.h"
#include "kvcache/Compile/Source.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Support/Nesting.h"
#include "mlir/CAPI/IR.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

template <typename Value>
static nb::object toText(Value value,
                         void (*print)(Value, MlirStringCallback, void *)) {
  std::string text;
  auto append = [](MlirStringRef part, void *text) {
    static_cast<std::string *>(text)->append(part.data, part.length);
  };
  print(value, append, &text);
  return toStr(text);
}

nb::object python::toText(MlirType type) {
  return ::toText(type, mlirTypePrint);
}

nb::object python::toText(MlirAttribute attribute) {
  return ::toText(attribute, mlirAttributePrint);
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

MlirType Fields::parseType(const std::string &text) const {
  return mlirTypeParseGet(context,
                          mlirStringRefCreate(text.data(), text.size()));
}

bool Fields::has(const char *name) const {
  return values.contains(name) && !values[name].is_none();
}

int64_t Fields::getInteger(const char *name) const {
  return has(name) ? nb::cast<int64_t>(values[name]) : 0;
}

std::vector<int64_t> Fields::getIntegers(const char *name) const {
  return nb::cast<std::vector<int64_t>>(values[name]);
}

bool Fields::getFlag(const char *name) const {
  return nb::cast<bool>(values[name]);
}

std::string Fields::getText(const char *name) const {
  return nb::cast<std::string>(values[name]);
}

MlirType Fields::getType(const char *name) const {
  return has(name) ? parseType(getText(name)) : MlirType{nullptr};
}

std::vector<MlirType> Fields::getTypes(const char *name) const {
  std::vector<MlirType> types;
  for (const auto &text : nb::cast<std::vector<std::string>>(values[name]))
    types.push_back(parseType(text));
  return types;
}

MlirAttribute Fields::getAttribute(const char *name) const {
  std::string text = getText(name);
  return mlirAttributeParseGet(context,
                               mlirStringRefCreate(text.data(), text.size()));
}

MlirAttribute Fields::getOptionalAttribute(const char *name) const {
  return has(name) ? getAttribute(name) : MlirAttribute{nullptr};
}

//===----------------------------------------------------------------------===//
// Parsing and making
//===----------------------------------------------------------------------===//

/// Its class, its text and its fields.
template <typename Value>
static nb::tuple describe(Value value, ArrayRef<Kind<Value>> kinds,
                          const char *base) {
  for (const Kind<Value> &kind : kinds)
    if (kind.isInstance(value))
      return nb::make_tuple(kind.name, toText(value), kind.getFields(value));
  return nb::make_tuple(base, toText(value), nb::none());
}

nb::tuple python::describe(MlirType type) {
  return ::describe(type, getTypeKinds(), "Type");
}

nb::tuple python::describe(MlirAttribute attribute) {
  return ::describe(attribute, getAttributeKinds(), "Attribute");
}

/// The parser takes the text for the name of its file.
static nb::list takeDiagnostics(DiagnosticCollector &collector) {
  std::vector<DiagnosticRecord> diagnostics = collector.take();
  for (DiagnosticRecord &diagnostic : diagnostics)
    if (!diagnostic.filename.empty())
      diagnostic.filename = "<string>";
  return toPython(diagnostics);
}

/// Parses into a context that has seen no other names: one, such as that of a
/// structure of LLVM, means the same all over a context.
template <typename Value>
static nb::tuple parse(const nb::bytes &text,
                       Value (*parse)(MlirContext, MlirStringRef)) {
  std::string contents = toString(text);
  ContextLease context = leaseContext(contents);
  DiagnosticCollector diagnostics(context->get());
  nb::object result = nb::none();
  if (std::optional<Unreadable> found = findUnreadable(contents)) {
    diagnostics.addError(found->reason);
  } else {
    Value value = parse(wrap(context->get()),
                        mlirStringRefCreate(contents.data(), contents.size()));
    if (value.ptr)
      result = python::describe(value);
    else if (!diagnostics.hasError())
      diagnostics.addError("the text could not be parsed");
  }
  return nb::make_tuple(result, takeDiagnostics(diagnostics));
}

/// The context of what is made, which is of this dialect and has no names. It
/// lives as long as the process.
static MLIRContext &getContext() {
  static MLIRContext *const context = [] {
    auto *context =
        new MLIRContext(getRegistry(), MLIRContext::Threading::DISABLED);
    mlirDialectHandleLoadDialect(mlirGetDialectHandle__kvcache__(),
                                 wrap(context));
    return context;
  }();
  return *context;
}

template <typename Value>
static nb::tuple make(const std::string &name, nb::dict fields,
                      ArrayRef<Kind<Value>> kinds) {
  const auto *kind = llvm::find_if(
      kinds, [&](const Kind<Value> &kind) { return kind.name == name; });
  if (kind == kinds.end())
    throw nb::value_error("no such class");
  MlirContext context = wrap(&getContext());
  DiagnosticCollector diagnostics(&getContext());
  Value value = kind->make(mlirLocationUnknownGet(context),
                           Fields(context, std::move(fields)));
  return nb::make_tuple(value.ptr ? toText(value) : nb::none(),
                        takeDiagnostics(diagnostics));
}

/// The names of an op's operands, and whether it says how many there are of
/// each.
static nb::object getOperandNames(const std::string &name) {
  std::optional<RegisteredOperationName> op =
      RegisteredOperationName::lookup(name, &getContext());
  auto *named = op ? op->getInterface<NamedOperandsOpInterface>() : nullptr;
  if (!named)
    return nb::none();
  nb::list names;
  for (StringRef operand : named->getOperandNames())
    names.append(toStr(operand));
  return nb::make_tuple(names,
                        op->hasTrait<OpTrait::AttrSizedOperandSegments>());
}

/// Adds the words of an enum, with the text of the attribute that each means.
template <typename Attr, typename Enum>
static void addWords(nb::dict &words,
                     std::optional<Enum> (*symbolize)(uint32_t)) {
  for (uint32_t number = 0; std::optional<Enum> value = symbolize(number);
       ++number)
    words[toStr(stringifyEnum(*value))] =
        toText(wrap(Attr::get(&getContext(), *value)));
}

/// The words of an attribute of an op, and what they mean; none if it is no
/// enum.
static nb::dict getEnumWords(const std::string &attribute) {
  nb::dict words;
  if (attribute == "role")
    addWords<RoleAttr>(words, symbolizeRole);
  else if (attribute == "extent")
    addWords<ExtentAttr>(words, symbolizeExtent);
  else if (attribute == "swizzle")
    addWords<SwizzleAttr>(words, symbolizeSwizzle);
  else if (StringRef(attribute).starts_with("major"))
    addWords<MajorAttr>(words, symbolizeMajor);
  else if (attribute == "l2_hint")
    addWords<EvictionAttr>(words, symbolizeEviction);
  else if (attribute == "copy")
    addWords<CopyKindAttr>(words, symbolizeCopyKind);
  return words;
}

void python::addIR(nb::module_ &module) {
  module.def(
      "parse_type",
      [](const nb::bytes &text) { return parse(text, mlirTypeParseGet); },
      nb::arg("text"));
  module.def(
      "parse_attribute",
      [](const nb::bytes &text) { return parse(text, mlirAttributeParseGet); },
      nb::arg("text"));
  module.def(
      "make_type",
      [](const std::string &name, nb::dict fields) {
        return make(name, std::move(fields), getTypeKinds());
      },
      nb::arg("name"), nb::arg("fields"));
  module.def(
      "make_attribute",
      [](const std::string &name, nb::dict fields) {
        return make(name, std::move(fields), getAttributeKinds());
      },
      nb::arg("name"), nb::arg("fields"));
  module.def("operand_names", &getOperandNames, nb::arg("op"));
  module.def("enum_words", &getEnumWords, nb::arg("attribute"));
  addParsedModule(module);
  addAttentionPlans(module);
}
