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
    The `kvcache` dialect says what a kernel does with the key-value cache of a
    transformer: paged or continuous, plain or quantized. A *collection* holds
    the cache of all layers; a *view* of it is one layer's keys or values, a
    four-dimensional window `[page, row in page, head, element]`. Ops address a
    view by `(b, h, t, d)`: sequence in the batch, head, token in the sequence,
    and element of the head.

    Collections and views are bundles of SSA values. They expand 1:N when
    `convert-kvcache-to-memref` lowers the dialect to memref, vector, arith and
    scf, also across functions, calls, kernels, regions and branches.

    Lookup tables and cache lengths must not be written while a value built on
    them is in use: the ops that only read them have no memory effects.
  }];

  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect"
  ];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasRegionArgAttrVerify = 1;

  let extraClassDeclaration = [{
    /// The name of a function or kernel argument, a discardable string
    /// attribute: kernel parameters are named after it.
    static constexpr ::llvm::StringLiteral kArgNameAttr{"kvcache.name"};
    /// The parameters of a flattened kernel: an array of dictionaries with
    /// the entries `name` and `type`, in order.
    static constexpr ::llvm::StringLiteral kParametersAttr{
        "kvcache.parameters"};

    /// On a kernel's argument: what view of which other argument the descriptor
    /// is of, for hosts that launch the kernel from elsewhere.
    static constexpr ::llvm::StringLiteral kDescriptorAttr{
        "kvcache.descriptor"};

    /// On a gpu.module cloned for another target: the module it is a clone of.
    static constexpr ::llvm::StringLiteral kCloneOfAttr{"kvcache.clone_of"};

    /// A property of an object of a gpu.binary for the emulator: the constant
    /// that describes its functions.
    static constexpr ::llvm::StringLiteral kEmulatedAttr{"kvcache.emulated"};

    void registerAttributes();
    void registerTypes();
  }];
}

#endif // KVCACHE_IR_KVCACHEDIALECT_TD
