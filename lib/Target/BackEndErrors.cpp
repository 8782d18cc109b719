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

static thread_local const BackEndErrors *innermost = nullptr;
static thread_local const FatalErrorHandler *fatalErrorHandler = nullptr;

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
BackEndErrors::BackEndErrors(Operation &module, StringRef target)
    : module(module), place(getPlace(module)),
      description(describe(module, target)) {}

BackEndScope::BackEndScope(const BackEndErrors &errors)
    : inStackTrace(errors.description.c_str()), outer(innermost) {
  innermost = &errors;
}

BackEndScope::~BackEndScope() { innermost = outer; }

/// Returns the name of the function that an error names, or nothing.
static std::string findFunction(const llvm::DiagnosticInfo &info) {
  if (auto *unsupported = dyn_cast<llvm::DiagnosticInfoUnsupported>(&info))
    return unsupported->getFunction().getName().str();
  if (auto *limit = dyn_cast<llvm::DiagnosticInfoResourceLimit>(&info))
    return limit->getFunction().getName().str();
  return {};
}

void BackEndErrors::handleErrorsOf(llvm::LLVMContext &context) {
  auto handle = [](const llvm::DiagnosticInfo *info, void *self) {
    bool isError = info->getSeverity() == llvm::DS_Error;
    if (!isError && info->getSeverity() != llvm::DS_Warning)
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
    static_cast<BackEndErrors *>(self)->found.push_back(
        {isError ? DiagnosticSeverity::Error : DiagnosticSeverity::Warning,
         findFunction(*info),
         isError ? describeFatalError(text) : "from LLVM: " + text});
  };
  context.setDiagnosticHandlerCallBack(handle, this);
}

void BackEndErrors::addError(const Twine &text) {
  found.push_back({DiagnosticSeverity::Error, /*function=*/"", text.str()});
}

void BackEndErrors::addWarning(const Twine &text) {
  found.push_back({DiagnosticSeverity::Warning, /*function=*/"", text.str()});
}

bool BackEndErrors::hasError() const {
  return llvm::any_of(found, [](const Found &each) {
    return each.severity == DiagnosticSeverity::Error;
  });
}

void BackEndErrors::emit() {
  for (const Found &each : found) {
    Operation *op = each.function.empty()
                        ? nullptr
                        : SymbolTable::lookupSymbolIn(&module, each.function);
    Location loc = (op ? op : &module)->getLoc();
    if (each.severity == DiagnosticSeverity::Error)
      emitError(loc) << each.text;
    else
      emitWarning(loc) << each.text;
  }
  found.clear();
}

std::string kvcache::describeFatalError(StringRef reason) {
  return llvm::formatv("LLVM can't compile {0}: {1}",
                       innermost ? innermost->description : "this", reason);
}

std::string kvcache::getPlaceOfFatalError() {
  return innermost ? innermost->place : std::string();
}

FatalErrorScope::FatalErrorScope(const FatalErrorHandler &handler)
    : outer(fatalErrorHandler) {
  fatalErrorHandler = &handler;
}

FatalErrorScope::~FatalErrorScope() { fatalErrorHandler = outer; }

const FatalErrorHandler *kvcache::getFatalErrorHandler() {
  return fatalErrorHandler;
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
