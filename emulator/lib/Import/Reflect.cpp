//===- Reflect.cpp - Questions of CUDA's math library ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reflect.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::kvcache;

static constexpr StringLiteral kReflect("__nvvm_reflect");

/// The text that a pointer is of; empty for another.
static StringRef getText(Value pointer, const SymbolTable &symbols) {
  while (auto cast = pointer.getDefiningOp<LLVM::AddrSpaceCastOp>())
    pointer = cast.getArg();
  auto address = pointer.getDefiningOp<LLVM::AddressOfOp>();
  auto global = address
                    ? symbols.lookup<LLVM::GlobalOp>(address.getGlobalName())
                    : LLVM::GlobalOp();
  auto text = global ? dyn_cast_if_present<StringAttr>(global.getValueOrNull())
                     : StringAttr();
  return text ? text.getValue().rtrim('\0') : StringRef();
}

void kvcache::resolveReflections(
    Operation *module,
    function_ref<std::optional<int64_t>(StringRef name)> getValue) {
  SymbolTable symbols(module);
  module->walk([&](LLVM::CallOp call) {
    if (call.getCallee() != kReflect || call.getCalleeOperands().size() != 1 ||
        call->getNumResults() != 1)
      return;
    StringRef name = getText(call.getCalleeOperands().front(), symbols);
    std::optional<int64_t> value = getValue(name);
    if (name.empty() || !value)
      return;
    OpBuilder builder(call);
    Value constant = LLVM::ConstantOp::create(
        builder, call.getLoc(), call->getResult(0).getType(), *value);
    call->getResult(0).replaceAllUsesWith(constant);
    call.erase();
  });
}
