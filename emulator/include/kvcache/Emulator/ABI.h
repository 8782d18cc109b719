//===- ABI.h - Between compiled kernels and the emulator --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `convert-nvvm-to-emulator` turns the kernels of a gpu.module into functions
// of the host, and the module's KVCacheBinary into one whose image is a
// KVCacheEmulatedModule. Every function gets the thread that runs it as its
// first argument; an instruction of the chip becomes a call of a function in
// these headers:
//
//   ABI.h              kernels, threads, accesses of memory
//   Synchronization.h  mbarriers, fences
//   Barriers.h         barriers of a block
//   Clusters.h         the barrier of a cluster, addresses in other blocks
//   Warps.h            shuffles, votes and the like
//   AsyncCopies.h      cp.async, tensor and bulk copies
//   Matrices.h         ldmatrix, stmatrix, mma
//   TensorMemory.h     tcgen05
//   Math.h             conversions of floats, approximations
//   Warpgroups.h       wgmma
//   Control.h          printing, assertions, traps, clocks
//   Poison.h           uninitialized values
//
// Pointers of all address spaces are addresses of the host. A function whose
// operands break a rule of the instruction ends the launch with an error, and
// does not return.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_ABI_H
#define KVCACHE_EMULATOR_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// An instruction in the source.
typedef struct KVCacheSite {
  /// Such as "nvvm.mbarrier.arrive".
  const char *op;
  /// Such as "gather.mlir:12:3"; "an unknown place" where the source doesn't
  /// say.
  const char *location;
} KVCacheSite;

/// The cluster and the place of a thread block in it: the special registers
/// %cluster_ctaid, %cluster_nctaid, %clusterid, %nclusterid, %cluster_ctarank
/// and %cluster_nctarank.
typedef struct KVCacheCluster {
  uint32_t ctaid[3], nctaid[3], clusterid[3], nclusterid[3];
  uint32_t rank, numBlocks;
  /// The shared memory of the cluster: as numbers, addresses in it count from
  /// here.
  char *shared;
} KVCacheCluster;

/// The thread that runs a kernel. Compiled code reads it in place of special
/// registers.
typedef struct KVCacheThread {
  uint32_t tid[3], ntid[3], ctaid[3], nctaid[3];
  /// The index of the thread in its warp, and of the warp in its block.
  uint32_t lane, warp;
  /// The block's shared memory, aligned to 1024 bytes. Variables have constant
  /// offsets from here; dynamic shared memory is at `dynamicShared`.
  char *shared, *dynamicShared;
  /// Bytes of shared memory, of variables and dynamic, without red zones.
  uint32_t sharedBytes, dynamicSharedBytes;
  /// The operands and results of matrix instructions of the warp (Matrices.h).
  char *registers;
  /// How often the thread has gone back in a loop (`kvcacheEmulatorManyLoops`).
  uint32_t numLoops;
  /// After an access with KVCacheAccessPoisons: the origin of uninitialized
  /// bytes, or 0, and 0xff for each of them, in the first KVCachePoisonBytes
  /// (Poison.h). At an instruction by which lanes exchange values (Warps.h):
  /// the origin and the poisoned bits of the lane's own value before it, and of
  /// the result after it.
  uint32_t origin, exchangedPoison;
  const char *poison;
  const KVCacheCluster *cluster;
  /// How often the thread has executed wgmma.fence.
  uint32_t numWgmmaFences;
} KVCacheThread;

/// A variable in the shared memory of a block.
typedef struct KVCacheSharedVariable {
  const char *name;
  /// Where it begins, and its size; dynamic shared memory ends with the block's
  /// shared memory, whatever its size is here.
  int64_t offset, bytes;
  /// Compiled code has the variable at `offset + shift`: with
  /// `KVCacheRedZoneBytes` before each variable where accesses are
  /// checked, which leaves addresses modulo 1024 as they are, else 0.
  int64_t shift;
} KVCacheSharedVariable;

/// Around each variable of shared memory, where accesses are checked.
enum { KVCacheRedZoneBytes = 1024 };

