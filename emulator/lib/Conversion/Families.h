//===- Families.h - The parts of the lowering to the emulator - -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_FAMILIES_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_FAMILIES_H

#include "EmulatorCalls.h"
#include "Matrices.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::kvcache {

/// Rejects code for a chip that cannot run on a host. The error names an op, a
/// type or a variable.
LogicalResult checkHost(gpu::GPUModuleOp module);

//===--- One function per family ---===//
// Each lowers an op of its family and gives true, or gives false and leaves the
// op as it is. Fails with an error at the op where a form of it is not known.

/// Registers such as the thread's number.
FailureOr<bool> lowerRegister(Operation *op, EmulatorCalls &calls);
/// Barriers of a block and of a cluster, addresses in other blocks.
FailureOr<bool> lowerBarrier(Operation *op, EmulatorCalls &calls);
/// mbarriers, fences, and the order of launches.
FailureOr<bool> lowerSynchronization(Operation *op, EmulatorCalls &calls);
/// Lowers an op that the lanes of a warp execute together.
FailureOr<bool> lowerWarpOp(Operation *op, EmulatorCalls &calls);
/// cp.async, tensor and bulk copies, prefetches.
FailureOr<bool> lowerAsyncCopy(Operation *op, EmulatorCalls &calls);
/// tcgen05: tensor memory, and products in it.
FailureOr<bool> lowerTensorMemoryOp(Operation *op, EmulatorCalls &calls);
/// wgmma.
FailureOr<bool> lowerWarpgroupOp(Operation *op, EmulatorCalls &calls);
/// Conversions of floats, approximations, and intrinsics of the chip.
FailureOr<bool> lowerMathOp(Operation *op, EmulatorCalls &calls);
/// Printing, assertions, traps, the end of a thread.
FailureOr<bool> lowerControlOp(Operation *op, EmulatorCalls &calls);

//===--- The module as a whole ---===//

/// Announces every access of memory before it happens, if the module is
/// sanitized or metered, and asks the host for no alignment.
LogicalResult announceAccesses(gpu::GPUModuleOp module,
                               MatrixPrograms &programs, EmulatorCalls &calls);

/// Whether the memory at a base (`getBasePointer`) is private to a thread:
/// a variable, or a parameter in memory.
bool isPrivate(Value base);

/// The bytes that an instruction reads or writes of a value in memory.
int64_t getStoreBytes(Type type, const DataLayout &layout);

/// The loads and variables that must be announced to the runtime to find
/// poisoned values.
struct TrackedPoison {
  /// The loads that may give such values: with `KVCacheAccessPoisons`.
  llvm::DenseSet<Operation *> loads;
  /// The variables all of whose accesses are known: compiled code looks after
  /// their bytes itself. Others must be declared.
  llvm::DenseSet<Operation *> followed;
};

/// Follows values that depend on uninitialized bytes, and ends the
/// launch where they are used.
TrackedPoison trackPoison(gpu::GPUModuleOp module, MatrixPrograms &programs,
                          EmulatorCalls &calls);

/// Follows the registers that wgmma has in flight, and announces where other
/// instructions read them.
void trackAccumulators(gpu::GPUModuleOp module, const MatrixPrograms &programs,
                       EmulatorCalls &calls);

/// Flags of `kvcacheEmulatorAccess` for the order that an atomic access or a
/// fence makes, in a scope of the chip.
uint32_t getOrderFlags(LLVM::AtomicOrdering ordering,
                       std::optional<StringRef> scope);

/// Makes errors of kernels from what would stop the process, or never end: a
/// division without a result, code that is never reached, loops.
void addGuards(gpu::GPUModuleOp module, EmulatorCalls &calls);

/// Makes all variables of a known size once, where their function begins. A
/// loop's body ends the life of what it makes, which the lowering of loops does
/// not say: the frame of a thread would grow with each iteration. Where they
/// were made, their life begins.
void moveVariablesToEntry(gpu::GPUModuleOp module);

/// Makes an error from a stack that overflows.
void guardStacks(gpu::GPUModuleOp module, EmulatorCalls &calls);

