//===- SharedMemory.cpp - Variables that a block shares -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "kvcache/Emulator/ABI.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

static bool isShared(LLVM::GlobalOp global) {
  return global.getAddrSpace() ==
         static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
}

/// Dynamic shared memory is what a kernel declares without a size of its own.
static bool isDynamic(LLVM::GlobalOp global) {
  auto array = dyn_cast<LLVM::LLVMArrayType>(global.getType());
  return array && array.getNumElements() == 0;
}

/// The functions that `function` calls, directly or not, and itself.
static llvm::SetVector<Operation *> getCallees(LLVM::LLVMFuncOp function,
                                               SymbolTable &symbols) {
  llvm::SetVector<Operation *> callees;
  callees.insert(function);
  for (size_t next = 0; next < callees.size(); ++next)
    callees[next]->walk([&](LLVM::CallOp call) {
      if (std::optional<StringRef> name = call.getCallee())
        if (auto callee = symbols.lookup<LLVM::LLVMFuncOp>(*name))
          callees.insert(callee);
    });
  return callees;
}

/// The shared variables that `function` uses.
static llvm::SetVector<Operation *> getVariables(LLVM::LLVMFuncOp function,
                                                 SymbolTable &symbols) {
  llvm::SetVector<Operation *> variables;
  for (Operation *callee : getCallees(function, symbols))
    callee->walk([&](LLVM::AddressOfOp address) {
      auto global = symbols.lookup<LLVM::GlobalOp>(address.getGlobalName());
      if (global && isShared(global))
        variables.insert(global);
    });
  return variables;
}

SharedLayout::SharedLayout(gpu::GPUModuleOp module) {
  SymbolTable symbols(module);
  DataLayout layout(module);
  SmallVector<LLVM::LLVMFuncOp> kernels;
  SmallVector<llvm::SetVector<Operation *>> used;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName())) {
      kernels.push_back(function);
      used.push_back(getVariables(function, symbols));
      staticBytes[function.getName()] = 0;
    }
  // A variable has one offset for all kernels, since functions may be theirs
  // together; those of different kernels overlap.
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    if (!isShared(global) || isDynamic(global))
      continue;
    int64_t offset = 0;
    for (auto [kernel, variables] : llvm::zip(kernels, used))
      if (variables.contains(global))
        offset = std::max(offset, staticBytes[kernel.getName()]);
    constexpr uint64_t natural = 16;
    offset = llvm::alignTo(offset, global.getAlignment().value_or(natural));
    offsets[global.getSymName()] = offset;
    int64_t end = offset + layout.getTypeSize(global.getType());
    for (auto [kernel, variables] : llvm::zip(kernels, used))
      if (variables.contains(global))
        staticBytes[kernel.getName()] = end;
  }
}

int64_t SharedLayout::getDynamicOffset(StringRef kernel) const {
  // As far as any variable is aligned, for tiles with a swizzle.
  constexpr uint64_t alignment = 1024;
  return llvm::alignTo(getStaticBytes(kernel), alignment);
}

/// The address of the block's shared memory.
static Value getBase(Operation *op, EmulatorCalls &calls) {
  return calls.loadField(op, offsetof(KVCacheThread, shared),
                         calls.pointerType);
}

static Value addOffset(OpBuilder &builder, Location loc, Value base,
                       Value offset) {
  return LLVM::GEPOp::create(builder, loc, base.getType(), builder.getI8Type(),
                             base, offset);
}

static void lowerAddress(LLVM::AddressOfOp op, LLVM::GlobalOp global,
                         const SharedLayout &layout, EmulatorCalls &calls) {
  OpBuilder builder(op);
  Value offset;
  if (isDynamic(global)) {
    // It is the end of what the block has.
    Value all =
        calls.loadField(op, offsetof(KVCacheThread, sharedBytes), calls.i32);
    Value dynamic = calls.loadField(
        op, offsetof(KVCacheThread, dynamicSharedBytes), calls.i32);
    offset = LLVM::SubOp::create(builder, op.getLoc(), all, dynamic);
  } else {
    offset = calls.getI32(op, layout.getOffset(global.getSymName()));
  }
  Value address = addOffset(builder, op.getLoc(), getBase(op, calls), offset);
  op.getResult().replaceUsesWithIf(
      LLVM::AddrSpaceCastOp::create(builder, op.getLoc(), op.getType(),
                                    address),
      [](OpOperand &) { return true; });
  op.erase();
}

static bool isSharedPointer(Type type) {
  auto pointer = dyn_cast<LLVM::LLVMPointerType>(type);
  return pointer && pointer.getAddressSpace() ==
                        static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
}

/// As a number, the address of shared memory is an offset, and as short. Zero
/// is one like others (PTX ISA, "Shared State Space").
static void lowerCasts(gpu::GPUModuleOp module, EmulatorCalls &calls) {
  module.walk([&](LLVM::ZeroOp op) {
    if (!isSharedPointer(op.getType()) ||
        !op->getParentOfType<LLVM::LLVMFuncOp>())
      return;
    OpBuilder builder(op);
    op.replaceAllUsesWith(LLVM::AddrSpaceCastOp::create(builder, op.getLoc(),
                                                        op.getType(),
                                                        getBase(op, calls))
                              .getResult());
    op.erase();
  });
  module.walk([&](LLVM::PtrToIntOp op) {
    if (!isSharedPointer(op.getArg().getType()))
      return;
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Value base =
        LLVM::PtrToIntOp::create(builder, loc, calls.i64, getBase(op, calls));
    Value generic = LLVM::AddrSpaceCastOp::create(
        builder, loc, calls.pointerType, op.getArg());
    Value address = LLVM::PtrToIntOp::create(builder, loc, calls.i64, generic);
    Value offset = LLVM::SubOp::create(builder, loc, address, base);
    if (op.getType().getIntOrFloatBitWidth() < 64)
      offset = LLVM::TruncOp::create(builder, loc, op.getType(), offset);
    op.replaceAllUsesWith(offset);
    op.erase();
  });
  module.walk([&](LLVM::IntToPtrOp op) {
    if (!isSharedPointer(op.getType()))
      return;
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Value offset = op.getArg();
    if (offset.getType().getIntOrFloatBitWidth() < 64)
      offset = LLVM::ZExtOp::create(builder, loc, calls.i64, offset);
    Value address = addOffset(builder, loc, getBase(op, calls), offset);
    op.replaceAllUsesWith(
        LLVM::AddrSpaceCastOp::create(builder, loc, op.getType(), address)
            .getResult());
    op.erase();
  });
}

void kvcache::lowerSharedMemory(gpu::GPUModuleOp module,
                                const SharedLayout &layout,
                                EmulatorCalls &calls) {
  SymbolTable symbols(module);
  module.walk([&](LLVM::AddressOfOp op) {
    auto global = symbols.lookup<LLVM::GlobalOp>(op.getGlobalName());
    if (global && isShared(global))
      lowerAddress(op, global, layout, calls);
  });
  lowerCasts(module, calls);
  for (auto global :
       llvm::make_early_inc_range(module.getOps<LLVM::GlobalOp>()))
    if (isShared(global))
      global.erase();
}
