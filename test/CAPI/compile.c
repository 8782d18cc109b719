//===- compile.c - From a source to GPU objects in C ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %capi_tests/kvcache-capi-compile | FileCheck %s

#include "common.h"

#include "kvcache-c/Compile.h"
#include "kvcache-c/Dialect.h"

#include <string.h>

/// A kernel of 256 threads that reads an element of a cache.
static const char *const source =
    "#kv = #kvcache.params<num_heads = 8, head_size = 128>\n"
    "!cache = !kvcache.paged<bf16, #kv, page_size = 64>\n"
    "gpu.module @kernels {\n"
    "  gpu.func @read(%keys: !cache, %out: memref<1xbf16>) kernel\n"
    "      attributes {known_block_size = array<i32: 256, 1, 1>} {\n"
    "    %c0 = arith.constant 0 : index\n"
    "    %v = kvcache.load %keys[%c0, %c0, %c0, %c0] : !cache -> bf16\n"
    "    memref.store %v, %out[%c0] : memref<1xbf16>\n"
    "    gpu.return\n"
    "  }\n"
    "}\n";

static MlirKVCacheCompileOptions optionsFor(const char *chip) {
  MlirKVCacheCompileOptions options = mlirKVCacheCompileOptionsCreate();
  mlirKVCacheCompileOptionsAddChip(options, str(chip));
  return options;
}

/// Compiles, prints what is reported, and returns the result.
static MlirKVCacheCompileResult compile(MlirStringRef text,
                                        MlirKVCacheCompileOptions options) {
  MlirKVCacheCompileResult result =
      mlirKVCacheCompile(text, str("read.mlir"), options);
  mlirKVCacheCompileOptionsDestroy(options);
  mlirKVCacheCompileResultPrintDiagnostics(result, print, NULL);
  printf("succeeded %d, objects %d\n",
         mlirKVCacheCompileResultSucceeded(result),
         (int)mlirKVCacheCompileResultGetNumObjects(result));
  return result;
}

static bool contains(MlirStringRef text, const char *word) {
  size_t size = strlen(word);
  for (size_t i = 0; i + size <= text.length; ++i)
    if (memcmp(text.data + i, word, size) == 0)
      return true;
  return false;
}

static void testPTX(void) {
  MlirKVCacheCompileOptions options = optionsFor("sm_90a");
  mlirKVCacheCompileOptionsAddChip(options, str("sm_80"));
  // CHECK: succeeded 1, objects 2
  MlirKVCacheCompileResult result = compile(str(source), options);
  MlirKVCacheObject object = mlirKVCacheCompileResultGetObject(result, 0);
  // CHECK-NEXT: module: kernels
  // CHECK-NEXT: chip: sm_90a
  // CHECK-NEXT: chip: sm_80
  show("module", mlirKVCacheObjectGetModule(object));
  show("chip", mlirKVCacheObjectGetChip(object));
  show("chip",
       mlirKVCacheObjectGetChip(mlirKVCacheCompileResultGetObject(result, 1)));
  MlirStringRef ptx = mlirKVCacheObjectGetData(object);
  // CHECK-NEXT: entry 1, target 1, ends in 10 0, described 1, kernels 1
  printf("entry %d, target %d, ends in %d %d, described %d, kernels %d\n",
         contains(ptx, ".entry read("), contains(ptx, ".target sm_90a"),
         ptx.data[ptx.length - 1], ptx.data[ptx.length],
         contains(mlirKVCacheObjectGetProperties(object),
                  "\"kvcache.kernels\":[{"),
         (int)mlirKVCacheObjectGetNumKernels(object));
  mlirKVCacheCompileResultDestroy(result);
}

