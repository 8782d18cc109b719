//===- kvcache-translate.cpp - LLVM IR as kernels in MLIR -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Import/Import.h"
#include "kvcache/Support/Nesting.h"

#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  mlir::kvcache::registerImportKernels();
  return mlir::kvcache::runOnDeepStack([&]() -> int {
    return mlir::failed(mlir::mlirTranslateMain(
        argc, argv, "kernels of other compilers to MLIR"));
  });
}
