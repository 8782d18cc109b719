//===- ImportLLVMIR.cpp - LLVM IR as a module of the LLVM dialect ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DowngradeLLVMText.h"
#include "kvcache/Import/Import.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMIRToLLVMTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/LLVMIRToNVVMTranslation.h"
#include "mlir/Target/LLVMIR/Import.h"
#include "llvm/AsmParser/AsmParserContext.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::kvcache;

static bool isBitcode(StringRef source) {
  return llvm::identify_magic(source) == llvm::file_magic::bitcode ||
         source.starts_with("\xDE\xC0\x17\x0B");
}

bool kvcache::isLLVMIR(StringRef source) {
  if (isBitcode(source))
    return true;
  // Entities of a module begin a line.
  constexpr StringLiteral kStarts[] = {
      "; ModuleID",    "source_filename =", "target datalayout =",
      "target triple", "define ",           "declare "};
  while (!source.empty()) {
    auto [line, rest] = source.split('\n');
    if (llvm::any_of(kStarts, [&, text = line.ltrim()](StringRef start) {
          return text.starts_with(start);
        }))
      return true;
    source = rest;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Locations
//===----------------------------------------------------------------------===//

/// Gives every instruction of functions without debug information its line in
/// the text.
static void addLocations(llvm::Module &module, StringRef filename,
                         const llvm::AsmParserContext &positions) {
  llvm::DIBuilder builder(module);
  llvm::DIFile *file = builder.createFile(filename, "");
  llvm::DICompileUnit *unit = nullptr;
  for (llvm::Function &function : module) {
    auto where = positions.getFunctionLocation(&function);
    if (function.isDeclaration() || function.getSubprogram() || !where)
      continue;
    if (!unit)
      unit = builder.createCompileUnit(
          llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C), file, "kvcache",
          /*isOptimized=*/false, "", 0);
    // Lines and columns of the parser count from 0.
    unsigned line = where->Start.Line + 1;
    llvm::DISubprogram *scope = builder.createFunction(
        file, function.getName(), function.getName(), file, line,
        builder.createSubroutineType(builder.getOrCreateTypeArray({})), line,
        llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagDefinition);
    function.setSubprogram(scope);
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto place = positions.getInstructionLocation(&instruction))
        instruction.setDebugLoc(
            llvm::DILocation::get(module.getContext(), place->Start.Line + 1,
                                  place->Start.Col + 1, scope));
  }
  builder.finalize();
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

static std::unique_ptr<llvm::Module> parseText(StringRef text,
                                               StringRef filename,
                                               llvm::LLVMContext &context,
                                               llvm::SMDiagnostic &error) {
  llvm::AsmParserContext positions;
  std::string name = filename.str();
  std::unique_ptr<llvm::Module> module =
      llvm::parseIR(llvm::MemoryBufferRef(text, name), error, context,
                    llvm::ParserCallbacks(), &positions);
  if (module)
    addLocations(*module, filename, positions);
  return module;
}

static std::unique_ptr<llvm::Module> parseSource(StringRef source,
                                                 StringRef filename,
                                                 llvm::LLVMContext &context,
                                                 llvm::SMDiagnostic &error) {
  if (isBitcode(source))
    return llvm::parseIR(llvm::MemoryBufferRef(source, filename), error,
                         context);
  std::unique_ptr<llvm::Module> module =
      parseText(source, filename, context, error);
  if (module)
    return module;
  std::string rewritten = downgradeLLVMText(source);
  llvm::SMDiagnostic other;
  if (std::unique_ptr<llvm::Module> newer =
          parseText(rewritten, filename, context, other))
    return newer;
  // The error in the text that LLVM 22 can read.
  error = std::move(other);
  return nullptr;
}

static void loadDialects(MLIRContext *context) {
  DialectRegistry registry;
  registry.insert<DLTIDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                  NVVM::NVVMDialect>();
  registerLLVMDialectImport(registry);
  registerNVVMDialectImport(registry);
  context->appendDialectRegistry(registry);
  context->loadDialect<DLTIDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                       NVVM::NVVMDialect>();
}

/// The data layout of NVPTX, for a source without one.
static constexpr StringLiteral
    kDataLayout("e-i64:64-i128:128-v16:16-v32:32-n16:32:64");

/// Warnings of the import are about what kernels don't need, such as metadata.
static OwningOpRef<ModuleOp> translate(std::unique_ptr<llvm::Module> module,
                                       MLIRContext *context) {
  if (module->getDataLayoutStr().empty())
    module->setDataLayout(kDataLayout);
  ScopedDiagnosticHandler handler(context, [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  return translateLLVMIRToModule(std::move(module), context,
                                 /*emitExpensiveWarnings=*/false,
                                 /*dropDICompositeTypeElements=*/true,
                                 /*loadAllDialects=*/false);
}

OwningOpRef<ModuleOp> kvcache::importLLVMIR(StringRef source,
                                            StringRef filename,
                                            MLIRContext *context) {
  loadDialects(context);
  llvm::LLVMContext llvmContext;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module =
      parseSource(source, filename, llvmContext, error);
  if (module)
    return translate(std::move(module), context);
  // Positions of the parser count from 1 and from 0, and are -1 for bitcode.
  Location loc =
      FileLineColLoc::get(context, filename, std::max(error.getLineNo(), 0),
                          std::max(error.getColumnNo() + 1, 0));
  emitError(loc) << error.getMessage();
  return nullptr;
}