/// The bytes of a module's variables and large values, of a thread. Fails if no
/// thread can have as many.
FailureOr<int64_t> getLocalBytes(gpu::GPUModuleOp module);

/// Leaves no bf16 in a module: its values become their bits, arithmetic on them
/// arithmetic on f32, rounded. A host may move bf16 through f32, which changes
/// NaNs.
LogicalResult lowerBFloat16(gpu::GPUModuleOp module);

/// A variable of a kernel in shared memory: see KVCacheSharedVariable.
struct SharedVariable {
  StringAttr name;
  int64_t offset, bytes, shift;
};

/// The shared memory of a kernel: see KVCacheEmulatedKernel.
struct KernelSharedMemory {
  int64_t staticBytes = 0, dynamicOffset = 0, dynamicShift = 0;
  /// The variables with a static size, then those in dynamic shared memory.
  SmallVector<SharedVariable, 0> variables;
  size_t numStatic = 0;

  ArrayRef<SharedVariable> getDynamic() const {
    return ArrayRef(variables).drop_front(numStatic);
  }
};

/// Where the shared variables of a module are in a block's shared memory.
class SharedLayout {
public:
  /// Puts red zones around variables, or none.
  SharedLayout(gpu::GPUModuleOp module, bool hasRedZones);

  /// Where the address of a variable with a size is.
  int64_t getPlace(StringRef variable) const { return places.lookup(variable); }
  const KernelSharedMemory &getKernel(StringRef name) const {
    return kernels.find(name)->second;
  }
  bool isKernel(StringRef function) const { return kernels.contains(function); }

private:
  void addVariable(LLVM::GlobalOp global, ArrayRef<KernelSharedMemory *> users);
  void addDynamic(LLVM::LLVMFuncOp kernel, KernelSharedMemory &memory,
                  LLVM::GlobalOp dynamic);

  int64_t redZoneBytes;
  llvm::StringMap<int64_t> places;
  llvm::StringMap<KernelSharedMemory> kernels;
};

/// Leaves no shared variable in a module, and no cast between their addresses
/// and numbers.
void lowerSharedMemory(gpu::GPUModuleOp module, const SharedLayout &layout,
                       EmulatorCalls &calls);

/// The facts about a kernel that are needed after it is a function of the host.
struct KernelFacts {
  StringAttr name;
  /// Bytes of each parameter, and whether it is passed by value in memory.
  SmallVector<int64_t> paramBytes;
  SmallVector<bool> isByValue;
  /// Whether a thread may change the memory that a parameter points to.
  SmallVector<bool> isChanged;
  /// Whether the kernel may write global memory through a parameter, or where
  /// that is unknown.
  SmallVector<int32_t, 0> isWritten;
  bool writesAnything = false;
  /// Whether it may let later launches begin (griddepcontrol).
  bool startsDependents = false;
  KernelSharedMemory shared;
  int64_t localBytes = 0;
  /// Zeros where any is right.
  std::array<int64_t, 3> requiredBlock{}, requiredCluster{};
  int64_t maxThreads = 1024;
  /// 0 if the kernel says nothing.
  int64_t maxClusterBlocks = 0;
  /// With which each thread begins; 0 if the kernel says nothing.
  int64_t registers = 0;
};

/// Finds out what memory kernels may write.
void findWrittenMemory(LLVM::LLVMFuncOp kernel, KernelFacts &facts);

SmallVector<KernelFacts, 0> getKernelFacts(gpu::GPUModuleOp module,
                                           const SharedLayout &layout,
                                           int64_t localBytes);

/// Replaces inline assembly that only orders the uses of registers
/// (`createRegisterFence`) by its operands.
void dissolveRegisterFences(gpu::GPUModuleOp module);

/// Gives every function of the module the thread that runs it as argument 0.
LogicalResult addThreads(gpu::GPUModuleOp module, EmulatorCalls &calls);

/// Moves the functions and variables of the lowered module to the host, and
/// makes the KVCacheEmulatedModule that describes it. Its warps need so many
/// registers of matrices.
LLVM::GlobalOp moveToHost(gpu::GPUModuleOp module,
                          ArrayRef<KernelFacts> kernels, int64_t numRegisters,
                          EmulatorCalls &calls);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_FAMILIES_H
