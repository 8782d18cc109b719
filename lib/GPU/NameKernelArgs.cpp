//===- NameKernelArgs.cpp - Name the arguments of kernels -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/Passes.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/IR/ScalesOps.h"
#include "kvcache/Support/FindOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_NAMEKERNELARGS
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Returns the name of the function argument `value`.
StringAttr getArgumentName(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || !argument.getOwner()->isEntryBlock())
    return {};
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function)
    return {};
  return function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                               KVCacheDialect::kArgNameAttr);
}

/// Returns the name of a launch operand: that of a function argument, or the
/// role of a view.
StringAttr getOperandName(Value value) {
  if (StringAttr name = getArgumentName(value))
    return name;
  MLIRContext *context = value.getContext();
  if (auto view = value.getDefiningOp<LayerViewOpInterface>())
    return StringAttr::get(context, stringifyRole(view.getRole()));
  if (value.getDefiningOp<ScalesViewOp>())
    return StringAttr::get(context, "scales");
  if (isa<CacheTypeInterface>(value.getType()))
    return StringAttr::get(context, "cache");
  return {};
}

struct NameKernelArgs : kvcache::impl::NameKernelArgsBase<NameKernelArgs> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    for (auto launch :
         findOps<gpu::LaunchFuncOp, gpu::GPUModuleOp>(getOperation())) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
      if (!kernel)
        continue;
      for (auto [index, operand] :
           llvm::enumerate(launch.getKernelOperands())) {
        StringRef attr = KVCacheDialect::kArgNameAttr;
        if (kernel.getArgAttr(index, attr))
          continue;
        if (StringAttr name = getOperandName(operand))
          kernel.setArgAttr(index, attr, name);
      }
    }
  }
};

} // namespace
