//===- SerializeKernels.cpp - From gpu.module to gpu.binary ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BackEndThreads.h"
#include "CUDATools.h"
#include "PTX.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Support/KernelParameters.h"
#include "kvcache/Target/Chip.h"
#include "kvcache/Target/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_SERIALIZEKERNELS
#include "kvcache/Target/Passes.h.inc"
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

/// The parameters of a kernel with their places.
FailureOr<ArrayAttr> describeParameters(LLVM::LLVMFuncOp kernel,
                                        ArrayRef<ParameterPlace> places) {
  Builder builder(kernel.getContext());
  FailureOr<ArrayAttr> given = getKernelParameters(kernel);
  if (failed(given))
    return failure();
  SmallVector<Attribute> parameters;
  for (auto [index, place] : llvm::enumerate(places)) {
    NamedAttrList facts;
    if (*given) {
      facts.append(cast<DictionaryAttr>((*given)[index]).getValue());
    } else {
      auto copied = kernel.getArgAttrOfType<TypeAttr>(
          index, LLVM::LLVMDialect::getByValAttrName());
      Type type = kernel.getArgument(index).getType();
      facts.set("name", builder.getStringAttr(kernel.getSymName() + "_param_" +
                                              Twine(index)));
      facts.set("type", copied ? copied : TypeAttr::get(type));
    }
    facts.set("offset", builder.getI64IntegerAttr(place.offset));
    facts.set("size", builder.getI64IntegerAttr(place.size));
    parameters.push_back(facts.getDictionary(kernel.getContext()));
  }
  return builder.getArrayAttr(parameters);
}

/// The threads of a block along x, y and z where the kernel fixes them.
Attribute describeBlock(LLVM::LLVMFuncOp kernel) {
  for (StringRef name : {NVVM::NVVMDialect::getReqntidAttrName(),
                         NVVM::NVVMDialect::getMaxntidAttrName()})
    if (auto threads = kernel->getAttrOfType<DenseI32ArrayAttr>(name)) {
      SmallVector<int32_t> sizes(threads.asArrayRef());
      sizes.resize(3, 1);
      return Builder(kernel.getContext()).getDenseI32ArrayAttr(sizes);
    }
  return {};
}

/// Describes the kernels of a module, for launches.
FailureOr<ArrayAttr> describeKernels(gpu::GPUModuleOp module,
                                     const PTXModule &ptx) {
  Builder builder(module.getContext());
  SmallVector<Attribute> kernels;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      continue;
    FailureOr<ArrayAttr> parameters =
        describeParameters(function, ptx.parameters.lookup(function.getName()));
    if (failed(parameters))
      return failure();
    NamedAttrList facts;
    facts.set("name", function.getSymNameAttr());
    facts.set("parameters", *parameters);
    if (Attribute blockSize = describeBlock(function))
      facts.set("block_size", blockSize);
    if (Attribute bytes =
            function->getAttr(KVCacheDialect::kDynamicSharedMemoryAttr))
      facts.set("dynamic_shared_memory", bytes);
    kernels.push_back(facts.getDictionary(module.getContext()));
  }
  return builder.getArrayAttr(kernels);
}

/// A function of CUDA's libdevice that the module calls; null if there is none.
LLVM::LLVMFuncOp findLibdeviceFunction(gpu::GPUModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function.isExternal() && function.getSymName().starts_with("__nv_"))
      return function;
  return nullptr;
}

InFlightDiagnostic emitNoLibdevice(LLVM::LLVMFuncOp function) {
  Operation *user = function;
  if (auto uses = SymbolTable::getSymbolUses(function, function->getParentOp()))
    if (!uses->empty())
      user = uses->begin()->getUser();
  return user->emitError("needs '")
         << function.getSymName()
         << "' of CUDA's libdevice, which was not found: pass the option "
            "'toolkit' or set CUDA_HOME to a CUDA toolkit, or install "
            "'nvidia-nvvm' beside Python's ptxas";
}

/// The targets of a module, all of which must be NVIDIA's.
FailureOr<SmallVector<NVVM::NVVMTargetAttr>>
getTargets(gpu::GPUModuleOp module) {
  ArrayAttr attributes = module.getTargetsAttr();
  if (!attributes)
    return module.emitOpError("expects a target, which "
                              "'kvcache-attach-targets=chip=sm_90a' sets");
  SmallVector<NVVM::NVVMTargetAttr> targets;
  for (Attribute attribute : attributes) {
    auto target = dyn_cast<NVVM::NVVMTargetAttr>(attribute);
    if (!target)
      return module.emitOpError("expects targets to be #nvvm.target, got ")
             << attribute;
    if (!lookupChip(target.getChip()))
      return module.emitOpError(getUnknownChipMessage(target.getChip()));
    targets.push_back(target);
  }
  return targets;
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
    auto modules = llvm::to_vector(getOperation().getOps<gpu::GPUModuleOp>());
    llvm::StringMap<StringAttr> originals;
    for (gpu::GPUModuleOp module : modules)
      if (auto original = module->getAttrOfType<FlatSymbolRefAttr>(
              KVCacheDialect::kCloneOfAttr))
        originals[module.getName()] = original.getAttr();
    if (failed(serialize(modules)) || failed(mergeClones(originals)))
      signalPassFailure();
  }

