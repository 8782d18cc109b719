//===- MaterializeDescriptors.cpp - Descriptors as kernel arguments -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice.h"
#include "Geometry.h"
#include "HostView.h"

#include "kvcache/GPU/KernelLaunches.h"
#include "kvcache/IR/CopyOps.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_MATERIALIZEDESCRIPTORS
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

/// Creates the op that makes the requested descriptor, of type `type`.
static TensorMapOpInterface createDescriptor(OpBuilder &builder, Location loc,
                                             const DescriptorRequest &request,
                                             Value view, TMATileType type) {
  OperationState state(loc, request.opName, view, TypeRange(type),
                       request.attributes.getValue());
  return cast<TensorMapOpInterface>(builder.create(state));
}

/// The type and the geometry of the requested descriptor.
static std::pair<TMATileType, tma::OpenTensorMap>
inspect(const DescriptorRequest &request, Value view) {
  // The op interface needs an op: this one is in no block, and its result gets
  // its type when the geometry is known.
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

/// A size for hosts elsewhere: a number, or an extent of the view.
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
  if (size.divisor > 1)
    text += " / " + std::to_string(size.divisor);
  if (size.constant)
    text += " + " + std::to_string(size.constant);
  return builder.getStringAttr(text);
}

namespace {

/// The descriptors that a kernel and its clones for other chips take after
/// their own arguments: all of them take the same, in one order.
class KernelDescriptors {
public:
  explicit KernelDescriptors(ArrayRef<gpu::LaunchFuncOp> launches)
      : launches(launches) {}

  void addKernel(gpu::GPUFuncOp kernel) { kernels.push_back(kernel); }

  /// Gives the copy, which is in one of the kernels, a descriptor.
  void request(TileCopyOpInterface copy);

  /// Adds arguments to the kernels, and operands to the launches and copies.
  void materialize();

  ArrayRef<gpu::LaunchFuncOp> getLaunches() const { return launches; }
  size_t getNumDescriptors() const { return entries.size(); }

private:
  struct Entry {
    DescriptorRequest request;
    /// In the kernel that requested it first.
    HostView view;
    TMATileType type;
    tma::OpenTensorMap map;
    SmallVector<TileCopyOpInterface> copies;
    /// Copies whose boxes without a valid row are those of this descriptor.
    SmallVector<AsyncLoadTileOp> zeros;
  };
  /// The descriptor for a request, of the cache that a copy reads.
  Entry &find(const DescriptorRequest &request, TileCopyOpInterface copy);

  /// The attribute `kvcache.descriptor`: the view, and its geometry.
  static DictionaryAttr describe(gpu::GPUFuncOp kernel, const Entry &entry);
  void addOperands(gpu::LaunchFuncOp launch) const;
  void addArguments(gpu::GPUFuncOp kernel);

  SmallVector<gpu::GPUFuncOp> kernels;
  ArrayRef<gpu::LaunchFuncOp> launches;
  SmallVector<Entry, 0> entries;
  /// The copies some of whose boxes may have no valid row.
  SmallVector<AsyncLoadTileOp> partial;
};

} // namespace

KernelDescriptors::Entry &
KernelDescriptors::find(const DescriptorRequest &request,
                        TileCopyOpInterface copy) {
  HostView view = *HostView::find(copy.getAccessedCache());
  for (Entry &entry : entries)
    if (entry.request == request && entry.view.isSameAs(view))
      return entry;
  auto [type, map] = inspect(request, view.getView());
  return entries.emplace_back(Entry{request, view, type, map, {}, {}});
}

