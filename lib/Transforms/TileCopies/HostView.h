//===- HostView.h - Views that a kernel's host can compute ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_HOSTVIEW_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_HOSTVIEW_H

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// The computation of a view in a kernel, from nothing but its arguments: the
/// host can repeat it where it launches the kernel.
class HostView {
public:
  /// Null if the view depends on more than arguments of a kernel.
  static std::optional<HostView> find(Value view);

  /// The view on the host, where the kernel's arguments are `operands`.
  Value build(OpBuilder &builder, ValueRange operands) const;

  /// The view in terms of the kernel's arguments, for hosts that are not in the
  /// module. Null if the view is more than a layer of an argument.
  DictionaryAttr describe(gpu::GPUFuncOp kernel) const;

  /// Whether the pages of the view are known not to lie a whole number of rows
  /// apart, in the kernel or at one of its launches.
  bool hasOddDistance(ArrayRef<gpu::LaunchFuncOp> launches) const;

  /// Whether this is the same computation, in the same kernel or another.
  bool isSameAs(const HostView &other) const;

  Value getView() const { return view; }

private:
  explicit HostView(Value view) : view(view) {}

  Value view;
  /// The ops that compute it, in order.
  SmallVector<Operation *> ops;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_HOSTVIEW_H
