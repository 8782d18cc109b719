//===- Translation.cpp - The translation of kvcache-translate -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Import/Import.h"
#include "kvcache/Import/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::kvcache;

static OwningOpRef<Operation *> importKernels(llvm::SourceMgr &source,
                                              MLIRContext *context) {
  const llvm::MemoryBuffer *buffer =
      source.getMemoryBuffer(source.getMainFileID());
  OwningOpRef<ModuleOp> module =
      importLLVMIR(buffer->getBuffer(), buffer->getBufferIdentifier(), context);
  if (!module)
    return {};
  auto passes = PassManager::on<ModuleOp>(context);
  passes.addPass(createWrapKernels());
  if (failed(passes.run(*module)))
    return {};
  return module.release().getOperation();
}

void kvcache::registerImportKernels() {
  static TranslateToMLIRRegistration registration(
      "import-kernels",
      "LLVM IR of another compiler, as text or bitcode, to a gpu.module",
      [](llvm::SourceMgr &source, MLIRContext *context) {
        return importKernels(source, context);
      },
      [](DialectRegistry &) {});
}
