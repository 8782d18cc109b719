//===- LowerX86Vectors.cpp - Lower the x86vector dialect ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"

#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/X86Vector/Transforms.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERX86VECTORS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct LowerX86Vectors : kvcache::impl::LowerX86VectorsBase<LowerX86Vectors> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa_and_present<x86vector::X86VectorDialect>(op->getDialect()))
        ops.push_back(op);
    });
    if (ops.empty())
      return markAllAnalysesPreserved();
    LLVMTypeConverter converter(&getContext());
    RewritePatternSet patterns(&getContext());
    LLVMConversionTarget target(getContext());
    populateX86VectorLegalizeForLLVMExportPatterns(converter, patterns);
    configureX86VectorLegalizeForExportTarget(target);
    if (failed(applyPartialConversion(ops, target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
