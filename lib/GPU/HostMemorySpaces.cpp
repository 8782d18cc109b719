//===- HostMemorySpaces.cpp - Shared memory on the CPU --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_HOSTMEMORYSPACES
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct HostMemorySpaces
    : kvcache::impl::HostMemorySpacesBase<HostMemorySpaces> {
  void runOnOperation() override {
    // Its result is shared memory, whatever the memory space is called.
    WalkResult dynamic =
        getOperation()->walk([](gpu::DynamicSharedMemoryOp op) {
          op.emitOpError("has no memory on the host");
          return WalkResult::interrupt();
        });
    if (dynamic.wasInterrupted())
      return signalPassFailure();
    bool changed = false;
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](MemRefType type) -> std::optional<Type> {
      auto space =
          dyn_cast_if_present<gpu::AddressSpaceAttr>(type.getMemorySpace());
      if (!space || space.getValue() == gpu::AddressSpace::Private)
        return std::nullopt;
      changed = true;
      return MemRefType(MemRefType::Builder(type).setMemorySpace({}));
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    if (!changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
