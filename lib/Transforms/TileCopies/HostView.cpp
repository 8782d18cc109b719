//===- HostView.cpp - Views that a kernel's host can compute --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostView.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

/// Whether the op computes the same on the host.
static bool runsAnywhere(Operation *op) {
  return op->getNumRegions() == 0 &&
             isa<BundleOpInterface, LayerViewOpInterface, memref::CastOp,
                 memref::DimOp, memref::ReinterpretCastOp, memref::SubViewOp>(
                 op) ||
         (isa_and_present<arith::ArithDialect>(op->getDialect()) && isPure(op));
}

std::optional<HostView> HostView::find(Value view) {
  // Longer computations are not those of a view.
  constexpr size_t maxOps = 64;
  HostView found(view);
  SmallVector<Value> worklist = {view};
  llvm::SetVector<Operation *> ops;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto kernel =
          dyn_cast<gpu::GPUFuncOp>(argument.getOwner()->getParentOp());
      if (!kernel || !argument.getOwner()->isEntryBlock() ||
          argument.getArgNumber() >= kernel.getFunctionType().getNumInputs())
        return std::nullopt;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!runsAnywhere(op))
      return std::nullopt;
    if (ops.insert(op))
      llvm::append_range(worklist, op->getOperands());
    if (ops.size() > maxOps)
      return std::nullopt;
  }
  llvm::SetVector<Operation *> sorted = topologicalSort(ops);
  found.ops.assign(sorted.begin(), sorted.end());
  return found;
}

Value HostView::build(OpBuilder &builder, ValueRange operands) const {
  IRMapping mapping;
  auto mapArgument = [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      mapping.map(value, operands[argument.getArgNumber()]);
  };
  mapArgument(view);
  for (Operation *op : ops) {
    llvm::for_each(op->getOperands(), mapArgument);
    builder.clone(*op, mapping);
  }
  return mapping.lookup(view);
}

namespace {

/// Compares the computations of values, each pair of values once.
class Comparison {
public:
  bool areSame(Value lhs, Value rhs) {
    auto [known, isNew] = found.try_emplace({lhs, rhs}, true);
    if (!isNew)
      return known->second;
    bool result = compare(lhs, rhs);
    found[{lhs, rhs}] = result;
    return result;
  }

private:
  bool compare(Value lhs, Value rhs) {
    if (auto argument = dyn_cast<BlockArgument>(lhs)) {
      auto other = dyn_cast<BlockArgument>(rhs);
      return other && argument.getArgNumber() == other.getArgNumber();
    }
    auto result = cast<OpResult>(lhs);
    auto other = dyn_cast<OpResult>(rhs);
    return other && result.getResultNumber() == other.getResultNumber() &&
           OperationEquivalence::isEquivalentTo(
               result.getOwner(), other.getOwner(),
               [&](Value lhs, Value rhs) { return success(areSame(lhs, rhs)); },
               /*markEquivalent=*/nullptr,
               OperationEquivalence::IgnoreLocations);
  }

  DenseMap<std::pair<Value, Value>, bool> found;
};

} // namespace

bool HostView::isSameAs(const HostView &other) const {
  return Comparison().areSame(view, other.view);
}

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

/// The name of a kernel's argument, null for any other value.
static Attribute getArgumentName(gpu::GPUFuncOp kernel, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return {};
  unsigned index = argument.getArgNumber();
  if (auto name = kernel.getArgAttrOfType<StringAttr>(
          index, KVCacheDialect::kArgNameAttr))
    return name;
  return StringAttr::get(kernel.getContext(), "arg" + Twine(index));
}

/// A kernel's argument by name, or a constant.
static Attribute describeIndex(gpu::GPUFuncOp kernel, Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return Builder(kernel.getContext()).getI64IntegerAttr(*constant);
  return getArgumentName(kernel, value);
}

/// Adds `blocks`, of which an op makes `cache`.
static bool describeBlocks(gpu::GPUFuncOp kernel, Value cache,
                           NamedAttrList &description) {
  auto bundle = cache.getDefiningOp<BundleOpInterface>();
  Attribute name =
      bundle ? getArgumentName(kernel, bundle.getBlocks()) : Attribute();
  if (name)
    description.set("blocks", name);
  return bool(name);
}

/// Adds `collection` or the `blocks` that it is made of.
static bool describeCollection(gpu::GPUFuncOp kernel, Value collection,
                               NamedAttrList &description) {
  if (Attribute name = getArgumentName(kernel, collection)) {
    description.set("collection", name);
    return true;
  }
  return describeBlocks(kernel, collection, description);
}

static DictionaryAttr describeView(gpu::GPUFuncOp kernel,
                                   LayerViewOpInterface view) {
  NamedAttrList description;
  Attribute layer = describeIndex(kernel, view.getLayer());
  if (!layer || !describeCollection(kernel, view.getCollection(), description))
    return {};
  description.set("role", StringAttr::get(kernel.getContext(),
                                          stringifyRole(view.getRole())));
  description.set("layer", layer);
  return description.getDictionary(kernel.getContext());
}

DictionaryAttr HostView::describe(gpu::GPUFuncOp kernel) const {
  Builder builder(kernel.getContext());
  if (Attribute name = getArgumentName(kernel, view))
    return builder.getDictionaryAttr(builder.getNamedAttr("cache", name));
  if (auto layer = view.getDefiningOp<LayerViewOpInterface>())
    return describeView(kernel, layer);
  // A view of one layer's tensor.
  NamedAttrList description;
  if (describeBlocks(kernel, view, description))
    return description.getDictionary(kernel.getContext());
  return {};
}

//===----------------------------------------------------------------------===//
// Distance of pages
//===----------------------------------------------------------------------===//

/// Whether the pages of the view are known at a launch not to lie a whole
/// number of rows apart.
static bool hasOddDistanceAt(const HostView &view, gpu::LaunchFuncOp launch) {
  OpBuilder builder(launch);
  Operation *before = launch->getPrevNode();
  Value onHost = view.build(builder, launch.getKernelOperands());
  bool isOdd = arePagesWholeRowsApart(onHost) == false;
  while (launch->getPrevNode() != before)
    launch->getPrevNode()->erase();
  return isOdd;
}

bool HostView::hasOddDistance(ArrayRef<gpu::LaunchFuncOp> launches) const {
  return arePagesWholeRowsApart(view) == false ||
         llvm::any_of(launches, [&](gpu::LaunchFuncOp launch) {
           return hasOddDistanceAt(*this, launch);
         });
}
