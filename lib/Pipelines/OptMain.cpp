//===- OptMain.cpp - The driver of kvcache-opt ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Pipelines/OptMain.h"

#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/InitAll.h"
#include "kvcache/Support/DiagnosticHints.h"
#include "kvcache/Support/Nesting.h"
#include "kvcache/Support/Verification.h"
#include "kvcache/Target/BackEndErrors.h"
#include "kvcache/Target/EmitPTX.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ToolOutputFile.h"

#include <unistd.h>

using namespace mlir;

namespace {

/// Writes the PTX in a module to a stream, as the last pass of a pipeline.
struct EmitPTXPass : PassWrapper<EmitPTXPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitPTXPass)

  EmitPTXPass(raw_ostream &os, kvcache::EmitPTXOptions options)
      : os(os), options(std::move(options)) {}
  StringRef getName() const override { return "emit-ptx"; }
  void runOnOperation() override {
    if (failed(kvcache::emitPTX(getOperation(), os, options)))
      signalPassFailure();
  }

  raw_ostream &os;
  kvcache::EmitPTXOptions options;
};

/// Runs the passes with PTX as the output instead of IR.
LogicalResult runWithPTX(raw_ostream &os,
                         const kvcache::EmitPTXOptions &options,
                         std::unique_ptr<llvm::MemoryBuffer> input,
                         DialectRegistry &registry, MlirOptMainConfig config) {
  if (llvm::cl::getRegisteredOptions()["verify-each"]->getNumOccurrences() == 0)
    config.verifyPasses(false);
  MlirOptMainConfig base = config;
  config.setPassPipelineSetupFn([&, base](PassManager &pm) {
    if (failed(base.setupPassPipeline(pm)))
      return failure();
    pm.addPass(std::make_unique<EmitPTXPass>(os, options));
    return success();
  });
  return MlirOptMain(llvm::nulls(), std::move(input), registry, config);
}

} // namespace

/// Clarifies the diagnostics of a context, which outlives its handlers.
static void addHints(MLIRContext *context) {
  context->getDiagEngine().registerHandler([context](Diagnostic &diagnostic) {
    kvcache::clarifyDiagnostic(context, diagnostic);
    return failure();
  });
}

/// Clarifies diagnostics of the parser, from the first op of this dialect on,
/// and those of passes. The handler that prints is registered before it.
static void addHints(DialectRegistry &registry, MlirOptMainConfig &config) {
  registry.addExtension(+[](MLIRContext *context, kvcache::KVCacheDialect *) {
    addHints(context);
  });
  MlirOptMainConfig base = config;
  config.setPassPipelineSetupFn([base](PassManager &pm) {
    addHints(pm.getContext());
    return base.setupPassPipeline(pm);
  });
}

/// Prints no op with an error, which may be a whole module, unless the command
/// line asks for it.
static void hideOpsOfErrors() {
  llvm::cl::Option *option =
      llvm::cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic");
  if (option && option->getNumOccurrences() == 0)
    static_cast<llvm::cl::opt<bool> *>(option)->setValue(false);
}

/// Says so if the arguments name a plugin.
static bool reportPlugins(ArrayRef<char *> arguments) {
  for (StringRef argument : arguments) {
    StringRef option = argument.ltrim('-').split('=').first;
    if (!argument.starts_with("-") ||
        (option != "load-dialect-plugin" && option != "load-pass-plugin"))
      continue;
    llvm::errs() << "kvcache-opt: '" << argument
                 << "': a kvcache-opt that has MLIR in itself loads no "
                    "plugins; build one with -DKVCACHE_STATIC_OPT=OFF\n";
    return true;
  }
  return false;
}

/// Reads the input, which is null after an error.
static std::unique_ptr<llvm::MemoryBuffer>
openSource(StringRef name, const MlirOptMainConfig &config,
           const DialectRegistry &registry) {
  if (name == "-" &&
      llvm::sys::Process::FileDescriptorIsDisplayed(STDIN_FILENO))
    llvm::errs() << "(reading from the terminal; Ctrl-D ends the input)\n";
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> source = openInputFile(name, &message);
  if (!source)
    llvm::errs() << message << "\n";
  else if (failed(kvcache::checkReadable(*source, config.inputSplitMarker())) ||
           (!isBytecode(*source) &&
            failed(kvcache::checkBeforeVerification(
                source->getBuffer(), source->getBufferIdentifier(),
                config.inputSplitMarker(), registry))))
    source.reset();
  return source;
}

