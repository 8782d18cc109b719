//===- PTX.cpp - From LLVM dialect to PTX ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PTX.h"

#include "mlir/Target/LLVM/ModuleToObject.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The most instructions of a function that every pass sees: about six times
/// those of an attention kernel.
constexpr unsigned kMaxInstructions = 3000;

/// Keeps long functions from passes of the back end that take a time quadratic
/// in their length.
class LongFunctionGate : public llvm::OptPassGate {
public:
  explicit LongFunctionGate(llvm::Module &module) {
    for (llvm::Function &function : module)
      if (function.getInstructionCount() > kMaxInstructions)
        longFunctions.insert(("function (" + function.getName() + ")").str());
  }

  bool isEnabled() const override { return !longFunctions.empty(); }
  bool shouldRunPass(StringRef pass, StringRef unit) const override {
    return pass != "slsr" || !longFunctions.contains(unit);
  }

private:
  llvm::StringSet<> longFunctions;
};

class ModuleToPTX : public LLVM::ModuleToObject {
public:
  ModuleToPTX(gpu::GPUModuleOp module, NVVM::NVVMTargetAttr target,
              StringRef libdevice)
      : ModuleToObject(*module, target.getTriple(), target.getChip(),
                       target.getFeatures(), target.getO()) {
    if (ArrayAttr link = target.getLink())
      llvm::append_range(libraries, link);
    if (!libdevice.empty())
      libraries.push_back(StringAttr::get(target.getContext(), libdevice));
  }

protected:
  std::optional<SmallVector<std::unique_ptr<llvm::Module>>>
  loadBitcodeFiles(llvm::Module &module) override {
    SmallVector<std::unique_ptr<llvm::Module>> loaded;
    if (failed(
            loadBitcodeFilesFromList(module.getContext(), libraries, loaded)))
      return std::nullopt;
    return loaded;
  }

  FailureOr<SmallVector<char, 0>>
  moduleToObject(llvm::Module &module) override {
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return failure();
    SmallVector<char, 0> text;
    llvm::raw_svector_ostream stream(text);
    llvm::legacy::PassManager passes;
    if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                        llvm::CodeGenFileType::AssemblyFile))
      return getOperation().emitError(
                 "has no PTX: LLVM writes no assembly for ")
             << chip;
    LongFunctionGate gate(module);
    module.getContext().setOptPassGate(gate);
    passes.run(module);
    return text;
  }

private:
  SmallVector<Attribute> libraries;
};

} // namespace

static void initializeBackEnd() {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

FailureOr<std::string> kvcache::compileToPTX(gpu::GPUModuleOp module,
                                             NVVM::NVVMTargetAttr target,
                                             StringRef libdevice) {
  initializeBackEnd();
  std::optional<SmallVector<char, 0>> text =
      ModuleToPTX(module, target, libdevice).run();
  if (!text)
    return failure();
  return std::string(text->begin(), text->end());
}
