//===- MarkDescriptors.cpp - Descriptors as kernel parameters
//----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/KVCache.h"
#include "kvcache/Pipelines/Pipelines.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

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
          mark(function, index);
      }
    }
  }

private:
  static void mark(LLVM::LLVMFuncOp function, unsigned index) {
    // CUDA Driver API, "CUtensorMap": 128 bytes, aligned to 64.
    constexpr int64_t bytes = 128, alignment = 64;
    Builder builder(function.getContext());
    auto array = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes);
    function.setArgAttr(index, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(array));
    function.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                        builder.getI64IntegerAttr(alignment));
    function.setArgAttr(index, NVVM::NVVMDialect::getGridConstantAttrName(),
                        builder.getUnitAttr());
  }
};

} // namespace