void KernelDescriptors::request(TileCopyOpInterface copy) {
  find(requestDescriptor(copy), copy).copies.push_back(copy);
  if (requestZeros(copy))
    partial.push_back(cast<AsyncLoadTileOp>(copy));
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

/// The number of descriptors that a kernel takes already.
static unsigned countDescriptors(gpu::GPUFuncOp kernel) {
  unsigned count = 0;
  for (unsigned i = 0; i < kernel.getFunctionType().getNumInputs(); ++i)
    count += kernel.getArgAttr(i, KVCacheDialect::kDescriptorAttr) ? 1 : 0;
  return count;
}

void KernelDescriptors::addArguments(gpu::GPUFuncOp kernel) {
  Builder builder(kernel.getContext());
  unsigned number = countDescriptors(kernel);
  for (const Entry &entry : entries) {
    unsigned argument = kernel.getFunctionType().getNumInputs();
    NamedAttrList attributes;
    attributes.set(KVCacheDialect::kArgNameAttr,
                   builder.getStringAttr("descriptor" + Twine(number++)));
    attributes.set(KVCacheDialect::kDescriptorAttr, describe(kernel, entry));
    (void)kernel.insertArgument(argument, entry.type,
                                attributes.getDictionary(kernel.getContext()),
                                kernel.getLoc());
    for (TileCopyOpInterface copy : entry.copies)
      if (kernel->isAncestor(copy))
        copy.getDescriptorMutable().assign(kernel.getArgument(argument));
    for (AsyncLoadTileOp copy : entry.zeros)
      if (kernel->isAncestor(copy))
        copy.getZerosMutable().assign(kernel.getArgument(argument));
  }
}

void KernelDescriptors::materialize() {
  // After the descriptors of rows.
  for (AsyncLoadTileOp copy : partial)
    find(*requestZeros(copy), copy).zeros.push_back(copy);
  // Launches first: they repeat what kernels compute from their arguments.
  for (gpu::LaunchFuncOp launch : launches)
    addOperands(launch);
  for (gpu::GPUFuncOp kernel : kernels)
    addArguments(kernel);
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {

/// The names of the original `gpu.module` and of the kernel.
using KernelName = std::pair<StringAttr, StringAttr>;

KernelName getKernelName(gpu::GPUFuncOp kernel) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  auto original =
      module->getAttrOfType<FlatSymbolRefAttr>(KVCacheDialect::kCloneOfAttr);
  return {original ? original.getAttr() : module.getNameAttr(),
          kernel.getNameAttr()};
}

struct MaterializeDescriptors
    : kvcache::impl::MaterializeDescriptorsBase<MaterializeDescriptors> {
  void runOnOperation() override {
    KernelLaunches launches(getOperation());
    // A kernel and its clones for other chips take the same arguments.
    llvm::MapVector<KernelName, KernelDescriptors> kernels;
    bool hasFailed = false;
    getOperation().walk([&](FunctionOpInterface function) {
      CopySite site(function);
      KernelDescriptors *descriptors = nullptr;
      if (site.kernel) {
        auto [it, isNew] = kernels.try_emplace(
            getKernelName(site.kernel),
            KernelDescriptors(launches.lookup(site.kernel)));
        descriptors = &it->second;
        descriptors->addKernel(site.kernel);
      }
      function.walk([&](TileCopyOpInterface copy) {
        if (failed(request(copy, site, descriptors)))
          hasFailed = true;
      });
    });
    if (hasFailed)
      return signalPassFailure();
    if (kernels.empty())
      markAllAnalysesPreserved();
    for (auto &[name, descriptors] : kernels) {
      descriptors.materialize();
      numDescriptors += descriptors.getNumDescriptors();
    }
  }

private:
  /// `descriptors` are null outside of kernels with a target.
  static LogicalResult request(TileCopyOpInterface copy, const CopySite &site,
                               KernelDescriptors *descriptors) {
    std::optional<CopyKind> kind = copy.getCopy();
    if (!kind || !needsDescriptor(*kind) || copy.getDescriptor())
      return success();
    std::optional<std::string> obstacle = findObstacle(copy, *kind, site);
    if (!obstacle)
      obstacle = findDescriptorObstacle(copy, site, descriptors->getLaunches());
    if (obstacle)
      return copy->emitOpError("can't be copied by ")
             << stringifyCopyKind(*kind) << ": " << *obstacle;
    descriptors->request(copy);
    return success();
  }
};

} // namespace
