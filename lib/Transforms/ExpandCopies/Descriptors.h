//===- Descriptors.h - Descriptors that a kernel gets from its host *- C++
//-*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_DESCRIPTORS_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_DESCRIPTORS_H

#include "Choice.h"

namespace mlir::kvcache {

/// The computation of a view in a kernel, from nothing but its arguments: the
/// host can repeat it where it launches the kernel.
class HostView {
public:
  /// Null if the view takes more than arguments.
  static std::optional<HostView> find(Value view);

  /// The view on the host, where the kernel's arguments are `operands`.
  Value build(OpBuilder &builder, ValueRange operands) const;

  /// The view in terms of the kernel's arguments, for hosts that are not in the
  /// module: null if it takes more than a collection and a layer.
  DictionaryAttr describe(gpu::GPUFuncOp kernel) const;

private:
  explicit HostView(Value view) : view(view) {}

  Value view;
  /// What computes it, in order.
  SmallVector<Operation *> ops;
};

/// The descriptors that a kernel, and its clones for other chips, take after
/// their own arguments: all of them the same, in one order.
class KernelDescriptors {
public:
  /// `kernels` are a kernel and its clones, which are still alike but for their
  /// target.
  KernelDescriptors(ArrayRef<gpu::GPUFuncOp> kernels,
                    ArrayRef<gpu::LaunchFuncOp> launches)
      : kernels(kernels), launches(launches) {}

  /// The descriptors that can be had of `view`, a value in one of the kernels.
  Makeable getMakeable(Value view) const;
  /// Asks for a descriptor of `view`, which copy number `copy` of every kernel
  /// is of.
  void request(unsigned copy, const DescriptorRequest &request, Value view);
  /// Adds arguments to the kernels, and operands to the launches.
  void materialize();
  /// The argument of `kernel` that was asked for in the same words.
  Value lookup(gpu::GPUFuncOp kernel, unsigned copy,
               const DescriptorRequest &request) const;

private:
  struct Entry {
    unsigned copy;
    DescriptorRequest request;
    /// In the kernel that asked first.
    HostView view;
    TMATileType type;
    tma::OpenTensorMap map;
  };

  std::optional<unsigned> find(unsigned copy,
                               const DescriptorRequest &request) const;
  /// The attribute `kvcache.descriptor`: the view, and its geometry.
  static DictionaryAttr describe(gpu::GPUFuncOp kernel, const Entry &entry);
  void addOperands(gpu::LaunchFuncOp launch) const;
  void addArguments(gpu::GPUFuncOp kernel);

  SmallVector<gpu::GPUFuncOp> kernels;
  SmallVector<gpu::LaunchFuncOp> launches;
  SmallVector<Entry, 0> entries;
  /// The argument that holds the first descriptor, by kernel.
  DenseMap<Operation *, unsigned> firstArgument;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_DESCRIPTORS_H
