//===- MarkDescriptors.cpp - Descriptors as kernel parameters
//----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/KVCacheToLLVM.h"
#include "kvcache/IR/KVCache.h"
#include "kvcache/Pipelines/Pipelines.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_MARKDESCRIPTORS
#include "kvcache/Pipelines/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct MarkDescriptors : kvcache::impl::MarkDescriptorsBase<MarkDescriptors> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      auto parameters =
          function->getAttrOfType<ArrayAttr>(KVCacheDialect::kParametersAttr);
      if (!parameters)
        continue;
      for (auto [index, parameter] :
           llvm::enumerate(parameters.getAsRange<DictionaryAttr>())) {
        auto type = parameter.getAs<TypeAttr>("type");
        if (isa<TMATileType>(type.getValue()))
          markDescriptor(function, index);
      }
    }
  }
};

} // namespace