typedef struct KVCacheEmulatedKernel {
  const char *name;
  /// Runs one thread. `params` holds the addresses of the parameters.
  void (*entry)(KVCacheThread *thread, void **params);
  const int64_t *paramBytes;
  int64_t numParams;
  /// Bytes of the shared variables, which begin at a block's shared memory;
  /// dynamic shared memory follows them, at `dynamicSharedOffset`.
  int64_t sharedBytes, dynamicSharedOffset;
  /// In the order of their offsets. The first of dynamic shared memory begins
  /// at `dynamicSharedOffset`, and is shifted by `dynamicSharedShift`.
  const KVCacheSharedVariable *sharedVariables;
  int64_t numSharedVariables, dynamicSharedShift;
  /// Bytes of the variables of a thread.
  int64_t localBytes;
  /// The sides that a block must have, or zeros; the threads that it may have.
  int64_t requiredBlock[3], maxThreads;
  /// The sides that a cluster must have, or zeros; the blocks that it may have,
  /// or 0.
  int64_t requiredCluster[3], maxClusterBlocks;
  /// Whether the kernel may write the memory that each parameter points to, or
  /// that its tensor map is of; whether it may write any other memory.
  const int32_t *isParamChanged;
  int64_t changesAnything;
  /// Whether it may let later launches begin (griddepcontrol).
  int64_t startsDependents;
  /// The registers with which each thread begins, or 0.
  int64_t registers;
  /// The kernel itself.
  KVCacheSite site;
} KVCacheEmulatedKernel;

/// A variable of the module in global or constant memory.
typedef struct KVCacheEmulatedGlobal {
  const char *name;
  void *address;
  int64_t bytes;
  int32_t isConstant, isInitialized;
} KVCacheEmulatedGlobal;

typedef struct KVCacheEmulatedModule {
  const KVCacheEmulatedKernel *kernels;
  int64_t numKernels;
  const KVCacheEmulatedGlobal *globals;
  int64_t numGlobals;
  /// Bytes of shared memory that a block can have on the chip, and whether it
  /// has clusters.
  int64_t maxSharedBytes, hasClusters;
  /// Whether accesses are announced, to be checked, and to be counted.
  int32_t isSanitized, isMetered;
  /// The most that a program of matrix instructions has (Matrices.h).
  int64_t numRegisters;
  /// Whether threads of a block may store equal values to the same place of
  /// shared memory, without an order.
  int64_t mayRewrite;
} KVCacheEmulatedModule;

/// The kinds of access, in `flags`.
enum {
  KVCacheAccessRead = 1,
  KVCacheAccessWrite = 2,
  /// Read and written at once, or ordered in itself: it never races with
  /// another atomic access.
  KVCacheAccessAtomic = 4,
  /// An access to memory that no thread writes while the kernel runs
  /// (ld.global.nc).
  KVCacheAccessInvariant = 8,
  /// How an atomic access orders others, or a fence does.
  KVCacheAccessAcquire = 16,
  KVCacheAccessRelease = 32,
  /// Towards all threads of the device, not only those of the block.
  KVCacheAccessDevice = 64,
  /// Like an atomic access that orders none. PTX ISA, "ld.volatile".
  KVCacheAccessVolatile = 128,
  /// Uninitialized bytes may be read: the thread's `poison` has
  /// which. Without it, that is an error.
  KVCacheAccessPoisons = 256,
  /// An access to a declared variable.
  KVCacheAccessDeclared = 512,
  /// By a copy: of a thread's variables, `kvcacheEmulatorCopyVariable`
  /// returns which bytes are uninitialized.
  KVCacheAccessCopied = 1024,
  /// Like KVCacheAccessDevice, towards all threads of the cluster.
  KVCacheAccessCluster = 2048
};

/// The bytes of an access that the thread's `poison` has.
enum { KVCachePoisonBytes = 64 };

/// Announces that the thread is about to access `bytes` at `pointer`, in any
/// memory, in one instruction that requires the pointer to be a multiple of
/// `alignment`. Only in modules that are sanitized or metered.
void kvcacheEmulatorAccess(KVCacheThread *thread, const KVCacheSite *site,
                           const void *pointer, int64_t bytes,
                           int64_t alignment, uint32_t flags);

//===--- The stack of a thread ---===//

/// Ends the launch unless the stack of the thread has room for so many elements
/// of `bytes`.
void kvcacheEmulatorReserveStack(KVCacheThread *thread, const KVCacheSite *site,
                                 int64_t count, int64_t bytes);

/// Lets the thread access a variable of its own through any pointer, as long as
/// the function runs that has made it, or until it is declared again. It
/// is uninitialized, unless `isWritten`. Only in modules that are sanitized,
/// like what follows.
void kvcacheEmulatorDeclareVariable(KVCacheThread *thread,
                                    const KVCacheSite *site,
                                    const void *pointer, int64_t bytes,
                                    int32_t isWritten);

/// An announced copy carries unwritten bytes from one variable to another. Ends
/// the launch if other memory gets them.
void kvcacheEmulatorCopyVariable(KVCacheThread *thread, const KVCacheSite *site,
                                 const void *to, const void *from,
                                 int64_t bytes);

/// Announces an access of the variable at `variable` of `size` bytes.
void kvcacheEmulatorAccessVariable(KVCacheThread *thread,
                                   const KVCacheSite *site, const void *pointer,
                                   int64_t bytes, const void *variable,
                                   int64_t size, uint32_t flags);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_ABI_H
