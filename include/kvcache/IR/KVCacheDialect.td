//===- KVCacheDialect.td - The kvcache dialect -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHEDIALECT_TD
#define KVCACHE_IR_KVCACHEDIALECT_TD

include "mlir/IR/OpBase.td"

def KVCache_Dialect : Dialect {
  let name = "kvcache";
  let cppNamespace = "::mlir::kvcache";
  let summary = "Reads and writes of key-value caches";
  let description = [{
    The `kvcache` dialect describes the accesses of a kernel to the key-value
    cache of a transformer. The cache is paged or continuous, plain or
    quantized. A *collection* holds the cache of all layers. A *view* holds the
    keys or values of one layer; it is a four-dimensional window
    `[page, row in page, head, element]`. Ops address a view by `(b, h, t, d)`:
    sequence in the batch, head, token in the sequence, and element of the head.

    Collections and views are bundles of SSA values. They expand 1:N when
    `convert-kvcache-to-memref` lowers the dialect to memref, vector, arith and
    scf, also across functions, calls, kernels, regions and branches.

    A program must not write lookup tables and cache lengths while a value built
    on them is in use, because ops that only read them have no memory effects.
  }];

  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect"
  ];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;

  let extraClassDeclaration = [{
    /// A discardable string attribute: the name of a function or kernel
    /// argument. Kernel parameters take their names from it.
    static constexpr ::llvm::StringLiteral kArgNameAttr{"kvcache.name"};
    /// The parameters of a flattened kernel: an array of dictionaries with
    /// the entries `name` and `type`, in order.
    static constexpr ::llvm::StringLiteral kParametersAttr{
        "kvcache.parameters"};

    /// On a descriptor argument of a kernel: the view, of another argument,
    /// that it describes. Hosts outside of the module need it to launch the kernel.
    static constexpr ::llvm::StringLiteral kDescriptorAttr{
        "kvcache.descriptor"};

    /// On a gpu.module cloned for another target: the name of the original.
    static constexpr ::llvm::StringLiteral kCloneOfAttr{"kvcache.clone_of"};

    /// An i64 of a kernel whose static shared memory became dynamic: the bytes
    /// of dynamic shared memory that a launch must pass.
    static constexpr ::llvm::StringLiteral kDynamicSharedMemoryAttr{
        "kvcache.dynamic_shared_memory"};

    /// A unit attribute of a launch: its blocks may start before earlier
    /// kernels of the stream have ended. Of `nvvm.griddepcontrol` that an
    /// expansion wrote: its launches may be so.
    static constexpr ::llvm::StringLiteral kProgrammaticAttr{
        "kvcache.programmatic"};

    /// On an `scf.for` over tiles: how its products overlap, a ScheduleAttr.
    static constexpr ::llvm::StringLiteral kScheduleAttr{"kvcache.schedule"};

    /// A property of an object of a gpu.binary that describes its kernels: one
    /// dictionary per kernel, with `parameters`, `block_size` and
    /// `dynamic_shared_memory`.
    static constexpr ::llvm::StringLiteral kKernelsProperty{"kvcache.kernels"};

    /// A property of an object of a gpu.binary for the emulator: the constant
    /// that describes its functions.
    static constexpr ::llvm::StringLiteral kEmulatedAttr{"kvcache.emulated"};

    void registerAttributes();
    void registerTypes();
  }];
}

#endif // KVCACHE_IR_KVCACHEDIALECT_TD
