//===- MarkDescriptors.cpp - Descriptors as kernel parameters -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/Descriptors.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Support/KernelParameters.h"
#include "kvcache/TMA/Encoding.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_MARKDESCRIPTORS
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::markDescriptor(LLVM::LLVMFuncOp kernel, unsigned argument) {
  Builder builder(kernel.getContext());
  auto bytes =
      LLVM::LLVMArrayType::get(builder.getI8Type(), tma::kDescriptorBytes);
  kernel.setArgAttr(argument, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(bytes));
  kernel.setArgAttr(argument, LLVM::LLVMDialect::getAlignAttrName(),
                    builder.getI64IntegerAttr(tma::kDescriptorAlignment));
  kernel.setArgAttr(argument, NVVM::NVVMDialect::getGridConstantAttrName(),
                    builder.getUnitAttr());
}

namespace {

struct MarkDescriptors : kvcache::impl::MarkDescriptorsBase<MarkDescriptors> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      FailureOr<ArrayAttr> parameters = getKernelParameters(function);
      if (failed(parameters))
        return signalPassFailure();
      if (!*parameters)
        continue;
      for (auto [index, parameter] :
           llvm::enumerate(parameters->getAsRange<DictionaryAttr>())) {
        auto type = parameter.getAs<TypeAttr>("type");
        if (isa<TMATileType>(type.getValue()))
          markDescriptor(function, index);
      }
    }
  }
};

} // namespace
