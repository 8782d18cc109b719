//===- Descriptors.cpp - Descriptors that a kernel gets from its host
//--------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptors.h"

#include "kvcache/IR/CacheShape.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// HostView
//===----------------------------------------------------------------------===//

/// Whether the host computes the same with this op.
static bool runsAnywhere(Operation *op) {
  return op->getNumRegions() == 0 &&
             isa<PagedCollectionOp, ContinuousCollectionOp, PagedViewOp,
                 ContinuousViewOp, memref::CastOp, memref::DimOp,
                 memref::ReinterpretCastOp, memref::SubViewOp>(op) ||
         (isa<arith::ArithDialect>(op->getDialect()) && isPure(op));
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

/// Adds `collection` or the `blocks` that it is made of.
static bool describeCollection(gpu::GPUFuncOp kernel, Value collection,
                               NamedAttrList &description) {
  if (Attribute name = getArgumentName(kernel, collection)) {
    description.set("collection", name);
    return true;
  }
  Value blocks;
  if (auto paged = collection.getDefiningOp<PagedCollectionOp>())
    blocks = paged.getBlocks();
  else if (auto whole = collection.getDefiningOp<ContinuousCollectionOp>())
    blocks = whole.getBlocks();
  Attribute name = blocks ? getArgumentName(kernel, blocks) : Attribute();
  if (name)
    description.set("blocks", name);
  return bool(name);
}

template <typename OpTy>
static DictionaryAttr describeView(gpu::GPUFuncOp kernel, OpTy view) {
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
  if (auto paged = view.getDefiningOp<PagedViewOp>())
    return describeView(kernel, paged);
  if (auto continuous = view.getDefiningOp<ContinuousViewOp>())
    return describeView(kernel, continuous);
  return {};
}

//===----------------------------------------------------------------------===//
// KernelDescriptors
//===----------------------------------------------------------------------===//

/// Whether it is known at a launch that the pages of the view do not lie whole
/// rows apart.
static bool hasOddDistance(const HostView &view, gpu::LaunchFuncOp launch) {
  OpBuilder builder(launch);
  Operation *before = launch->getPrevNode();
  Value onHost = view.build(builder, launch.getKernelOperands());
  bool isOdd = arePagesWholeRowsApart(onHost) == false;
  while (launch->getPrevNode() != before)
    launch->getPrevNode()->erase();
  return isOdd;
}

Makeable KernelDescriptors::getMakeable(Value view) const {
  std::optional<HostView> found = HostView::find(view);
  if (!found)
    return Makeable::None;
  // A host elsewhere has only our description.
  auto kernel = view.getParentRegion()->getParentOfType<gpu::GPUFuncOp>();
  if (!kernel.isKernel() || (launches.empty() && !found->describe(kernel)))
    return Makeable::None;
  bool isOdd = arePagesWholeRowsApart(view) == false ||
               llvm::any_of(launches, [&](gpu::LaunchFuncOp launch) {
                 return hasOddDistance(*found, launch);
               });
  return isOdd ? Makeable::WithinPages : Makeable::Any;
}

std::optional<unsigned>
KernelDescriptors::find(unsigned copy, const DescriptorRequest &request) const {
  for (auto [index, entry] : llvm::enumerate(entries))
    if (entry.copy == copy && entry.request == request)
      return index;
  return std::nullopt;
}

/// An op that makes the descriptor that is asked for, of this type.
static TensorMapOpInterface createDescriptor(OpBuilder &builder, Location loc,
                                             const DescriptorRequest &request,
                                             Value view, TMATileType type) {
  OperationState state(loc, request.opName, view, TypeRange(type),
                       request.attributes.getValue());
  return cast<TensorMapOpInterface>(builder.create(state));
}

/// The type and the geometry of the descriptor that is asked for.
static std::pair<TMATileType, tma::OpenTensorMap>
inspect(const DescriptorRequest &request, Value view) {
  // Interfaces tell of ops only: this one is in no block, and its result only
  // has its type once the geometry is known.
  OpBuilder builder(view.getContext());
  TensorMapOpInterface op = createDescriptor(
      builder, view.getLoc(), request, view,
      TMATileType::get(view.getContext(), /*box=*/{16}, builder.getI8Type(),
                       Swizzle::None, /*l2Promotion=*/0));
  SmallVector<Type> types;
  LogicalResult inferred =
      cast<InferTypeOpInterface>(op.getOperation())
          .inferReturnTypes(view.getContext(), view.getLoc(), view,
                            op->getDiscardableAttrDictionary(),
                            op->getPropertiesStorage(), op->getRegions(),
                            types);
  assert(succeeded(inferred) && "the request breaks no limit");
  (void)inferred;
  tma::OpenTensorMap map = op.getTensorMap();
  op->erase();
  return {cast<TMATileType>(types.front()), map};
}

void KernelDescriptors::request(unsigned copy, const DescriptorRequest &request,
                                Value view) {
  if (find(copy, request))
    return;
  auto [type, map] = inspect(request, view);
  entries.push_back({copy, request, *HostView::find(view), type, map});
}

void KernelDescriptors::addOperands(gpu::LaunchFuncOp launch) const {
  OpBuilder builder(launch);
  SmallVector<Value> descriptors;
  for (const Entry &entry : entries) {
    Value view = entry.view.build(builder, launch.getKernelOperands());
    descriptors.push_back(createDescriptor(builder, launch.getLoc(),
                                           entry.request, view, entry.type)
                              .getDescriptor());
  }
  launch.getKernelOperandsMutable().append(descriptors);
}

/// A size for hosts elsewhere: a number, or one of the view's extents.
static Attribute describeSize(Builder &builder, tma::Size size) {
  if (!size.of)
    return builder.getI64IntegerAttr(size.constant);
  std::string text = "page_stride";
  if (size.of == &tma::Extents::rows)
    text = "rows";
  else if (size.of == &tma::Extents::pages)
    text = "pages";
  else if (size.of == &tma::Extents::headStride)
    text = "head_stride";
  if (size.constant)
    text += " + " + std::to_string(size.constant);
  return builder.getStringAttr(text);
}

DictionaryAttr KernelDescriptors::describe(gpu::GPUFuncOp kernel,
                                           const Entry &entry) {
  Builder builder(kernel.getContext());
  NamedAttrList description(entry.view.describe(kernel));
  StringRef kind = entry.request.opName;
  kind.consume_front("kvcache.create_");
  kind.consume_back("_tma_tile");
  description.set("kind", builder.getStringAttr(kind));
  SmallVector<Attribute> sizes, strides;
  for (int dim = 0; dim < entry.map.rank; ++dim) {
    sizes.push_back(describeSize(builder, entry.map.dims[dim]));
    strides.push_back(describeSize(builder, entry.map.strides[dim]));
  }
  description.set("sizes", builder.getArrayAttr(sizes));
  description.set("strides", builder.getArrayAttr(strides));
  description.set("offset", builder.getI64IntegerAttr(entry.map.offset));
  return description.getDictionary(kernel.getContext());
}

void KernelDescriptors::addArguments(gpu::GPUFuncOp kernel) {
  Builder builder(kernel.getContext());
  firstArgument[kernel] = kernel.getFunctionType().getNumInputs();
  for (auto [index, entry] : llvm::enumerate(entries)) {
    unsigned argument = kernel.getFunctionType().getNumInputs();
    NamedAttrList attributes;
    attributes.set(KVCacheDialect::kArgNameAttr,
                   builder.getStringAttr("descriptor" + Twine(index)));
    attributes.set(KVCacheDialect::kDescriptorAttr, describe(kernel, entry));
    (void)kernel.insertArgument(argument, entry.type,
                                attributes.getDictionary(kernel.getContext()),
                                kernel.getLoc());
  }
}

void KernelDescriptors::materialize() {
  if (entries.empty())
    return;
  // Launches first: they repeat what kernels compute from their arguments.
  for (gpu::LaunchFuncOp launch : launches)
    addOperands(launch);
  for (gpu::GPUFuncOp kernel : kernels)
    addArguments(kernel);
}

Value KernelDescriptors::lookup(gpu::GPUFuncOp kernel, unsigned copy,
                                const DescriptorRequest &request) const {
  return kernel.getArgument(firstArgument.lookup(kernel) +
                            *find(copy, request));
}