static void testKernel(void) {
  // CHECK: succeeded 1, objects 1
  MlirKVCacheCompileResult result = compile(str(source), optionsFor("sm_100a"));
  MlirKVCacheKernel kernel = mlirKVCacheObjectGetKernel(
      mlirKVCacheCompileResultGetObject(result, 0), 0);
  // CHECK-NEXT: kernel: read
  show("kernel", mlirKVCacheKernelGetName(kernel));
  int32_t block[3] = {0, 0, 0};
  bool known = mlirKVCacheKernelGetBlockSize(kernel, block);
  // CHECK-NEXT: block 1 256 1 1, shared 0
  printf("block %d %d %d %d, shared %d\n", known, block[0], block[1], block[2],
         (int)mlirKVCacheKernelGetDynamicSharedMemory(kernel));
  intptr_t last = mlirKVCacheKernelGetNumParameters(kernel) - 1;
  // CHECK-NEXT: parameter: keys.blocks
  // CHECK-NEXT: type: !llvm.ptr
  show("parameter", mlirKVCacheKernelGetParameterName(kernel, 0));
  show("type", mlirKVCacheKernelGetParameterType(kernel, 0));
  // CHECK-NEXT: 8 bytes at 0
  printf("%d bytes at %d\n", (int)mlirKVCacheKernelGetParameterSize(kernel, 0),
         (int)mlirKVCacheKernelGetParameterOffset(kernel, 0));
  // CHECK-NEXT: parameter: out
  show("parameter", mlirKVCacheKernelGetParameterName(kernel, last));
  // CHECK-NEXT: aligned 1
  printf("aligned %d\n",
         mlirKVCacheKernelGetParameterOffset(kernel, last) % 8 == 0);
  mlirKVCacheCompileResultDestroy(result);
}

/// Whether the PTX for given options has a word.
static bool ptxContains(MlirKVCacheCompileOptions options, const char *word) {
  MlirKVCacheCompileResult result = compile(str(source), options);
  bool found = contains(
      mlirKVCacheObjectGetData(mlirKVCacheCompileResultGetObject(result, 0)),
      word);
  mlirKVCacheCompileResultDestroy(result);
  return found;
}

static void testBoundsChecks(void) {
  MlirKVCacheCompileOptions checked = optionsFor("sm_90a");
  mlirKVCacheCompileOptionsSetBoundsChecks(checked, true);
  bool plain = ptxContains(optionsFor("sm_90a"), "__assertfail");
  // CHECK: asserts without checks 0, with checks 1
  printf("asserts without checks %d, with checks %d\n", plain,
         ptxContains(checked, "__assertfail"));
}

static void append(MlirStringRef part, void *userData) {
  MlirStringRef *whole = userData;
  memcpy((char *)whole->data + whole->length, part.data, part.length);
  whole->length += part.length;
}

/// Tests that IR which C code builds reaches the compiler as bytecode.
static void testBytecode(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirKVCacheRegisterAllDialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  MlirModule module = mlirModuleCreateParse(context, str(source));
  static char buffer[1 << 16];
  MlirStringRef bytecode = mlirStringRefCreate(buffer, 0);
  mlirOperationWriteBytecode(mlirModuleGetOperation(module), append, &bytecode);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  // CHECK: succeeded 1, objects 1
  mlirKVCacheCompileResultDestroy(compile(bytecode, optionsFor("sm_90a")));
}

static void expectFailure(const char *text, MlirKVCacheCompileOptions options) {
  mlirKVCacheCompileResultDestroy(compile(str(text), options));
}

static void testBadOptions(void) {
  // CHECK: read.mlir:3:1: error: {{.*}}unknown chip 'sm_1'
  // CHECK-NEXT: succeeded 0, objects 0
  expectFailure(source, optionsFor("sm_1"));
  // CHECK-NEXT: read.mlir:3:1: error: {{.*}}expects a target
  // CHECK-NEXT: succeeded 0, objects 0
  expectFailure(source, mlirKVCacheCompileOptionsCreate());
  MlirKVCacheCompileOptions options = optionsFor("sm_90a");
  mlirKVCacheCompileOptionsSetFormat(options, str("elf"));
  // CHECK-NEXT: {{^}}error: unknown format 'elf'; known are ptx, {{.*}}
  // CHECK-NEXT: succeeded 0, objects 0
  expectFailure(source, options);
  options = optionsFor("sm_90a");
  mlirKVCacheCompileOptionsSetOptLevel(options, 4);
  // CHECK-NEXT: error: expects opt-level to be 0 to 3, got 4
  // CHECK-NEXT: succeeded 0, objects 0
  expectFailure(source, options);
  options = optionsFor("sm_90a");
  mlirKVCacheCompileOptionsSetFormat(options, str("cubin"));
  mlirKVCacheCompileOptionsSetToolkit(options, str("/no/such/toolkit"));
  // CHECK-NEXT: error: expects the toolkit to have '/no/such/toolkit/bin/ptxas'
  // CHECK-NEXT: succeeded 0, objects 0
  expectFailure(source, options);
}