private:
  /// A module, which becomes an object for each of its targets.
  struct Job {
    gpu::GPUModuleOp module;
    NVVM::NVVMTargetAttr target;
    PTXCompilation compilation;
  };

  /// Replaces modules by binaries.
  LogicalResult serialize(ArrayRef<gpu::GPUModuleOp> modules) {
    std::vector<Job> jobs;
    for (gpu::GPUModuleOp module : modules)
      if (failed(addJobs(module, jobs))) {
        for (Job &job : jobs)
          (void)job.compilation.finish();
        return failure();
      }
    runInThreads(jobs.size(),
                 [&](size_t number) { jobs[number].compilation.run(); });
    llvm::DenseMap<Operation *, SmallVector<Attribute>> objects;
    for (Job &job : jobs) {
      FailureOr<gpu::ObjectAttr> object = makeObject(job);
      if (failed(object))
        return failure();
      objects[job.module].push_back(*object);
    }
    for (gpu::GPUModuleOp module : modules) {
      OpBuilder builder(module);
      gpu::BinaryOp::create(builder, module.getLoc(), module.getName(),
                            module.getOffloadingHandlerAttr(),
                            builder.getArrayAttr(objects[module]));
      module.erase();
    }
    return success();
  }

  LogicalResult addJobs(gpu::GPUModuleOp module, std::vector<Job> &jobs) {
    FailureOr<SmallVector<NVVM::NVVMTargetAttr>> targets = getTargets(module);
    if (failed(targets))
      return failure();
    FailureOr<std::string> libdevice = getLibdevice(module);
    if (failed(libdevice))
      return failure();
    for (NVVM::NVVMTargetAttr target : *targets) {
      FailureOr<PTXCompilation> compilation =
          PTXCompilation::create(module, target, *libdevice);
      if (failed(compilation))
        return failure();
      jobs.push_back({module, target, std::move(*compilation)});
    }
    return success();
  }

  /// The path of libdevice where the module needs it, and else nothing: reading
  /// it takes longer than compiling a small kernel.
  FailureOr<std::string> getLibdevice(gpu::GPUModuleOp module) {
    LLVM::LLVMFuncOp function = findLibdeviceFunction(module);
    if (!function)
      return std::string();
    if (std::optional<std::string> path = findLibdevice(toolkit))
      return *path;
    return emitNoLibdevice(function);
  }

  FailureOr<gpu::ObjectAttr> makeObject(Job &job) {
    auto &[module, target, compilation] = job;
    FailureOr<PTXModule> ptx = compilation.finish();
    if (failed(ptx))
      return failure();
    FailureOr<StringAttr> content = finish(module.getLoc(), ptx->text, target);
    if (failed(content))
      return failure();
    FailureOr<ArrayAttr> kernels = describeKernels(module, *ptx);
    if (failed(kernels))
      return failure();
    Builder builder(&getContext());
    NamedAttribute properties[] = {
        builder.getNamedAttr("O", builder.getI32IntegerAttr(target.getO())),
        builder.getNamedAttr(KVCacheDialect::kKernelsProperty, *kernels)};
    return gpu::ObjectAttr::get(&getContext(), target, *parseFormat(format),
                                *content, builder.getDictionaryAttr(properties),
                                /*kernels=*/nullptr);
  }

  /// Assembles PTX as the format asks.
  FailureOr<StringAttr> finish(Location loc, StringRef ptx,
                               NVVM::NVVMTargetAttr target) {
    gpu::CompilationTarget wanted = *parseFormat(format);
    // The driver reads text up to a zero byte.
    if (wanted == gpu::CompilationTarget::Assembly)
      return StringAttr::get(&getContext(), ptx + Twine('\0'));
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
  LogicalResult mergeClones(const llvm::StringMap<StringAttr> &originals) {
    SymbolTable symbols(getOperation());
    Builder builder(&getContext());
    for (auto binary :
         llvm::make_early_inc_range(getOperation().getOps<gpu::BinaryOp>())) {
      auto found = originals.find(binary.getName());
      if (found == originals.end())
        continue;
      auto original = symbols.lookup<gpu::BinaryOp>(found->second);
      if (!original || original == binary)
        return binary.emitOpError("expects '")
               << KVCacheDialect::kCloneOfAttr
               << "' to name another gpu.module, got '"
               << found->second.getValue() << "'";
      SmallVector<Attribute> objects(original.getObjectsAttr().getValue());
      llvm::append_range(objects, binary.getObjectsAttr());
      original.setObjectsAttr(builder.getArrayAttr(objects));
      symbols.erase(binary);
    }
    return success();
  }
};

} // namespace
