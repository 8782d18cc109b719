//===- kvcache-opt.cpp - mlir-opt with the kvcache dialect ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Pipelines/OptMain.h"

int main(int argc, char **argv) { return mlir::kvcache::optMain(argc, argv); }
