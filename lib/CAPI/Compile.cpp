//===- Compile.cpp - From a source to GPU objects -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Compile.h"

#include "kvcache/Compile/Compile.h"
#include "kvcache/Target/Chip.h"

#include "mlir/CAPI/Support.h"
#include "mlir/CAPI/Utils.h"
#include "mlir/CAPI/Wrap.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {
/// A result in the form of the C API: notes follow their diagnostic.
struct FlatResult {
  explicit FlatResult(CompileResult compiled) : compiled(std::move(compiled)) {
    for (const DiagnosticRecord &diagnostic : this->compiled.diagnostics)
      add(diagnostic);
  }

  CompileResult compiled;
  std::vector<const DiagnosticRecord *> diagnostics;

private:
  void add(const DiagnosticRecord &diagnostic) {
    diagnostics.push_back(&diagnostic);
    for (const DiagnosticRecord &note : diagnostic.notes)
      add(note);
  }
};
} // namespace

DEFINE_C_API_PTR_METHODS(MlirKVCacheCompileOptions, CompileOptions)
DEFINE_C_API_PTR_METHODS(MlirKVCacheCompileResult, FlatResult)
DEFINE_C_API_PTR_METHODS(MlirKVCacheDiagnostic, const DiagnosticRecord)
DEFINE_C_API_PTR_METHODS(MlirKVCacheObject, const CompiledObject)
DEFINE_C_API_PTR_METHODS(MlirKVCacheKernel, const CompiledKernel)

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

MlirKVCacheCompileOptions mlirKVCacheCompileOptionsCreate() {
  return wrap(new CompileOptions());
}

void mlirKVCacheCompileOptionsDestroy(MlirKVCacheCompileOptions options) {
  delete unwrap(options);
}

void mlirKVCacheCompileOptionsAddChip(MlirKVCacheCompileOptions options,
                                      MlirStringRef chip) {
  unwrap(options)->chips.push_back(unwrap(chip).str());
}

void mlirKVCacheCompileOptionsSetFormat(MlirKVCacheCompileOptions options,
                                        MlirStringRef format) {
  unwrap(options)->format = unwrap(format).str();
}

void mlirKVCacheCompileOptionsSetOptLevel(MlirKVCacheCompileOptions options,
                                          int level) {
  unwrap(options)->optLevel = level;
}

void mlirKVCacheCompileOptionsSetBoundsChecks(MlirKVCacheCompileOptions options,
                                              bool enable) {
  unwrap(options)->boundsChecks = enable;
}

void mlirKVCacheCompileOptionsSetToolkit(MlirKVCacheCompileOptions options,
                                         MlirStringRef toolkit) {
  unwrap(options)->toolkit = unwrap(toolkit).str();
}

intptr_t mlirKVCacheGetNumChips() { return getChips().size(); }

