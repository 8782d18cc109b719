//===- kvcache-lsp-server.cpp - the dialect in editors --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/InitAll.h"
#include "kvcache/Support/Nesting.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::kvcache::registerAllDialects(registry);
  return mlir::kvcache::runOnDeepStack([&]() -> int {
    return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
  });
}