/// Removes the options of LLVM's libraries from --help, a thousand lines;
/// --help-hidden shows them.
static void hideLibraryOptions() {
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (llvm::is_contained(option->Categories, &llvm::cl::getGeneralCategory()))
      option->setHiddenFlag(llvm::cl::Hidden);
}

/// Adds a line to the start of --help for each registered pass or pipeline of
/// this project.
template <typename Info> static void listOwn(raw_ostream &os, StringRef title) {
  SmallVector<const Info *> entries;
  size_t width = 0;
  for (StringRef name : llvm::cl::getRegisteredOptions().keys()) {
    if (!name.contains("kvcache") && !name.ends_with("-to-emulator"))
      continue;
    if (const auto *info = Info::lookup(name)) {
      entries.push_back(info);
      width = std::max(width, name.size());
    }
  }
  llvm::sort(entries, [](const Info *a, const Info *b) {
    return a->getPassArgument() < b->getPassArgument();
  });
  os << title << ":\n";
  for (const Info *info : entries)
    os << "  --" << llvm::left_justify(info->getPassArgument(), width) << "  "
       << info->getPassDescription() << "\n";
  os << "\n";
}

/// The head of --help: this project's pipelines and passes, which are
/// among upstream's in the alphabet.
static std::string describeTool() {
  std::string text = "kvcache-opt: compile KV-cache operations\n\n"
                     "  kvcache-opt kernel.mlir "
                     "--kvcache-to-ptx=\"chip=sm_90a\" --emit-ptx\n"
                     "  kvcache-opt kernel.mlir --kvcache-to-cpu\n\n";
  llvm::raw_string_ostream os(text);
  listOwn<PassPipelineInfo>(os, "Pipelines of kvcache");
  listOwn<PassInfo>(os, "Passes of kvcache");
  os << "Their options are below, among upstream's passes. --help-hidden shows "
        "LLVM's options too.\n";
  return text;
}

int kvcache::optMain(int argc, char **argv, bool loadsPlugins) {
  llvm::InitLLVM init(argc, argv);
  if (!loadsPlugins && reportPlugins({argv, static_cast<size_t>(argc)}))
    return 1;
  hideLibraryOptions();
  static llvm::cl::opt<bool> emitPTXText(
      "emit-ptx",
      llvm::cl::desc("Write the PTX of a module as text instead of IR. "
                     "Pipelines verify what they make before LLVM gets it; "
                     "with --verify-each, every pass does"),
      llvm::cl::init(false));
  static EmitPTXOptions options;
  static llvm::cl::opt<std::string, true> emitPTXModule(
      "emit-ptx-module",
      llvm::cl::desc("Write the PTX of this module, where there are several; "
                     "* for all of them, one after another, to read"),
      llvm::cl::location(options.module));
  static llvm::cl::opt<std::string, true> emitPTXChip(
      "emit-ptx-chip",
      llvm::cl::desc("Write the PTX for this chip, where there are several; "
                     "* for all of them"),
      llvm::cl::location(options.chip));
  static llvm::cl::opt<bool> abortOnFatalErrors(
      "abort-on-llvm-errors",
      llvm::cl::desc("Abort with a backtrace where LLVM's back end gives up, "
                     "instead of an error and exit status 1"),
      llvm::cl::init(false));

  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  std::string dialects = registerCLIOptions("", registry);
  auto [inputName, outputName] =
      parseCLIOptions(argc, argv, describeTool() + dialects);
  exitOnFatalErrors(abortOnFatalErrors);
  hideOpsOfErrors();
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(
        MlirOptMain(argc, argv, inputName, outputName, registry));
  addHints(registry, config);
  std::unique_ptr<llvm::MemoryBuffer> input =
      openSource(inputName, config, registry);
  if (!input)
    return 1;
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> output =
      openOutputFile(outputName, &message);
  if (!output) {
    llvm::errs() << message << "\n";
    return 1;
  }
  bool writesPTX =
      emitPTXText || !options.module.empty() || !options.chip.empty();
  LogicalResult result =
      writesPTX ? runWithPTX(output->os(), options, std::move(input), registry,
                             config)
                : MlirOptMain(output->os(), std::move(input), registry, config);
  if (failed(result))
    return 1;
  output->keep();
  return 0;
}
