//===- CacheStores.cpp - Stores to caches by threads ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CacheStores.h"

#include "kvcache/GPU/KernelLaunches.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/IR/ScalesOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Where memory comes from
//===----------------------------------------------------------------------===//

/// Whether a value of this type gives access to global memory.
static bool isGlobalMemory(Type type) {
  if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type)) {
    auto space = static_cast<NVVM::NVVMMemorySpace>(pointer.getAddressSpace());
    return space == NVVM::NVVMMemorySpace::Generic ||
           space == NVVM::NVVMMemorySpace::Global;
  }
  if (auto memref = dyn_cast<BaseMemRefType>(type)) {
    auto space =
        dyn_cast_or_null<gpu::AddressSpaceAttr>(memref.getMemorySpace());
    return !space || space.getValue() == gpu::AddressSpace::Global;
  }
  return isa<CacheTypeInterface>(type);
}

/// The address that a sum adds an offset to, or null.
static Value getAddress(arith::AddIOp sum) {
  return sum.getLhs().getDefiningOp<memref::ExtractAlignedPointerAsIndexOp>()
             ? sum.getLhs()
             : Value();
}

/// Returns the value that the op makes its result of, null if it is no view.
static Value getSource(Operation *op) {
  if (auto view = dyn_cast<ViewLikeOpInterface>(op))
    return view.getViewSource();
  if (auto bundle = dyn_cast<BundleOpInterface>(op))
    return bundle.getBlocks();
  if (auto access = dyn_cast<AccessOpInterface>(op))
    return access.getAccessedCache();
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<memref::ExtractStridedMetadataOp,
            memref::ExtractAlignedPointerAsIndexOp>(
          [](auto memref) { return memref.getSource(); })
      // An address and what is added to it, or a pointer.
      .Case<arith::AddIOp>([](auto sum) { return getAddress(sum); })
      .Case<arith::IndexCastOp>([](auto cast) { return cast.getIn(); })
      .Case<LLVM::IntToPtrOp>([](auto cast) { return cast.getArg(); })
      .Case<LLVM::GEPOp>([](auto element) { return element.getBase(); })
      .Case([](LayerViewOpInterface view) { return view.getCollection(); })
      .Case<ScalesViewOp>([](auto view) { return view.getCache(); })
      .Default(Value());
}

/// Returns the argument of a function, the allocation or the global that the
/// memory of `value` belongs to, or null if that is unknown.
static Value getRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp,
            gpu::AllocOp, LLVM::AllocaOp, LLVM::AddressOfOp>(op))
      return value;
    value = getSource(op);
    if (!value)
      return {};
  }
  Block *block = cast<BlockArgument>(value).getOwner();
  bool isArgument =
      block->isEntryBlock() && isa<FunctionOpInterface>(block->getParentOp());
  return isArgument ? value : Value();
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

CacheStores::CacheStores(FunctionOpInterface function, Operation *root)
    : function(function) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(*function);
  auto module = dyn_cast<ModuleOp>(root);
  if (kernel && module)
    llvm::append_range(launches, KernelLaunches(module).lookup(kernel));
  function.walk([&](Operation *op) { collect(op); });
}

/// Whether an op is one of NVVM's that write shared memory or copy by the async
/// proxy. Upstream declares no effects for many of them.
static bool isNoStore(Operation *op) {
  return isa_and_present<NVVM::NVVMDialect>(op->getDialect()) &&
         !isa<NVVM::InlinePtxOp>(op);
}

void CacheStores::collect(Operation *op) {
  if (op == function || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
      isNoStore(op) || isMemoryEffectFree(op))
    return;
  if (isa<LLVM::InlineAsmOp, NVVM::InlinePtxOp>(op)) {
    // An address may be a number.
    if (op->getNumOperands())
      written.insert(Value());
    return;
  }
  auto add = [&](Value value) {
    if (isGlobalMemory(value.getType()))
      written.insert(getRoot(value));
  };
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto interface = dyn_cast<MemoryEffectOpInterface>(op)) {
    interface.getEffects(effects);
    llvm::erase_if(effects, [](const MemoryEffects::EffectInstance &each) {
      return !isa<MemoryEffects::Write>(each.getEffect());
    });
    if (effects.empty())
      return;
  }
  for (const MemoryEffects::EffectInstance &each : effects)
    if (each.getValue())
      add(each.getValue());
  auto hasValue = [](const MemoryEffects::EffectInstance &each) {
    return each.getValue() != nullptr;
  };
  if (effects.empty() || !llvm::all_of(effects, hasValue))
    llvm::for_each(op->getOperands(), add);
}

/// Different arguments are different memory, unless a launch passes the same
/// twice.
bool CacheStores::mayBeSame(Value one, Value other) const {
  if (!one || !other || one == other)
    return true;
  auto first = dyn_cast<BlockArgument>(one);
  auto second = dyn_cast<BlockArgument>(other);
  if (!first || !second)
    return false;
  return llvm::any_of(launches, [&](gpu::LaunchFuncOp launch) {
    auto operands = launch.getKernelOperands();
    Value onHost = getRoot(operands[first.getArgNumber()]);
    return !onHost || onHost == getRoot(operands[second.getArgNumber()]);
  });
}

bool CacheStores::mayWrite(Value cache) const {
  Value root = getRoot(cache);
  return llvm::any_of(written,
                      [&](Value each) { return mayBeSame(each, root); });
}
