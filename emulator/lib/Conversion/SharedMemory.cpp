//===- SharedMemory.cpp - Variables that a block shares -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "kvcache/Emulator/ABI.h"
#include "kvcache/GPU/SharedArrays.h"

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

/// The alignment of dynamic shared memory, for tiles with a swizzle: as far as
/// any variable is aligned, and what red zones keep.
static constexpr uint64_t kAlignment = 1024;
static_assert(KVCacheRedZoneBytes % kAlignment == 0);

SharedLayout::SharedLayout(gpu::GPUModuleOp module, bool hasRedZones)
    : redZoneBytes(hasRedZones ? KVCacheRedZoneBytes : 0) {
  SymbolTable symbols(module);
  SmallVector<std::pair<LLVM::LLVMFuncOp, llvm::SetVector<Operation *>>> used;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      used.emplace_back(function, getVariables(function, symbols));
  auto getUsers = [&](LLVM::GlobalOp global) {
    SmallVector<KernelSharedMemory *> users;
    for (auto &[kernel, variables] : used)
      if (variables.contains(global))
        users.push_back(&kernels[kernel.getName()]);
    return users;
  };
  for (auto global : module.getOps<LLVM::GlobalOp>())
    if (isShared(global) && !isDynamic(global))
      addVariable(global, getUsers(global));
  for (auto &[kernel, variables] : used) {
    LLVM::GlobalOp dynamic;
    for (Operation *variable : variables)
      if (auto global = cast<LLVM::GlobalOp>(variable); isDynamic(global))
        dynamic = global;
    addDynamic(kernel, kernels[kernel.getName()], dynamic);
  }
}

/// A variable has one offset for all kernels, since functions may be theirs
/// together; those of different kernels overlap.
void SharedLayout::addVariable(LLVM::GlobalOp global,
                               ArrayRef<KernelSharedMemory *> users) {
  constexpr uint64_t natural = 16;
  SharedVariable variable{global.getSymNameAttr(), 0, 0, 0};
  for (const KernelSharedMemory *kernel : users) {
    variable.offset = std::max(variable.offset, kernel->staticBytes);
    variable.shift = std::max(variable.shift, kernel->dynamicShift);
  }
  variable.offset =
      llvm::alignTo(variable.offset, global.getAlignment().value_or(natural));
  variable.bytes = DataLayout::closest(global).getTypeSize(global.getType());
  places[global.getSymName()] = variable.offset + variable.shift;
  for (KernelSharedMemory *kernel : users) {
    kernel->variables.push_back(variable);
    ++kernel->numStatic;
    kernel->staticBytes = variable.offset + variable.bytes;
    kernel->dynamicShift = variable.shift + redZoneBytes;
  }
}

/// The arrays in the dynamic shared memory of a kernel may be known, or not.
void SharedLayout::addDynamic(LLVM::LLVMFuncOp kernel,
                              KernelSharedMemory &memory,
                              LLVM::GlobalOp dynamic) {
  memory.dynamicOffset = llvm::alignTo(memory.staticBytes, kAlignment);
  if (!dynamic)
    return;
  SmallVector<SharedArray> arrays = getSharedArrays(kernel);
  if (arrays.empty())
    arrays.push_back(
        {dynamic.getSymNameAttr(), 0, std::numeric_limits<int32_t>::max()});
  for (auto [index, array] : llvm::enumerate(arrays))
    memory.variables.push_back(
        {array.name, memory.dynamicOffset + array.offset, array.bytes,
         memory.dynamicShift + static_cast<int64_t>(index) * redZoneBytes});
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

/// The bytes by which an address is after its base, if that is a constant.
static std::optional<int64_t> getConstantOffset(LLVM::GEPOp op) {
  if (!op.getDynamicIndices().empty())
    return std::nullopt;
  ArrayRef<int32_t> indices = op.getRawConstantIndices();
  if (llvm::all_of(indices, [](int32_t index) { return index == 0; }))
    return 0;
  // Accesses of elements promise more (see SharedArray).
  if (indices.size() != 1 || !op.getElemType().isInteger(8) ||
      op.getNoWrapFlags() != LLVM::GEPNoWrapFlags::none)
    return std::nullopt;
  return indices[0];
}

/// Shifts the addresses of arrays in dynamic shared memory at `base`, but for
/// the first.
static void shiftArrays(Value base, ArrayRef<SharedVariable> arrays) {
  const SharedVariable &first = arrays.front();
  for (Operation *user : llvm::to_vector(base.getUsers())) {
    auto address = dyn_cast<LLVM::GEPOp>(user);
    std::optional<int64_t> offset =
        address ? getConstantOffset(address) : std::nullopt;
    if (!offset)
      continue;
    if (*offset == 0) {
      shiftArrays(address, arrays);
      continue;
    }
    auto *array = llvm::find_if(arrays, [&](const SharedVariable &array) {
      return array.offset - first.offset == *offset;
    });
    if (array != arrays.end())
      address.setRawConstantIndices(
          {static_cast<int32_t>(*offset + array->shift - first.shift)});
  }
}

static void lowerAddress(LLVM::AddressOfOp op, LLVM::GlobalOp global,
                         const SharedLayout &layout, EmulatorCalls &calls) {
  OpBuilder builder(op);
  Value address;
  if (isDynamic(global)) {
    auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
    if (layout.isKernel(function.getName()))
      shiftArrays(op, layout.getKernel(function.getName()).getDynamic());
    address = calls.loadField(op, offsetof(KVCacheThread, dynamicShared),
                              calls.pointerType);
  } else {
    address = addOffset(builder, op.getLoc(), getBase(op, calls),
                        calls.getI32(op, layout.getPlace(global.getSymName())));
  }
  op.getResult().replaceUsesWithIf(
      LLVM::AddrSpaceCastOp::create(builder, op.getLoc(), op.getType(),
                                    address),
      [](OpOperand &) { return true; });
  op.erase();
}

/// Whether a type is a pointer to shared memory of the block or its cluster.
static bool isSharedPointer(Type type) {
  auto pointer = dyn_cast<LLVM::LLVMPointerType>(type);
  if (!pointer)
    return false;
  auto space = static_cast<NVVM::NVVMMemorySpace>(pointer.getAddressSpace());
  return space == NVVM::NVVMMemorySpace::Shared ||
         space == NVVM::NVVMMemorySpace::SharedCluster;
}

/// The address of the shared memory of the cluster.
static Value getClusterBase(Operation *op, EmulatorCalls &calls) {
  return calls.loadClusterField(op, offsetof(KVCacheCluster, shared),
                                calls.pointerType);
}

/// As a number, the address of shared memory is an offset in that of the
/// cluster, and as short. Zero is one like others (PTX ISA, "Shared State
/// Space").
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
    Value base = LLVM::PtrToIntOp::create(builder, loc, calls.i64,
                                          getClusterBase(op, calls));
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
    Value address = addOffset(builder, loc, getClusterBase(op, calls), offset);
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
