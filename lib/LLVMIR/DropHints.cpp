//===- DropHints.cpp - Hints that do not help a CPU -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_DROPHINTS
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

/// Bytes of the smallest vector register that CPUs store past their caches.
constexpr uint64_t kRegisterBytes = 16;

/// Whether a store consists of whole, aligned registers.
bool storesRegisters(LLVM::StoreOp op) {
  auto type = dyn_cast<VectorType>(op.getValue().getType());
  if (!type)
    return false;
  DataLayout layout = DataLayout::closest(op);
  uint64_t alignment =
      op.getAlignment().value_or(layout.getTypeABIAlignment(type));
  uint64_t bits =
      type.getNumElements() * layout.getTypeSizeInBits(type.getElementType());
  return llvm::MinAlign(bits / 8, alignment) >= kRegisterBytes;
}

struct DropHints : kvcache::impl::DropHintsBase<DropHints> {
  void runOnOperation() override {
    bool changed = false;
    auto drop = [&](auto op) {
      changed |= op.getNontemporal();
      op.setNontemporal(false);
    };
    getOperation()->walk([&](Operation *op) {
      if (auto load = dyn_cast<LLVM::LoadOp>(op))
        drop(load);
      else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op))
        drop(load);
      else if (auto store = dyn_cast<LLVM::StoreOp>(op);
               store && !storesRegisters(store))
        drop(store);
    });
    if (!changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
