//===- Compile.cpp - Modules to GPU objects -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "Guard.h"
#include "Source.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::kvcache::python;

/// Attributes that JSON has no word for become their text.
static llvm::json::Value toJSON(Attribute attribute) {
  using llvm::json::Value;
  return llvm::TypeSwitch<Attribute, Value>(attribute)
      .Case([](DictionaryAttr dictionary) {
        llvm::json::Object object;
        for (NamedAttribute entry : dictionary)
          object[llvm::json::fixUTF8(entry.getName())] =
              toJSON(entry.getValue());
        return object;
      })
      .Case([](ArrayAttr array) {
        return llvm::json::Array(llvm::map_range(array, toJSON));
      })
      .Case([](DenseI32ArrayAttr array) {
        return llvm::json::Array(array.asArrayRef());
      })
      .Case([](DenseI64ArrayAttr array) {
        return llvm::json::Array(array.asArrayRef());
      })
      .Case([](BoolAttr boolean) { return Value(boolean.getValue()); })
      .Case([](IntegerAttr integer) {
        return Value(integer.getValue().getSExtValue());
      })
      .Case([](StringAttr string) {
        return Value(llvm::json::fixUTF8(string.getValue()));
      })
      .Case([](UnitAttr) { return Value(true); })
      .Default([](Attribute other) {
        std::string text;
        llvm::raw_string_ostream(text) << other;
        return Value(llvm::json::fixUTF8(text));
      });
}

static void collectObjects(ModuleOp module, std::vector<Object> &objects) {
  module.walk([&](gpu::BinaryOp binary) {
    for (Attribute attribute : binary.getObjects()) {
      auto object = cast<gpu::ObjectAttr>(attribute);
      auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget());
      if (!target)
        continue;
      DictionaryAttr properties = object.getProperties();
      if (!properties)
        properties = DictionaryAttr::get(module.getContext());
      // The text of PTX is terminated for the driver; Python needs no NUL.
      StringRef data = object.getObject().getValue();
      if (object.getFormat() == gpu::CompilationTarget::Assembly)
        data = data.rtrim('\0');
      objects.push_back({binary.getSymName().str(), target.getChip().str(),
                         data.str(), llvm::formatv("{0}", toJSON(properties))});
    }
  });
}

static CompileResult compileUnguarded(StringRef contents, StringRef filename,
                                      StringRef passes) {
  Source source(contents, filename);
  CompileResult result;
  if (source.getModule() && succeeded(source.run(passes))) {
    result.succeeded = true;
    collectObjects(source.getModule(), result.objects);
  }
  result.diagnostics = source.getDiagnostics().take();
  return result;
}

CompileResult kvcache::python::compile(std::string source, std::string filename,
                                       std::string passes) {
  return runGuarded<CompileResult>([source = std::move(source),
                                    filename = std::move(filename),
                                    passes = std::move(passes)] {
    return compileUnguarded(source, filename, passes);
  });
}
