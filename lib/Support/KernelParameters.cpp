//===- KernelParameters.cpp - Descriptions of parameters ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/KernelParameters.h"

#include "kvcache/IR/KVCacheDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

FailureOr<ArrayAttr> kvcache::getKernelParameters(LLVM::LLVMFuncOp kernel) {
  Attribute attribute = kernel->getAttr(KVCacheDialect::kParametersAttr);
  if (!attribute)
    return ArrayAttr();
  auto isDescription = [](Attribute attribute) {
    auto facts = dyn_cast<DictionaryAttr>(attribute);
    return facts && facts.getAs<StringAttr>("name") &&
           facts.getAs<TypeAttr>("type");
  };
  auto parameters = dyn_cast<ArrayAttr>(attribute);
  if (!parameters || parameters.size() != kernel.getNumArguments() ||
      !llvm::all_of(parameters, isDescription))
    return kernel.emitOpError("expects '")
           << KVCacheDialect::kParametersAttr
           << "' to give the name and type of each argument, got " << attribute;
  return parameters;
}
