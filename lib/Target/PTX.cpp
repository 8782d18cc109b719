//===- PTX.cpp - From LLVM dialect to PTX ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PTX.h"
#include "PreventF2IMiscompile.h"

#include "kvcache/Support/UpstreamDefects.h"
#include "kvcache/Target/BackEndErrors.h"

#include "mlir/Target/LLVM/ModuleToObject.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// LLVM's passes between the lowering and the back end. Kernels come with their
/// address arithmetic as it shall be, in few functions and in registers, so
/// that its own pipelines take three times as long for the same machine code.
/// Functions of linked libraries are inlined, and what is left of them dropped.
constexpr char kMiddleEnd[] =
    "inliner-wrapper,globaldce,"
    "function("
    "simplifycfg,sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-rotate,licm),simplifycfg,"
    "loop(indvars,loop-deletion),loop-unroll<O{0}>,"
    "gvn,sccp,instcombine<no-verify-fixpoint>,adce,simplifycfg)";

/// A longer block goes to the back end in parts of so many instructions. It
/// compares each access with many of the block before it, so that the time that
/// an instruction takes grows with the block; the machine code is the same but
/// for one instruction in a thousand.
constexpr size_t kLongestBlock = 512, kPartOfBlock = 128;

/// Keeps the back end from passes that cost more than they bring.
class BackEndGate : public llvm::OptPassGate {
public:
  bool isEnabled() const override { return true; }

  bool shouldRunPass(StringRef pass, StringRef unit) const override {
    if (llvm::is_contained(kGated, pass))
      asked.insert(pass);
    // Addresses are split already: straight-line strength reduction takes a
    // time quadratic in the length of a function.
    if (pass == kStrengthReduction || pass == kReassociation)
      return false;
    // The second run would follow the first one, but for the pass between them.
    if (pass == kEarlyCSE && ++earlyCSERuns[unit] == 2)
      return false;
    // CodeGenPrepare makes one block again of those that were split.
    return pass != kPreparation || !split.contains(unit);
  }

  /// The passes that this has not been asked about: they have other names in
  /// another version of LLVM.
  SmallVector<StringLiteral> getUnknownPasses() const {
    return llvm::filter_to_vector(
        kGated, [&](StringRef pass) { return !asked.contains(pass); });
  }

  /// Splits the blocks of a function that are too long. The back end puts them
  /// together again once it has selected instructions.
  void splitLongBlocks(llvm::Function &function) {
    SmallVector<llvm::Instruction *> starts;
    for (llvm::BasicBlock &block : function) {
      if (block.size() <= kLongestBlock)
        continue;
      for (auto [index, instruction] : llvm::enumerate(block))
        if (index != 0 && index % kPartOfBlock == 0 &&
            !isa<llvm::PHINode>(instruction))
          starts.push_back(&instruction);
    }
    if (starts.empty())
      return;
    // The last one first: a split moves all that follows in the block.
    for (llvm::Instruction *start : llvm::reverse(starts))
      start->getParent()->splitBasicBlock(start);
    split.insert(("function (" + function.getName() + ")").str());
  }

private:
  static constexpr StringLiteral kStrengthReduction = "slsr",
                                 kReassociation = "nary-reassociate",
                                 kEarlyCSE = "early-cse",
                                 kPreparation = "codegenprepare";
  static constexpr StringLiteral kGated[] = {kStrengthReduction, kReassociation,
                                             kEarlyCSE, kPreparation};

  /// How LLVM describes the functions that have been split.
  llvm::StringSet<> split;
  mutable llvm::StringSet<> asked;
  /// How often early CSE has been asked about, for each function.
  mutable llvm::StringMap<unsigned> earlyCSERuns;
};

llvm::Error runMiddleEnd(llvm::Module &module, llvm::TargetMachine &machine,
                         int level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);

  llvm::ModulePassManager passes;
  // The target's own passes, such as the one that answers __nvvm_reflect.
  builder.invokePipelineStartEPCallbacks(passes, llvm::OptimizationLevel::O3);
  std::string text =
      level == 0 ? "always-inline" : llvm::formatv(kMiddleEnd, level).str();
  if (llvm::Error error = builder.parsePassPipeline(passes, text))
    return error;
  passes.run(module, modules);
  return llvm::Error::success();
}

/// Each parameter has the next offset that its alignment allows (CUDA C++
/// Programming Guide, "Driver API": the buffer of parameters).
SmallVector<ParameterPlace> placeParameters(const llvm::Function &kernel) {
  const llvm::DataLayout &layout = kernel.getDataLayout();
  SmallVector<ParameterPlace> places;
  uint64_t end = 0;
  for (const llvm::Argument &argument : kernel.args()) {
    llvm::Type *type = argument.getParamByValType();
    llvm::MaybeAlign given = type ? argument.getParamAlign() : std::nullopt;
    if (!type)
      type = argument.getType();
    uint64_t offset =
        llvm::alignTo(end, given.value_or(layout.getABITypeAlign(type)));
    uint64_t size = layout.getTypeAllocSize(type);
    places.push_back({size, offset});
    end = offset + size;
  }
  return places;
}

} // namespace

