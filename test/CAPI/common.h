//===- common.h - What the tests of the C API share -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TEST_CAPI_COMMON_H
#define KVCACHE_TEST_CAPI_COMMON_H

#include "mlir-c/Diagnostics.h"
#include "mlir-c/IR.h"

#include <stdio.h>

/// A callback that prints to stdout.
static inline void print(MlirStringRef text, void *userData) {
  (void)userData;
  fwrite(text.data, 1, text.length, stdout);
}

static inline MlirStringRef str(const char *text) {
  return mlirStringRefCreateFromCString(text);
}

/// Prints `label: text` for a text that need not end in a zero byte.
static inline void show(const char *label, MlirStringRef text) {
  printf("%s: %.*s\n", label, (int)text.length, text.data);
}

/// Prints a diagnostic with its place.
static inline MlirLogicalResult report(MlirDiagnostic diagnostic,
                                       void *userData) {
  (void)userData;
  MlirLocation loc = mlirDiagnosticGetLocation(diagnostic);
  if (mlirLocationIsAFileLineColRange(loc)) {
    print(mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(loc)),
          NULL);
    printf(":%d:%d: ", mlirLocationFileLineColRangeGetStartLine(loc),
           mlirLocationFileLineColRangeGetStartColumn(loc));
  } else {
    printf("unknown: ");
  }
  mlirDiagnosticPrint(diagnostic, print, NULL);
  printf("\n");
  return mlirLogicalResultSuccess();
}

#endif // KVCACHE_TEST_CAPI_COMMON_H
