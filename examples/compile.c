//===- compile.c - A kernel to PTX, from C --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Prints the PTX of every kernel in a file, and what a launch needs:
//
//   compile examples/quickstart.mlir sm_90a
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Compile.h"

#include <stdio.h>
#include <stdlib.h>

static void print(MlirStringRef text, void *file) {
  fwrite(text.data, 1, text.length, file);
}

/// The contents of a file, to be freed; null if it can't be read.
static char *readFile(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  char *text = NULL;
  if (fseek(file, 0, SEEK_END) == 0) {
    long end = ftell(file);
    rewind(file);
    text = end < 0 ? NULL : malloc((size_t)end + 1);
    *size = text ? fread(text, 1, (size_t)end, file) : 0;
  }
  fclose(file);
  return text;
}

static void printKernel(MlirKVCacheKernel kernel) {
  printf("// ");
  print(mlirKVCacheKernelGetName(kernel), stdout);
  int32_t block[3];
  if (mlirKVCacheKernelGetBlockSize(kernel, block))
    printf(", blocks of %d x %d x %d threads", block[0], block[1], block[2]);
  for (intptr_t i = 0; i < mlirKVCacheKernelGetNumParameters(kernel); ++i) {
    printf(i == 0 ? ":\n//   " : "\n//   ");
    print(mlirKVCacheKernelGetParameterType(kernel, i), stdout);
    printf(" ");
    print(mlirKVCacheKernelGetParameterName(kernel, i), stdout);
  }
  printf("\n");
}

int main(int argc, char **argv) {
  size_t size = 0;
  char *text = argc == 3 ? readFile(argv[1], &size) : NULL;
  if (!text) {
    fprintf(stderr, "usage: %s FILE.mlir CHIP\n", argv[0]);
    return 2;
  }
  MlirKVCacheCompileOptions options = mlirKVCacheCompileOptionsCreate();
  mlirKVCacheCompileOptionsAddChip(options,
                                   mlirStringRefCreateFromCString(argv[2]));
  MlirKVCacheCompileResult result =
      mlirKVCacheCompile(mlirStringRefCreate(text, size),
                         mlirStringRefCreateFromCString(argv[1]), options);
  mlirKVCacheCompileOptionsDestroy(options);
  free(text);

  mlirKVCacheCompileResultPrintDiagnostics(result, print, stderr);
  for (intptr_t i = 0; i < mlirKVCacheCompileResultGetNumObjects(result); ++i) {
    MlirKVCacheObject object = mlirKVCacheCompileResultGetObject(result, i);
    for (intptr_t k = 0; k < mlirKVCacheObjectGetNumKernels(object); ++k)
      printKernel(mlirKVCacheObjectGetKernel(object, k));
    print(mlirKVCacheObjectGetData(object), stdout);
  }
  bool succeeded = mlirKVCacheCompileResultSucceeded(result);
  mlirKVCacheCompileResultDestroy(result);
  return succeeded ? EXIT_SUCCESS : EXIT_FAILURE;
}
