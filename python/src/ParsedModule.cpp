//===- ParsedModule.cpp - Parsed modules ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversions.h"
#include "IR.h"
#include "ReleasedGIL.h"
#include "kvcache/Compile/Guard.h"
#include "kvcache/Compile/Source.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

namespace nb = nanobind;
using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

namespace {
/// The source with its module; null on errors.
struct ParsedSource {
  std::unique_ptr<Source> source;
  std::vector<DiagnosticRecord> diagnostics;
};
} // namespace

static nb::tuple parseSource(const nb::bytes &source,
                             const std::string &filename) {
  ParsedSource parsed;
  std::string contents = toString(source);
  {
    ReleasedGIL released;
    parsed = runGuarded<ParsedSource>([contents, filename] {
      ParsedSource parsed;
      parsed.source = std::make_unique<Source>(contents, filename);
      parsed.diagnostics = parsed.source->getDiagnostics().take();
      if (!parsed.source->getModule())
        parsed.source = nullptr;
      return parsed;
    });
  }
  return nb::make_tuple(std::move(parsed.source), toPython(parsed.diagnostics));
}

static nb::object print(Source &source) {
  std::string text;
  llvm::raw_string_ostream(text) << source.getModule();
  return toStr(text);
}

static nb::bytes writeBytecode(Source &source) {
  std::string data;
  llvm::raw_string_ostream stream(data);
  // It fails only where an older version is asked for.
  (void)writeBytecodeToFile(source.getModule(), stream);
  return toBytes(data);
}

/// The names of the modules that a function is in, but for the outermost, and
/// its own.
static std::string getPath(FunctionOpInterface function) {
  std::string path = function.getName().str();
  for (Operation *parent = function->getParentOp(); parent->getParentOp();
       parent = parent->getParentOp())
    if (auto name =
            parent->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      path = (name.getValue() + "::" + path).str();
  return path;
}

/// A tuple of its path, the names and types of its arguments, and the types of
/// its results.
static nb::tuple describe(FunctionOpInterface function) {
  nb::list arguments, results;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto name = function.getArgAttrOfType<StringAttr>(
        index, KVCacheDialect::kArgNameAttr);
    arguments.append(
        nb::make_tuple(toStr(name ? name.getValue() : ""), toText(wrap(type))));
  }
  for (Type type : function.getResultTypes())
    results.append(toText(wrap(type)));
  return nb::make_tuple(toStr(getPath(function)), arguments, results);
}

static nb::list getFunctions(Source &source) {
  nb::list functions;
  source.getModule().walk<WalkOrder::PreOrder>(
      [&](FunctionOpInterface function) {
        functions.append(describe(function));
      });
  return functions;
}

void python::addParsedModule(nb::module_ &module) {
  nb::class_<Source>(module, "Module")
      .def("text", &print)
      .def("bytecode", &writeBytecode)
      .def("functions", &getFunctions);
  module.def("parse_module", &parseSource, nb::arg("source"),
             nb::arg("filename"));
}