static void testBadSource(void) {
  // CHECK-NEXT: read.mlir:2:21: error: {{.*}} 16 bytes, got 2
  // CHECK-NEXT: succeeded 0, objects 0
  expectFailure("\n!bad = !kvcache.tile<64x1xbf16>\n", optionsFor("sm_90a"));
  MlirKVCacheCompileResult result =
      compile(str("func.func @f(%a: i32) {\n  %a = arith.constant 0 : i32\n"
                  "  return\n}\n"),
              optionsFor("sm_90a"));
  // CHECK: read.mlir:2:3: error: redefinition of SSA value '%a'
  // CHECK-NEXT: read.mlir:1:14: note: previously defined here
  // CHECK-NEXT: succeeded 0, objects 0
  // CHECK-NEXT: diagnostics 2
  printf("diagnostics %d\n",
         (int)mlirKVCacheCompileResultGetNumDiagnostics(result));
  MlirKVCacheDiagnostic note = mlirKVCacheCompileResultGetDiagnostic(result, 1);
  // CHECK-NEXT: note 1 at line 1, column 14
  printf("note %d at line %u, column %u\n",
         mlirKVCacheDiagnosticGetSeverity(note) == MlirDiagnosticNote,
         mlirKVCacheDiagnosticGetLine(note),
         mlirKVCacheDiagnosticGetColumn(note));
  // CHECK-NEXT: file: read.mlir
  // CHECK-NEXT: message: previously defined here
  show("file", mlirKVCacheDiagnosticGetFilename(note));
  show("message", mlirKVCacheDiagnosticGetMessage(note));
  mlirKVCacheCompileResultDestroy(result);
}

static void testChips(void) {
  // CHECK: oldest: sm_80
  show("oldest", mlirKVCacheGetChipName(0));
  bool found = false;
  for (intptr_t i = 0; i < mlirKVCacheGetNumChips(); ++i)
    found |= mlirStringRefEqual(mlirKVCacheGetChipName(i), str("sm_100a"));
  // CHECK-NEXT: sm_100a 1
  printf("sm_100a %d\n", found);
}

/// Prints how the binary of a format begins.
static void testBinary(const char *format, const char *toolkit) {
  MlirKVCacheCompileOptions options = optionsFor("sm_90a");
  mlirKVCacheCompileOptionsSetFormat(options, str(format));
  mlirKVCacheCompileOptionsSetToolkit(options, str(toolkit));
  MlirKVCacheCompileResult result = compile(str(source), options);
  MlirKVCacheObject object = mlirKVCacheCompileResultGetObject(result, 0);
  const char *data = mlirKVCacheObjectGetData(object).data;
  printf("%s: %02x %02x %02x %02x, kernels %d\n", format,
         (unsigned char)data[0], (unsigned char)data[1], (unsigned char)data[2],
         (unsigned char)data[3], (int)mlirKVCacheObjectGetNumKernels(object));
  mlirKVCacheCompileResultDestroy(result);
}

/// With the folder of a toolkit: what takes ptxas.
int main(int argc, char **argv) {
  if (argc == 2) {
    testBinary("cubin", argv[1]);
    testBinary("fatbin", argv[1]);
    return 0;
  }
  testPTX();
  testKernel();
  testBoundsChecks();
  testBytecode();
  testBadOptions();
  testBadSource();
  testChips();
  return 0;
}
