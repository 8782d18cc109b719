//===- Compile.cpp - Modules to GPU objects -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Compile/Compile.h"

#include "kvcache/Compile/Guard.h"
#include "kvcache/Compile/Source.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Pipelines/KernelLowering.h"
#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::kvcache;

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

/// A source may have objects from elsewhere, so that nothing is certain.
static CompiledKernel describeKernel(DictionaryAttr facts) {
  CompiledKernel kernel;
  if (auto name = facts.getAs<StringAttr>("name"))
    kernel.name = name.str();
  if (auto parameters = facts.getAs<ArrayAttr>("parameters"))
    for (Attribute attribute : parameters) {
      auto parameter = dyn_cast<DictionaryAttr>(attribute);
      auto name = parameter ? parameter.getAs<StringAttr>("name") : nullptr;
      auto type = parameter ? parameter.getAs<TypeAttr>("type") : nullptr;
      auto size = parameter ? parameter.getAs<IntegerAttr>("size") : nullptr;
      auto offset =
          parameter ? parameter.getAs<IntegerAttr>("offset") : nullptr;
      if (!name || !type || !size || !offset)
        continue;
      std::string text;
      llvm::raw_string_ostream(text) << type;
      kernel.parameters.push_back({name.str(), std::move(text),
                                   size.getValue().getSExtValue(),
                                   offset.getValue().getSExtValue()});
    }
  if (auto blockSize = facts.getAs<DenseI32ArrayAttr>("block_size"))
    kernel.blockSize.assign(blockSize.asArrayRef().begin(),
                            blockSize.asArrayRef().end());
  if (auto bytes = facts.getAs<IntegerAttr>("dynamic_shared_memory"))
    kernel.dynamicSharedMemory = bytes.getValue().trySExtValue().value_or(0);
  return kernel;
}

static CompiledObject describeObject(StringRef module, StringRef chip,
                                     gpu::ObjectAttr object) {
  CompiledObject result;
  result.module = module.str();
  result.chip = chip.str();
  // The text of PTX is terminated for the driver; others count its bytes.
  StringRef data = object.getObject().getValue();
  if (object.getFormat() == gpu::CompilationTarget::Assembly)
    data = data.rtrim('\0');
  result.data = data.str();
  DictionaryAttr properties = object.getProperties();
  if (!properties)
    properties = DictionaryAttr::get(object.getContext());
  result.properties = llvm::formatv("{0}", toJSON(properties));
  if (auto kernels =
          properties.getAs<ArrayAttr>(KVCacheDialect::kKernelsProperty))
    for (Attribute kernel : kernels)
      if (auto facts = dyn_cast<DictionaryAttr>(kernel))
        result.kernels.push_back(describeKernel(facts));
  return result;
}

static void collectObjects(ModuleOp module,
                           std::vector<CompiledObject> &objects) {
  module.walk([&](gpu::BinaryOp binary) {
    for (auto object : binary.getObjectsAttr().getAsRange<gpu::ObjectAttr>())
      if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget()))
        objects.push_back(
            describeObject(binary.getSymName(), target.getChip(), object));
  });
}

/// Returns a key of the pipeline: all of the options.
static std::string getPipelineKey(const CompileOptions &options) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  auto quote = [&](StringRef text) {
    stream << '"';
    llvm::printEscapedString(text, stream);
    stream << '"';
  };
  stream << "compile " << options.optLevel << " " << options.boundsChecks;
  for (StringRef text : {StringRef(options.format), StringRef(options.toolkit),
                         StringRef(options.tuning)})
    quote(text);
  llvm::for_each(options.chips, quote);
  return key;
}

static void buildPipeline(OpPassManager &pm, const CompileOptions &options) {
  ToPTXOptions toPTX;
  for (const std::string &chip : options.chips)
    toPTX.chips.push_back(chip);
  toPTX.format = options.format;
  toPTX.optLevel = options.optLevel;
  toPTX.toolkit = options.toolkit;
  if (!options.tuning.empty()) {
    PlanAttentionOptions plan;
    plan.chips.assign(options.chips.begin(), options.chips.end());
    plan.tuning = options.tuning;
    pm.addPass(createPlanAttention(plan));
  }
  if (options.boundsChecks) {
    // Checks are of accesses, which ops on whole caches become.
    addOpExpansion(pm, options.chips, /*checks=*/true);
    pm.addPass(createBoundsChecks());
  }
  buildToPTXPipeline(pm, toPTX);
}

static CompileResult compileUnguarded(StringRef contents, StringRef filename,
                                      const CompileOptions &options) {
  Source source(contents, filename);
  CompileResult result;
  auto build = [&](OpPassManager &pm) { buildPipeline(pm, options); };
  if (source.getModule() &&
      succeeded(source.run(getPipelineKey(options), build))) {
    result.succeeded = true;
    collectObjects(source.getModule(), result.objects);
  }
  result.diagnostics = source.getDiagnostics().take();
  return result;
}

CompileResult kvcache::compile(std::string source, std::string filename,
                               CompileOptions options) {
  return runGuarded<CompileResult>([source = std::move(source),
                                    filename = std::move(filename),
                                    options = std::move(options)] {
    return compileUnguarded(source, filename, options);
  });
}
