//===- BackEndErrors.cpp - Errors of LLVM's back end ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/BackEndErrors.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Signals.h"

#include <cstdlib>

using namespace mlir;
using namespace mlir::kvcache;

static thread_local BackEndScope *innermost = nullptr;

static std::string describe(Operation &module, StringRef target) {
  auto name =
      module.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
  return llvm::formatv("'{0}' for {1}",
                       name ? name.getValue() : StringRef("kernels"), target);
}

static std::string getPlace(Operation &module) {
  auto place = module.getLoc()->findInstanceOf<FileLineColLoc>();
  if (!place)
    return {};
  return llvm::formatv("{0}:{1}:{2}: ", place.getFilename().getValue(),
                       place.getLine(), place.getColumn());
}

// The text is made here: where LLVM gives up, less is certain.
BackEndScope::BackEndScope(Operation &module, StringRef target)
    : module(module), place(getPlace(module)),
      description(describe(module, target)), inStackTrace(description.c_str()),
      outer(innermost) {
  innermost = this;
}

BackEndScope::~BackEndScope() { innermost = outer; }

/// The op of the function that an error of LLVM names, or the module.
static Operation *findFunction(Operation &module,
                               const llvm::DiagnosticInfo &info) {
  const llvm::Function *function = nullptr;
  if (auto *unsupported = dyn_cast<llvm::DiagnosticInfoUnsupported>(&info))
    function = &unsupported->getFunction();
  else if (auto *limit = dyn_cast<llvm::DiagnosticInfoResourceLimit>(&info))
    function = &limit->getFunction();
  Operation *op =
      function ? SymbolTable::lookupSymbolIn(&module, function->getName())
               : nullptr;
  return op ? op : &module;
}

void BackEndScope::handleErrorsOf(llvm::LLVMContext &context) {
  auto handle = [](const llvm::DiagnosticInfo *info, void *self) {
    auto &scope = *static_cast<BackEndScope *>(self);
    bool isError = info->getSeverity() == llvm::DS_Error;
    if (!isError && info->getSeverity() != llvm::DS_Warning)
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
    Location loc = findFunction(scope.module, *info)->getLoc();
    if (!isError) {
      emitWarning(loc) << "from LLVM: " << text;
      return;
    }
    emitError(loc) << describeFatalError(text);
    scope.foundError = true;
  };
  context.setDiagnosticHandlerCallBack(handle, this);
}

std::string kvcache::describeFatalError(StringRef reason) {
  return llvm::formatv("LLVM can't compile {0}: {1}",
                       innermost ? innermost->description : "this", reason);
}

std::string kvcache::getPlaceOfFatalError() {
  return innermost ? innermost->place : std::string();
}

/// LLVM ends the process where this returns.
static void printFatalError(void *abortsWithTrace, const char *reason,
                            bool /*hasTrace*/) {
  llvm::errs() << getPlaceOfFatalError()
               << "error: " << describeFatalError(reason) << "\n";
  if (abortsWithTrace)
    return;
  // Files that are not finished go away.
  llvm::sys::RunInterruptHandlers();
  std::_Exit(EXIT_FAILURE);
}

void kvcache::exitOnFatalErrors(bool abortsWithTrace) {
  static char asked;
  llvm::install_fatal_error_handler(printFatalError,
                                    abortsWithTrace ? &asked : nullptr);
}
