//===- serve-opt.cpp - mlir-opt with both dialects ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Serve.h"

#include "kvcache/InitAll.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::kvcache::registerAllDialects(registry);
  mlir::kvcache::registerAllPasses();
  registry.insert<serve::ServeDialect>();
  serve::registerServePasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "serve-opt\n", registry));
}
