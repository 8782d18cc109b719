//===- kvcache-opt.cpp - mlir-opt with the kvcache dialect ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegisterEmulator.h"
#include "kvcache/Pipelines/OptMain.h"

#ifdef KVCACHE_STATIC
static constexpr bool kLoadsPlugins = false;
#else
static constexpr bool kLoadsPlugins = true;
#endif

int main(int argc, char **argv) {
  mlir::kvcache::registerEmulatorIfBuilt();
  return mlir::kvcache::optMain(argc, argv, kLoadsPlugins);
}
