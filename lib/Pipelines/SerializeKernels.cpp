//===- SerializeKernels.cpp - From gpu.module to gpu.binary ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CUDATools.h"
#include "kvcache/IR/KVCache.h"
#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_SERIALIZEKERNELS
#include "kvcache/Pipelines/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

std::optional<gpu::CompilationTarget> parseFormat(StringRef format) {
  return llvm::StringSwitch<std::optional<gpu::CompilationTarget>>(format)
      .Case("ptx", gpu::CompilationTarget::Assembly)
      .Case("cubin", gpu::CompilationTarget::Binary)
      .Case("fatbin", gpu::CompilationTarget::Fatbin)
      .Default(std::nullopt);
}

/// What others need to know of the kernels in a module in order to launch them.
DictionaryAttr describeKernels(gpu::GPUModuleOp module) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> kernels;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      continue;
    NamedAttrList facts;
    if (Attribute parameters =
            function->getAttr(KVCacheDialect::kParametersAttr))
      facts.set("parameters", parameters);
    if (Attribute blockSize =
            function->getAttr(NVVM::NVVMDialect::getMaxntidAttrName()))
      facts.set("block_size", blockSize);
    if (Attribute bytes = function->getAttr(kDynamicSharedMemoryAttr))
      facts.set("dynamic_shared_memory", bytes);
    kernels.push_back(builder.getNamedAttr(
        function.getSymName(), facts.getDictionary(module.getContext())));
  }
  return builder.getDictionaryAttr(kernels);
}

/// Functions of CUDA's libdevice are only there with a toolkit.
LogicalResult checkLibdevice(gpu::GPUModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!function.isExternal() || !function.getSymName().starts_with("__nv_"))
      continue;
    Operation *user = function;
    if (auto uses = SymbolTable::getSymbolUses(function, module))
      if (!uses->empty())
        user = uses->begin()->getUser();
    return user->emitError("needs '")
           << function.getSymName()
           << "' of CUDA's libdevice: pass the pipeline option 'toolkit' with "
              "a toolkit that has it, or write it with ops that chips have "
              "(such as math.exp2)";
  }
  return success();
}

struct SerializeKernels
    : kvcache::impl::SerializeKernelsBase<SerializeKernels> {
  using SerializeKernelsBase::SerializeKernelsBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (!parseFormat(format))
      return emitError(UnknownLoc::get(context))
             << "unknown format '" << format
             << "'; known are ptx, cubin and fatbin";
    return success();
  }

  void runOnOperation() override {
    llvm::StringMap<DictionaryAttr> kernels;
    llvm::StringMap<StringAttr> originals;
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>()) {
      if (!hasLibdevice() && failed(checkLibdevice(module)))
        return signalPassFailure();
      kernels[module.getName()] = describeKernels(module);
      if (auto original = module->getAttrOfType<FlatSymbolRefAttr>(
              KVCacheDialect::kCloneOfAttr))
        originals[module.getName()] = original.getAttr();
    }

    // Upstream makes the PTX; from there on the tools are ours to find.
    gpu::TargetOptions options(hasLibdevice() ? StringRef(toolkit) : "", {}, {},
                               {}, gpu::CompilationTarget::Assembly);
    if (failed(gpu::transformGpuModulesToBinaries(getOperation(), nullptr,
                                                  options)))
      return signalPassFailure();
    for (auto binary : getOperation().getOps<gpu::BinaryOp>()) {
      auto found = kernels.find(binary.getName());
      if (found != kernels.end() &&
          failed(finishObjects(binary, found->second)))
        return signalPassFailure();
    }
    mergeClones(originals);
  }

private:
  bool hasLibdevice() const {
    SmallString<128> path(toolkit.getValue());
    llvm::sys::path::append(path, "nvvm", "libdevice", "libdevice.10.bc");
    return !toolkit.empty() && llvm::sys::fs::exists(path);
  }

  /// Assembles the PTX as the format asks, and adds what is known of kernels.
  LogicalResult finishObjects(gpu::BinaryOp binary, DictionaryAttr kernels) {
    Builder builder(&getContext());
    SmallVector<Attribute> objects;
    for (auto object : binary.getObjectsAttr().getAsRange<gpu::ObjectAttr>()) {
      FailureOr<StringAttr> content = assemble(binary.getLoc(), object);
      if (failed(content))
        return failure();
      NamedAttrList properties(object.getProperties());
      properties.set(kKernelsProperty, kernels);
      objects.push_back(gpu::ObjectAttr::get(
          &getContext(), object.getTarget(), *parseFormat(format), *content,
          properties.getDictionary(&getContext()), object.getKernels()));
    }
    binary.setObjectsAttr(builder.getArrayAttr(objects));
    return success();
  }

  FailureOr<StringAttr> assemble(Location loc, gpu::ObjectAttr object) {
    gpu::CompilationTarget wanted = *parseFormat(format);
    if (wanted == gpu::CompilationTarget::Assembly)
      return object.getObject();
    auto target = cast<NVVM::NVVMTargetAttr>(object.getTarget());
    // LLVM ends the text with a zero byte for the driver.
    StringRef ptx = object.getObject().getValue().rtrim('\0');
    FailureOr<std::string> ptxas = findCUDATool(loc, "ptxas", toolkit);
    if (failed(ptxas))
      return failure();
    FailureOr<std::string> content =
        assemblePTX(loc, *ptxas, ptx, target.getChip(), target.getO());
    if (failed(content))
      return failure();
    if (wanted == gpu::CompilationTarget::Fatbin) {
      FailureOr<std::string> fatbinary =
          findCUDATool(loc, "fatbinary", toolkit);
      if (failed(fatbinary))
        return failure();
      content = makeFatBinary(loc, *fatbinary, ptx, *content, target.getChip());
      if (failed(content))
        return failure();
    }
    return StringAttr::get(&getContext(), *content);
  }

  /// Moves the objects of a clone for another target to the original binary.
  void mergeClones(const llvm::StringMap<StringAttr> &originals) {
    SymbolTable symbols(getOperation());
    Builder builder(&getContext());
    for (auto binary :
         llvm::make_early_inc_range(getOperation().getOps<gpu::BinaryOp>())) {
      auto found = originals.find(binary.getName());
      if (found == originals.end())
        continue;
      auto original = symbols.lookup<gpu::BinaryOp>(found->second);
      SmallVector<Attribute> objects(original.getObjectsAttr().getValue());
      llvm::append_range(objects, binary.getObjectsAttr());
      original.setObjectsAttr(builder.getArrayAttr(objects));
      binary.erase();
    }
  }
};

} // namespace
