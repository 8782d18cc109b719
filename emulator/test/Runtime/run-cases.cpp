//===- run-cases.cpp - Run each function of a module ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls each function of a lowered module that has no arguments and no results,
// in a process of its own, since an error of a kernel ends the process. It
// prints `run @name:` before the function's output, and fails unless the
// function exits with 1, or with 0 if --right names it. `mlir-runner` would
// compile the whole module again for each function.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/TargetSelect.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
namespace cl = llvm::cl;

static cl::opt<std::string> input(cl::Positional, cl::desc("<module>"),
                                  cl::Required);
static cl::list<std::string> sharedLibs("shared-libs", cl::CommaSeparated,
                                        cl::desc("Libraries that it calls"));
static cl::list<std::string> right("right", cl::CommaSeparated,
                                   cl::desc("Functions without an error"));

/// The functions that host code can call without arguments.
static SmallVector<StringRef> findCases(ModuleOp module) {
  SmallVector<StringRef> cases;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal() && function.getNumArguments() == 0 &&
        function.getLinkage() == LLVM::Linkage::External &&
        !function.getName().starts_with("_mlir_ciface_") &&
        isa<LLVM::LLVMVoidType>(function.getFunctionType().getReturnType()))
      cases.push_back(function.getName());
  return cases;
}

/// Calls a function in a child of this process; whether that ends as expected.
static bool run(StringRef name, void (*function)(void **)) {
  llvm::outs() << "run @" << name << ":\n";
  llvm::outs().flush();
  pid_t child = fork();
  if (child == 0) {
    dup2(STDOUT_FILENO, STDERR_FILENO);
    function(nullptr);
    exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0)
    llvm::report_fatal_error("can't run a child");
  if (WIFEXITED(status) &&
      WEXITSTATUS(status) == (llvm::is_contained(right, name) ? 0 : 1))
    return true;
  llvm::errs() << "@" << name << " ends with "
               << (WIFSIGNALED(status) ? "signal " : "exit status ")
               << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status))
               << "\n";
  return false;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Run each function of a module\n");
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();

  DialectRegistry registry;
  registry.insert<LLVM::LLVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, &context);
  if (!module)
    return 1;

  ExecutionEngineOptions options;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::None;
  SmallVector<StringRef> libraries(sharedLibs.begin(), sharedLibs.end());
  options.sharedLibPaths = libraries;
  auto engine = ExecutionEngine::create(*module, options);
  if (!engine) {
    llvm::errs() << toString(engine.takeError()) << "\n";
    return 1;
  }
  SmallVector<StringRef> cases = findCases(*module);
  if (cases.empty()) {
    llvm::errs() << input << ": there is no function to run\n";
    return 1;
  }
  bool isExpected = true;
  for (StringRef name : cases) {
    auto function = (*engine)->lookupPacked(name);
    if (!function) {
      llvm::errs() << toString(function.takeError()) << "\n";
      return 1;
    }
    isExpected &= run(name, *function);
  }
  return isExpected ? 0 : 1;
}