class kvcache::ModuleToPTX : public LLVM::ModuleToObject {
public:
  ModuleToPTX(gpu::GPUModuleOp module, NVVM::NVVMTargetAttr target,
              StringRef libdevice)
      : ModuleToObject(*module, target.getTriple(), target.getChip(),
                       target.getFeatures(), target.getO()),
        errors(*module, target.getChip()) {
    if (ArrayAttr link = target.getLink())
      llvm::append_range(libraries, link);
    if (!libdevice.empty())
      libraries.push_back(StringAttr::get(target.getContext(), libdevice));
  }

  /// Makes the module of LLVM IR, with its libraries.
  LogicalResult translate() {
    BackEndScope scope(errors);
    errors.handleErrorsOf(context);
    translated = translateModuleToLLVMIR(&getOperation(), context, "kernels",
                                         /*disableVerification=*/true);
    if (!translated)
      return getOperation().emitError("has no translation to LLVM IR");
    std::string message;
    llvm::raw_string_ostream stream(message);
    if (llvm::verifyModule(*translated, &stream))
      return emitError(getOperation().getLoc())
             << describeFatalError(StringRef(message).trim());
    FailureOr<llvm::TargetMachine *> created = getOrCreateTargetMachine();
    if (failed(created))
      return failure();
    machine = *created;
    setDataLayoutAndTriple(*translated);
    for (const llvm::Function &function : *translated)
      if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel)
        ptx.parameters[function.getName()] = placeParameters(function);
    SmallVector<std::unique_ptr<llvm::Module>> loaded;
    if (failed(loadBitcodeFilesFromList(context, libraries, loaded)))
      return failure();
    return linkFiles(*translated, std::move(loaded));
  }

  /// Makes PTX of LLVM IR, which it drops.
  void compile() {
    BackEndScope scope(errors);
    if (succeeded(optimize()))
      emitText();
    translated.reset();
  }

  FailureOr<PTXModule> finish() {
    bool isComplete = !errors.hasError();
    errors.emit();
    if (!isComplete)
      return failure();
    return std::move(ptx);
  }

private:
  LogicalResult optimize() {
    // The middle end has run GVN, which is all that the next level adds.
    if (machine->getOptLevel() > llvm::CodeGenOptLevel::Default)
      machine->setOptLevel(llvm::CodeGenOptLevel::Default);
    if (llvm::Error error = runMiddleEnd(*translated, *machine, optLevel)) {
      errors.addError(describeFatalError(llvm::toString(std::move(error))));
      return failure();
    }
    if (upstream::convertsLowBytes)
      preventF2IMiscompile(*translated);
    return success();
  }

  void emitText() {
    SmallVector<char, 0> text;
    llvm::raw_svector_ostream stream(text);
    llvm::legacy::PassManager passes;
    if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                     llvm::CodeGenFileType::AssemblyFile))
      return errors.addError("has no PTX: LLVM writes no assembly for " + chip);
    bool isOptimized = machine->getOptLevel() != llvm::CodeGenOptLevel::None;
    if (isOptimized)
      llvm::for_each(*translated, [&](llvm::Function &function) {
        gate.splitLongBlocks(function);
      });
    context.setOptPassGate(gate);
    passes.run(*translated);
    ptx.text.assign(text.begin(), text.end());
    bool hasCode =
        llvm::any_of(*translated, [](const llvm::Function &function) {
          return !function.isDeclaration();
        });
    if (isOptimized && hasCode)
      for (StringRef pass : gate.getUnknownPasses())
        errors.addWarning("LLVM's back end has no pass '" + pass +
                          "', which compilation leaves out");
  }

  BackEndErrors errors;
  SmallVector<Attribute> libraries;
  /// The context points to it.
  BackEndGate gate;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated;
  llvm::TargetMachine *machine = nullptr;
  PTXModule ptx;
};

static void initializeBackEnd() {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

PTXCompilation::PTXCompilation(std::unique_ptr<ModuleToPTX> compiler)
    : compiler(std::move(compiler)) {}
PTXCompilation::PTXCompilation(PTXCompilation &&) = default;
PTXCompilation::~PTXCompilation() = default;

FailureOr<PTXCompilation> PTXCompilation::create(gpu::GPUModuleOp module,
                                                 NVVM::NVVMTargetAttr target,
                                                 StringRef libdevice) {
  initializeBackEnd();
  auto compiler = std::make_unique<ModuleToPTX>(module, target, libdevice);
  if (failed(compiler->translate())) {
    (void)compiler->finish();
    return failure();
  }
  return PTXCompilation(std::move(compiler));
}

void PTXCompilation::run() { compiler->compile(); }

FailureOr<PTXModule> PTXCompilation::finish() { return compiler->finish(); }
