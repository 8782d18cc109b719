//===- Compile.h - From a source to GPU objects -------------------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_C_COMPILE_H
#define KVCACHE_C_COMPILE_H

#include "mlir-c/Diagnostics.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// Options for the compilation of kernels. The caller owns them.
typedef struct MlirKVCacheCompileOptions {
  void *ptr;
} MlirKVCacheCompileOptions;

/// Creates the default options: no chips, PTX, optimization level 3, no checks.
MLIR_CAPI_EXPORTED MlirKVCacheCompileOptions
mlirKVCacheCompileOptionsCreate(void);
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsDestroy(MlirKVCacheCompileOptions options);
/// Adds a chip, such as sm_90a, to the targets of every gpu.module that has
/// none.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsAddChip(MlirKVCacheCompileOptions options,
                                 MlirStringRef chip);
/// Sets the format: ptx, cubin or fatbin. The latter two run ptxas.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsSetFormat(MlirKVCacheCompileOptions options,
                                   MlirStringRef format);
/// Sets the optimization level of LLVM and ptxas, 0 to 3.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsSetOptLevel(MlirKVCacheCompileOptions options,
                                     int level);
/// Sets whether kernels trap with a message on an invalid page id, token or
/// head, or on a misaligned index.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsSetBoundsChecks(MlirKVCacheCompileOptions options,
                                         bool enable);
/// Sets the folder of the CUDA toolkit, with bin/ptxas. By default, the
/// compiler looks at PTXAS, CUDA_HOME, CUDA_ROOT, CUDA_PATH and PATH.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsSetToolkit(MlirKVCacheCompileOptions options,
                                    MlirStringRef toolkit);

/// The supported chips. `index` is below their number.
MLIR_CAPI_EXPORTED intptr_t mlirKVCacheGetNumChips(void);
MLIR_CAPI_EXPORTED MlirStringRef mlirKVCacheGetChipName(intptr_t index);

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The result of a compilation. The caller owns it. The objects that the
/// functions below return live as long as the result. Indices are below the
/// number of the objects that they count.
typedef struct MlirKVCacheCompileResult {
  void *ptr;
} MlirKVCacheCompileResult;

/// Compiles the kernels of MLIR text or bytecode. `filename` is the name of the
/// source in diagnostics. The function always returns a result, whose
/// diagnostics have the errors of the source and the options. It keeps no
/// reference to the source, and is thread-safe. The first call installs LLVM's
/// handler of fatal errors, so that errors of the back end become diagnostics.
MLIR_CAPI_EXPORTED MlirKVCacheCompileResult
mlirKVCacheCompile(MlirStringRef source, MlirStringRef filename,
                   MlirKVCacheCompileOptions options);
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileResultDestroy(MlirKVCacheCompileResult result);
/// Returns false if the diagnostics have errors; then there are no objects.
MLIR_CAPI_EXPORTED bool
mlirKVCacheCompileResultSucceeded(MlirKVCacheCompileResult result);

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// A diagnostic of the compiler. Notes follow their diagnostic.
typedef struct MlirKVCacheDiagnostic {
  const void *ptr;
} MlirKVCacheDiagnostic;

MLIR_CAPI_EXPORTED intptr_t
mlirKVCacheCompileResultGetNumDiagnostics(MlirKVCacheCompileResult result);
MLIR_CAPI_EXPORTED MlirKVCacheDiagnostic mlirKVCacheCompileResultGetDiagnostic(
    MlirKVCacheCompileResult result, intptr_t index);
MLIR_CAPI_EXPORTED MlirDiagnosticSeverity
mlirKVCacheDiagnosticGetSeverity(MlirKVCacheDiagnostic diagnostic);
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheDiagnosticGetMessage(MlirKVCacheDiagnostic diagnostic);
/// Empty, with line and column 0, if the location is unknown.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheDiagnosticGetFilename(MlirKVCacheDiagnostic diagnostic);
/// Lines and columns count from 1.
MLIR_CAPI_EXPORTED unsigned
mlirKVCacheDiagnosticGetLine(MlirKVCacheDiagnostic diagnostic);
MLIR_CAPI_EXPORTED unsigned
mlirKVCacheDiagnosticGetColumn(MlirKVCacheDiagnostic diagnostic);
/// Prints all diagnostics, one per line: `file:line:column: error: message`.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileResultPrintDiagnostics(MlirKVCacheCompileResult result,
                                         MlirStringCallback callback,
                                         void *userData);

//===----------------------------------------------------------------------===//
// Objects: one for each GPU module and chip
//===----------------------------------------------------------------------===//

typedef struct MlirKVCacheObject {
  const void *ptr;
} MlirKVCacheObject;

MLIR_CAPI_EXPORTED intptr_t
mlirKVCacheCompileResultGetNumObjects(MlirKVCacheCompileResult result);
MLIR_CAPI_EXPORTED MlirKVCacheObject mlirKVCacheCompileResultGetObject(
    MlirKVCacheCompileResult result, intptr_t index);
/// The name of the gpu.module.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheObjectGetModule(MlirKVCacheObject object);
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheObjectGetChip(MlirKVCacheObject object);
/// PTX, followed by a zero byte, or the bytes of a cubin or fat binary, as
/// cuModuleLoadData takes them.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheObjectGetData(MlirKVCacheObject object);
/// The properties of the object as JSON. The entry "kvcache.kernels" has the
/// values that the functions below return, and the descriptors that the host
/// must create.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheObjectGetProperties(MlirKVCacheObject object);

//===----------------------------------------------------------------------===//
// Kernels of an object
//===----------------------------------------------------------------------===//

typedef struct MlirKVCacheKernel {
  const void *ptr;
} MlirKVCacheKernel;

MLIR_CAPI_EXPORTED intptr_t
mlirKVCacheObjectGetNumKernels(MlirKVCacheObject object);
MLIR_CAPI_EXPORTED MlirKVCacheKernel
mlirKVCacheObjectGetKernel(MlirKVCacheObject object, intptr_t index);
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheKernelGetName(MlirKVCacheKernel kernel);
/// Writes the threads of a block along x, y and z. Returns false, and writes
/// nothing, if they are known only at the launch.
MLIR_CAPI_EXPORTED bool mlirKVCacheKernelGetBlockSize(MlirKVCacheKernel kernel,
                                                      int32_t blockSize[3]);
/// The bytes of dynamic shared memory that a launch must pass.
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheKernelGetDynamicSharedMemory(MlirKVCacheKernel kernel);
MLIR_CAPI_EXPORTED intptr_t
mlirKVCacheKernelGetNumParameters(MlirKVCacheKernel kernel);
/// The name, such as key.page_stride.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheKernelGetParameterName(MlirKVCacheKernel kernel, intptr_t index);
/// The type, such as !llvm.ptr, i32 or index, which has 64 bits.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheKernelGetParameterType(MlirKVCacheKernel kernel, intptr_t index);
/// The bytes of a parameter, and those before it in the buffer of all of them
/// that `cuLaunchKernel` may be given.
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheKernelGetParameterSize(MlirKVCacheKernel kernel, intptr_t index);
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheKernelGetParameterOffset(MlirKVCacheKernel kernel, intptr_t index);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_C_COMPILE_H
