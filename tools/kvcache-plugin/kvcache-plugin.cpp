//===- kvcache-plugin.cpp - The kvcache dialect for any mlir-opt ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegisterEmulator.h"
#include "kvcache/InitAll.h"
#include "kvcache/Version.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Support/Compiler.h"

using namespace mlir;

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {
      MLIR_PLUGIN_API_VERSION, "KVCache", KVCACHE_VERSION_STRING,
      [](DialectRegistry *registry) { kvcache::registerDialect(*registry); }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "KVCache", KVCACHE_VERSION_STRING, [] {
            kvcache::registerPasses();
            kvcache::registerEmulatorIfBuilt();
          }};
}
