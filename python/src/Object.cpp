//===- Object.cpp - Modules to object files -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Object.h"
#include "JIT.h"
#include "kvcache/Compile/Guard.h"
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

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createMachine(unsigned optLevel) {
  initializeNativeTarget();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  llvm::orc::JITTargetMachineBuilder builder(triple);
  builder.setRelocationModel(llvm::Reloc::PIC_);
  builder.setCodeGenOptLevel(llvm::CodeGenOpt::getLevel(optLevel).value_or(
      llvm::CodeGenOptLevel::Default));
  return builder.createTargetMachine();
}

/// Only the wrappers are for others.
static void hideFunctions(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && !function.hasLocalLinkage() &&
        !function.getName().starts_with("__tvm_ffi_"))
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
}

/// Whether the fast instruction selector leaves an instruction to the slow one.
/// It selects scalar instructions; a call that it can't select costs only
/// itself.
static bool isSlowToSelect(const llvm::Instruction &instruction) {
  if (isa<llvm::CallBase, llvm::PHINode, llvm::ExtractValueInst>(instruction))
    return false;
  auto isSlow = [](const llvm::Value *value) {
    llvm::Type *type = value->getType();
    return type->isAggregateType() || type->isVectorTy();
  };
  return isSlow(&instruction) ||
         llvm::any_of(instruction.operand_values(), isSlow);
}

/// Returns where a block changes between runs of slow and of fast instructions.
/// A few fast ones among slow ones belong to their run.
static llvm::SmallVector<llvm::Instruction *>
findBorders(llvm::BasicBlock::iterator begin, llvm::BasicBlock::iterator end) {
  constexpr unsigned minFast = 8;
  llvm::SmallVector<llvm::Instruction *> borders;
  llvm::Instruction *firstFast = nullptr;
  unsigned numFast = minFast;
  for (llvm::Instruction &instruction : llvm::make_range(begin, end)) {
    if (!isSlowToSelect(instruction)) {
      if (numFast++ == 0)
        firstFast = &instruction;
      continue;
    }
    if (numFast >= minFast) {
      if (firstFast)
        borders.push_back(firstFast);
      borders.push_back(&instruction);
    }
    firstFast = nullptr;
    numFast = 0;
  }
  if (firstFast && numFast >= minFast)
    borders.push_back(firstFast);
  return borders;
}

/// Splits blocks around instructions that are slow to select. The fast selector
/// goes through a block from its end, and leaves all that is before an
/// instruction that it can't select to the slow one.
static void isolateSlowInstructions(llvm::Function &function) {
  for (llvm::BasicBlock &block : llvm::make_early_inc_range(function)) {
    auto begin = block.getFirstNonPHIIt();
    // Variables have fixed places on the stack only in the first block.
    for (llvm::Instruction &instruction : block)
      if (isa<llvm::AllocaInst>(instruction))
        begin = std::next(instruction.getIterator());
    auto borders = findBorders(begin, block.end());
    // From the last one on, so that the others stay in this block.
    for (llvm::Instruction *border : llvm::reverse(borders)) {
      auto *call = dyn_cast_or_null<llvm::CallInst>(border->getPrevNode());
      if (border != &block.front() && !(call && call->isMustTailCall()))
        block.splitBasicBlock(border);
    }
  }
}

llvm::Expected<std::string>
kvcache::python::createObject(ModuleOp module, llvm::TargetMachine &machine,
                              unsigned optLevel) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context);
  if (!translated)
    return llvm::createStringError("the module has no translation to LLVM IR");
  translated->setTargetTriple(machine.getTargetTriple());
  translated->setDataLayout(machine.createDataLayout());
  hideFunctions(*translated);
  auto optimize =
      makeOptimizingTransformer(optLevel, /*sizeLevel=*/0, &machine);
  if (llvm::Error error = optimize(translated.get()))
    return std::move(error);
  // Other levels do without the fast selector.
  if (machine.getOptLevel() == llvm::CodeGenOptLevel::None)
    for (llvm::Function &function : *translated)
      isolateSlowInstructions(function);
  llvm::SmallVector<char> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("this machine has no object files");
  passes.run(*translated);
  return std::string(object.begin(), object.end());
}

ObjectResult kvcache::python::compileObject(std::string contents,
                                            std::string filename,
                                            std::string passes,
                                            unsigned optLevel) {
  return runGuarded<ObjectResult>([=] {
    Source source(contents, filename);
    ObjectResult result;
    if (source.getModule() && succeeded(source.run(passes))) {
      auto machine = createMachine(optLevel);
      auto object = machine
                        ? createObject(source.getModule(), **machine, optLevel)
                        : machine.takeError();
      if (object)
        result.object = std::move(*object);
      else
        source.getDiagnostics().addError(toString(object.takeError()));
    }
    result.diagnostics = source.getDiagnostics().take();
    return result;
  });
}
