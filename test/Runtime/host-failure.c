//===- host-failure.c - A call of the device that failed ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Host.h"

#include <stdio.h>

int main(void) {
  printf("before\n");
  kvcacheDeviceFailed("gather.mlir:12:3: launch of @kernels::@gather",
                      "out of luck, 100%");
}
