//===- Object.cpp - Modules to object files -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Object.h"
#include "BodySelection.h"
#include "FastSelection.h"
#include "HostProcessor.h"
#include "JIT.h"
#include "LargeBlocks.h"
#include "kvcache/Compile/Guard.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace mlir::kvcache::python;

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
kvcache::python::createPortableMachine(StringRef level, unsigned optLevel) {
  initializeNativeTarget();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  llvm::orc::JITTargetMachineBuilder builder(triple);
  if (const CPULevel *found = findCPULevel(level)) {
    builder.setCPU(found->cpu.str());
    for (StringRef feature : found->splitFeatures())
      builder.getFeatures().AddFeature(feature);
  }
  builder.setRelocationModel(llvm::Reloc::PIC_);
  builder.setCodeGenOptLevel(llvm::CodeGenOpt::getLevel(optLevel).value_or(
      llvm::CodeGenOptLevel::Default));
  return builder.createTargetMachine();
}

/// Only the wrappers are for others.
static void hideFunctions(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && !function.hasLocalLinkage() &&
        !function.getName().starts_with(kTVMFFIPrefix))
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
}

llvm::Expected<std::string> kvcache::python::createObject(
    ModuleOp module, llvm::TargetMachine &machine, unsigned optLevel,
    llvm::function_ref<void(llvm::Module &)> prepare) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context);
  if (!translated)
    return llvm::createStringError("the module has no translation to LLVM IR");
  translated->setTargetTriple(machine.getTargetTriple());
  translated->setDataLayout(machine.createDataLayout());
  hideFunctions(*translated);
  prepare(*translated);
  auto optimize =
      makeOptimizingTransformer(optLevel, /*sizeLevel=*/0, &machine);
  if (llvm::Error error = optimize(translated.get()))
    return std::move(error);
  // Other levels do without the fast selector.
  if (machine.getOptLevel() == llvm::CodeGenOptLevel::None)
    prepareForFastSelection(*translated);
  else
    splitLargeBlocks(*translated);
  return emitObject(*translated, machine);
}

llvm::Expected<std::string>
kvcache::python::emitObject(llvm::Module &module,
                            llvm::TargetMachine &machine) {
  llvm::SmallVector<char> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("this machine has no object files");
  passes.run(module);
  return std::string(object.begin(), object.end());
}

/// Whether a module in the LLVM dialect has instructions that only x86 has.
static bool hasMatrixInstructions(ModuleOp module) {
  auto findFirst = [](LLVM::CallIntrinsicOp op) {
    return op.getIntrin().starts_with("llvm.x86.") ? WalkResult::interrupt()
                                                   : WalkResult::advance();
  };
  return module.walk(findFirst).wasInterrupted();
}

/// Compiles a module in the LLVM dialect.
static llvm::Error compileModule(ModuleOp module, const ObjectOptions &options,
                                 ObjectResult &result) {
  const CPULevel *level = findCPULevel(options.level);
  if (options.isOptional && level && level->mma != "fma" &&
      !hasMatrixInstructions(module)) {
    result.object.emplace();
    return llvm::Error::success();
  }
  auto machine = createPortableMachine(options.level, options.optLevel);
  if (!machine)
    return machine.takeError();
  auto object = createObject(
      module, **machine, options.optLevel, [&](llvm::Module &translated) {
        if (level)
          result.wrappers = makeBodies(translated, options.level);
      });
  if (!object)
    return object.takeError();
  result.object = std::move(*object);
  return llvm::Error::success();
}

ObjectResult kvcache::python::compileObject(std::string contents,
                                            std::string filename,
                                            ObjectOptions options) {
  return runGuarded<ObjectResult>([=] {
    Source source(contents, filename);
    ObjectResult result;
    if (source.getModule() && succeeded(source.run(options.passes)))
      if (llvm::Error error =
              compileModule(source.getModule(), options, result))
        source.getDiagnostics().addError(toString(std::move(error)));
    result.diagnostics = source.getDiagnostics().take();
    return result;
  });
}