MlirStringRef mlirKVCacheGetChipName(intptr_t index) {
  return wrap(getChips()[index].name);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

MlirKVCacheCompileResult mlirKVCacheCompile(MlirStringRef source,
                                            MlirStringRef filename,
                                            MlirKVCacheCompileOptions options) {
  return wrap(new FlatResult(
      compile(unwrap(source).str(), unwrap(filename).str(), *unwrap(options))));
}

void mlirKVCacheCompileResultDestroy(MlirKVCacheCompileResult result) {
  delete unwrap(result);
}

bool mlirKVCacheCompileResultSucceeded(MlirKVCacheCompileResult result) {
  return unwrap(result)->compiled.succeeded;
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// The switch has no default, so that the compiler warns about a new case.
static MlirDiagnosticSeverity wrap(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return MlirDiagnosticNote;
  case DiagnosticSeverity::Warning:
    return MlirDiagnosticWarning;
  case DiagnosticSeverity::Error:
    return MlirDiagnosticError;
  case DiagnosticSeverity::Remark:
    return MlirDiagnosticRemark;
  }
  llvm_unreachable("unknown severity");
}

intptr_t
mlirKVCacheCompileResultGetNumDiagnostics(MlirKVCacheCompileResult result) {
  return unwrap(result)->diagnostics.size();
}

MlirKVCacheDiagnostic
mlirKVCacheCompileResultGetDiagnostic(MlirKVCacheCompileResult result,
                                      intptr_t index) {
  return wrap(unwrap(result)->diagnostics[index]);
}

MlirDiagnosticSeverity
mlirKVCacheDiagnosticGetSeverity(MlirKVCacheDiagnostic diagnostic) {
  return wrap(unwrap(diagnostic)->severity);
}

MlirStringRef
mlirKVCacheDiagnosticGetMessage(MlirKVCacheDiagnostic diagnostic) {
  return wrap(unwrap(diagnostic)->message);
}

MlirStringRef
mlirKVCacheDiagnosticGetFilename(MlirKVCacheDiagnostic diagnostic) {
  return wrap(unwrap(diagnostic)->filename);
}

unsigned mlirKVCacheDiagnosticGetLine(MlirKVCacheDiagnostic diagnostic) {
  return unwrap(diagnostic)->line;
}

unsigned mlirKVCacheDiagnosticGetColumn(MlirKVCacheDiagnostic diagnostic) {
  return unwrap(diagnostic)->column;
}

void mlirKVCacheCompileResultPrintDiagnostics(MlirKVCacheCompileResult result,
                                              MlirStringCallback callback,
                                              void *userData) {
  mlir::detail::CallbackOstream stream(callback, userData);
  for (const DiagnosticRecord *diagnostic : unwrap(result)->diagnostics) {
    if (!diagnostic->filename.empty())
      stream << diagnostic->filename << ':' << diagnostic->line << ':'
             << diagnostic->column << ": ";
    stream << stringifySeverity(diagnostic->severity) << ": "
           << diagnostic->message << '\n';
  }
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

intptr_t
mlirKVCacheCompileResultGetNumObjects(MlirKVCacheCompileResult result) {
  return unwrap(result)->compiled.objects.size();
}

MlirKVCacheObject
mlirKVCacheCompileResultGetObject(MlirKVCacheCompileResult result,
                                  intptr_t index) {
  return wrap(&unwrap(result)->compiled.objects[index]);
}

MlirStringRef mlirKVCacheObjectGetModule(MlirKVCacheObject object) {
  return wrap(unwrap(object)->module);
}

MlirStringRef mlirKVCacheObjectGetChip(MlirKVCacheObject object) {
  return wrap(unwrap(object)->chip);
}

MlirStringRef mlirKVCacheObjectGetData(MlirKVCacheObject object) {
  return wrap(unwrap(object)->data);
}

MlirStringRef mlirKVCacheObjectGetProperties(MlirKVCacheObject object) {
  return wrap(unwrap(object)->properties);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

intptr_t mlirKVCacheObjectGetNumKernels(MlirKVCacheObject object) {
  return unwrap(object)->kernels.size();
}

MlirKVCacheKernel mlirKVCacheObjectGetKernel(MlirKVCacheObject object,
                                             intptr_t index) {
  return wrap(&unwrap(object)->kernels[index]);
}

MlirStringRef mlirKVCacheKernelGetName(MlirKVCacheKernel kernel) {
  return wrap(unwrap(kernel)->name);
}

bool mlirKVCacheKernelGetBlockSize(MlirKVCacheKernel kernel,
                                   int32_t blockSize[3]) {
  const std::vector<int32_t> &known = unwrap(kernel)->blockSize;
  if (known.size() != 3)
    return false;
  llvm::copy(known, blockSize);
  return true;
}

int64_t mlirKVCacheKernelGetDynamicSharedMemory(MlirKVCacheKernel kernel) {
  return unwrap(kernel)->dynamicSharedMemory;
}

intptr_t mlirKVCacheKernelGetNumParameters(MlirKVCacheKernel kernel) {
  return unwrap(kernel)->parameters.size();
}

MlirStringRef mlirKVCacheKernelGetParameterName(MlirKVCacheKernel kernel,
                                                intptr_t index) {
  return wrap(unwrap(kernel)->parameters[index].name);
}

MlirStringRef mlirKVCacheKernelGetParameterType(MlirKVCacheKernel kernel,
                                                intptr_t index) {
  return wrap(unwrap(kernel)->parameters[index].type);
}

int64_t mlirKVCacheKernelGetParameterSize(MlirKVCacheKernel kernel,
                                          intptr_t index) {
  return unwrap(kernel)->parameters[index].size;
}

int64_t mlirKVCacheKernelGetParameterOffset(MlirKVCacheKernel kernel,
                                            intptr_t index) {
  return unwrap(kernel)->parameters[index].offset;
}
