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

/// How kernels are compiled. Owned by the caller.
typedef struct MlirKVCacheCompileOptions {
  void *ptr;
} MlirKVCacheCompileOptions;

/// No chips, PTX, optimization level 3, no checks.
MLIR_CAPI_EXPORTED MlirKVCacheCompileOptions
mlirKVCacheCompileOptionsCreate(void);
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsDestroy(MlirKVCacheCompileOptions options);
/// Adds a chip, such as sm_90a, to those that a gpu.module without targets of
/// its own is compiled for.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsAddChip(MlirKVCacheCompileOptions options,
                                 MlirStringRef chip);
/// ptx, cubin or fatbin. The latter two run ptxas.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsSetFormat(MlirKVCacheCompileOptions options,
                                   MlirStringRef format);
/// 0 to 3, for LLVM and for ptxas.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsSetOptLevel(MlirKVCacheCompileOptions options,
                                     int level);
/// Whether kernels trap with a message on a bad page id, token, head or
/// misaligned index.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsSetBoundsChecks(MlirKVCacheCompileOptions options,
                                         bool enable);
/// The folder of the CUDA toolkit, with bin/ptxas. Without one, it is looked
/// for on PATH and where CUDA_HOME, CUDA_ROOT or CUDA_PATH points.
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileOptionsSetToolkit(MlirKVCacheCompileOptions options,
                                    MlirStringRef toolkit);

/// The chips that kernels can be compiled for. `index` is below their number.
MLIR_CAPI_EXPORTED intptr_t mlirKVCacheGetNumChips(void);
MLIR_CAPI_EXPORTED MlirStringRef mlirKVCacheGetChipName(intptr_t index);

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// What a compilation gave. Owned by the caller; all that it is asked for below
/// lives as long as it does, and indices are below the number of what they
/// count.
typedef struct MlirKVCacheCompileResult {
  void *ptr;
} MlirKVCacheCompileResult;

/// Compiles the kernels of MLIR text or bytecode, of which nothing is kept.
/// `filename` is the source's name in diagnostics. Never fails to return a
/// result: what the source or the options get wrong is among its diagnostics.
/// Any number of threads may compile at a time. The first call installs LLVM's
/// handler of fatal errors, so that what a back end can't compile becomes a
/// diagnostic, too.
MLIR_CAPI_EXPORTED MlirKVCacheCompileResult
mlirKVCacheCompile(MlirStringRef source, MlirStringRef filename,
                   MlirKVCacheCompileOptions options);
MLIR_CAPI_EXPORTED void
mlirKVCacheCompileResultDestroy(MlirKVCacheCompileResult result);
/// Without success there are errors among the diagnostics, and no objects.
MLIR_CAPI_EXPORTED bool
mlirKVCacheCompileResultSucceeded(MlirKVCacheCompileResult result);

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// What the compiler reports. A note follows what it belongs to.
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
/// Empty, with line and column 0, where the place is not known.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheDiagnosticGetFilename(MlirKVCacheDiagnostic diagnostic);
/// Lines and columns count from 1.
MLIR_CAPI_EXPORTED unsigned
mlirKVCacheDiagnosticGetLine(MlirKVCacheDiagnostic diagnostic);
MLIR_CAPI_EXPORTED unsigned
mlirKVCacheDiagnosticGetColumn(MlirKVCacheDiagnostic diagnostic);
/// Prints all diagnostics, a line each: `file:line:column: error: message`.
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
/// PTX, with a zero byte behind it, or the bytes of a cubin or fat binary: what
/// cuModuleLoadData takes.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheObjectGetData(MlirKVCacheObject object);
/// All that is known of the object, as JSON: under "kvcache.kernels" what the
/// functions below return, and the descriptors that a host has to make.
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
/// nothing, where they are known only at the launch.
MLIR_CAPI_EXPORTED bool mlirKVCacheKernelGetBlockSize(MlirKVCacheKernel kernel,
                                                      int32_t blockSize[3]);
/// Bytes that a launch has to ask for.
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheKernelGetDynamicSharedMemory(MlirKVCacheKernel kernel);
MLIR_CAPI_EXPORTED intptr_t
mlirKVCacheKernelGetNumParameters(MlirKVCacheKernel kernel);
/// Such as key.page_stride.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheKernelGetParameterName(MlirKVCacheKernel kernel, intptr_t index);
/// Such as !llvm.ptr, i32 or index, which has 64 bits.
MLIR_CAPI_EXPORTED MlirStringRef
mlirKVCacheKernelGetParameterType(MlirKVCacheKernel kernel, intptr_t index);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_C_COMPILE_H
