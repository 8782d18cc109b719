//===- passes.c - Passes and pipelines in C -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %capi_tests/kvcache-capi-passes %examples/quickstart.mlir \
// RUN:   | FileCheck %s

#include "common.h"

#include "kvcache-c/Dialect.h"
#include "kvcache-c/Emulator.h"
#include "kvcache-c/Passes.h"

#include "mlir-c/Pass.h"
#include "mlir-c/Transforms.h"

#include <stdlib.h>

/// A module that is parsed anew for every test.
static MlirModule parse(MlirContext context, const char *path) {
  static char text[1 << 16];
  FILE *file = fopen(path, "rb");
  if (!file)
    exit(2);
  size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  return mlirModuleCreateParse(context, mlirStringRefCreate(text, size));
}

static MlirWalkResult showOp(MlirOperation op, void *prefix) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  MlirStringRef wanted = str(prefix);
  if (name.length >= wanted.length &&
      mlirStringRefEqual(mlirStringRefCreate(name.data, wanted.length), wanted))
    show("op", name);
  return MlirWalkResultAdvance;
}

/// Prints whether the passes succeed, and the ops whose names begin so after
/// them.
static void run(MlirPassManager passes, MlirModule module, char *prefix) {
  MlirLogicalResult result =
      mlirPassManagerRunOnOp(passes, mlirModuleGetOperation(module));
  printf("succeeded %d\n", mlirLogicalResultIsSuccess(result));
  mlirOperationWalk(mlirModuleGetOperation(module), showOp, prefix,
                    MlirWalkPreOrder);
  mlirPassManagerDestroy(passes);
  mlirModuleDestroy(module);
}

static void testCreated(MlirContext context, const char *path) {
  MlirPassManager passes =
      mlirPassManagerCreateOnOperation(context, str("builtin.module"));
  // CHECK: builtin.module(kvcache-hoist-lookups{{.*}}convert-kvcache-to-memref
  mlirPassManagerAddOwnedPass(passes,
                              mlirCreateKVCacheTransformsHoistLookups());
  mlirPassManagerAddOwnedPass(
      passes, mlirCreateKVCacheConversionConvertKVCacheToMemRef());
  mlirPassManagerAddOwnedPass(passes, mlirCreateTransformsCanonicalizer());
  mlirPrintPassPipeline(mlirPassManagerGetAsOpPassManager(passes), print, NULL);
  // CHECK: created
  // CHECK-NEXT: succeeded 1
  // CHECK-NOT: op: kvcache
  printf("\ncreated\n");
  run(passes, parse(context, path), "kvcache.");
}

static void testNamed(MlirContext context, const char *path) {
  MlirPassManager passes =
      mlirPassManagerCreateOnOperation(context, str("builtin.module"));
  // CHECK: added 1
  MlirLogicalResult added = mlirOpPassManagerAddPipeline(
      mlirPassManagerGetAsOpPassManager(passes),
      str("kvcache-bounds-checks,kvcache-to-ptx{chip=sm_90a}"), print, NULL);
  printf("added %d\n", mlirLogicalResultIsSuccess(added));
  // CHECK-NEXT: succeeded 1
  // CHECK-NEXT: op: gpu.binary
  run(passes, parse(context, path), "gpu.binary");
}

static void testUnknown(MlirContext context) {
  MlirPassManager passes =
      mlirPassManagerCreateOnOperation(context, str("builtin.module"));
  // CHECK: 'kvcache-to-moon' does not refer to a registered pass
  // CHECK: added 0
  MlirLogicalResult added =
      mlirOpPassManagerAddPipeline(mlirPassManagerGetAsOpPassManager(passes),
                                   str("kvcache-to-moon"), print, NULL);
  printf("added %d\n", mlirLogicalResultIsSuccess(added));
  mlirPassManagerDestroy(passes);
}

static void testFailure(MlirContext context, const char *path) {
  MlirPassManager passes =
      mlirPassManagerCreateOnOperation(context, str("builtin.module"));
  mlirOpPassManagerAddPipeline(mlirPassManagerGetAsOpPassManager(passes),
                               str("kvcache-to-ptx{chip=sm_1}"), print, NULL);
  // CHECK: {{^-:.*}}unknown chip 'sm_1'
  // CHECK: succeeded 0
  run(passes, parse(context, path), "none");
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  // Passes of one room, then all, then all again.
  mlirRegisterKVCacheConversionPasses();
  mlirRegisterKVCacheTransformsPasses();
  mlirRegisterKVCacheEmulatorPasses();
  mlirRegisterKVCacheGPUPasses();
  mlirRegisterKVCacheLLVMIRPasses();
  mlirRegisterKVCacheTargetPasses();
  mlirKVCacheRegisterPipelines();
  mlirKVCacheRegisterAllPasses();
  mlirKVCacheRegisterAllPasses();
  mlirKVCacheRegisterEmulator();
  mlirKVCacheRegisterEmulator();
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirKVCacheRegisterAllDialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  mlirContextAttachDiagnosticHandler(context, report, NULL, NULL);
  testCreated(context, argv[1]);
  testNamed(context, argv[1]);
  testUnknown(context);
  testFailure(context, argv[1]);
  mlirContextDestroy(context);
  return 0;
}
