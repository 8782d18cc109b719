//===- kvcache-reduce.cpp - smaller inputs that still fail ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegisterEmulator.h"
#include "kvcache/InitAll.h"
#include "kvcache/Support/Nesting.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::kvcache::registerAllDialects(registry);
  mlir::kvcache::registerAllPasses();
  mlir::kvcache::registerEmulatorIfBuilt();
  mlir::MLIRContext context(registry);
  return mlir::kvcache::runOnDeepStack([&]() -> int {
    return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
  });
}
