//===- FlattenKernelArgs.cpp - Flatten memref arguments of kernels --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/KernelLaunches.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Support/FindOps.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_FLATTENKERNELARGS
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

//===----------------------------------------------------------------------===//
// Aliases of the pointers of a kernel
//===----------------------------------------------------------------------===//

/// Whether a value of this type cannot contain a pointer.
bool isPlain(Type type) {
  return type.isIntOrIndexOrFloat() || isa<VectorType>(type);
}

/// Whether the kernel only reads the memory of `memref`.
bool isOnlyRead(Value memref) {
  return llvm::all_of(memref.getUsers(), [](Operation *user) {
    if (isa<ViewLikeOpInterface, memref::ExtractStridedMetadataOp>(user))
      return llvm::all_of(user->getResults(), [](Value result) {
        return isa<BaseMemRefType>(result.getType())
                   ? isOnlyRead(result)
                   : isPlain(result.getType());
      });
    // The kernel may write through the address.
    if (isa<memref::ExtractAlignedPointerAsIndexOp>(user))
      return false;
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    return effects && user->getNumRegions() == 0 &&
           !isa<BranchOpInterface, RegionBranchTerminatorOpInterface>(user) &&
           llvm::all_of(user->getResultTypes(), isPlain) &&
           (effects.onlyHasEffect<MemoryEffects::Read>() ||
            effects.hasNoEffect());
  });
}

/// Returns the buffer of a memref on the host if it is a function argument, an
/// allocation or a global, which can be distinguished; otherwise null.
Value getBuffer(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      memref = view.getViewSource();
    else if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op))
      memref = metadata.getSource();
    else if (isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp,
                 gpu::AllocOp>(op))
      return memref;
    else
      return {};
  }
  Block *block = cast<BlockArgument>(memref).getOwner();
  bool isArgument =
      block->isEntryBlock() && isa<FunctionOpInterface>(block->getParentOp());
  return isArgument ? memref : Value();
}

/// Finds the arguments of `kernel` that must not be `noalias`: a launch passes
/// their buffer to another argument, too, and the kernel writes one of the two.
llvm::SmallBitVector findOverlaps(gpu::GPUFuncOp kernel,
                                  ArrayRef<gpu::LaunchFuncOp> launches,
                                  const llvm::SmallBitVector &readOnly) {
  llvm::SmallBitVector overlaps(readOnly.size());
  for (gpu::LaunchFuncOp launch : launches) {
    auto operands = launch.getKernelOperands();
    for (size_t i = 0; i < operands.size(); ++i)
      for (size_t j = i + 1; j < operands.size(); ++j) {
        if (!isa<MemRefType>(operands[i].getType()) ||
            !isa<MemRefType>(operands[j].getType()) ||
            (readOnly[i] && readOnly[j]))
          continue;
        Value one = getBuffer(operands[i]), other = getBuffer(operands[j]);
        if (!one || !other || one == other)
          overlaps.set(i).set(j);
      }
  }
  return overlaps;
}

//===----------------------------------------------------------------------===//
// Parameters of a memref
//===----------------------------------------------------------------------===//

/// The parameters from which a kernel rebuilds a memref of this type.
struct MemRefParameters {
  explicit MemRefParameters(MemRefType type) : type(type) {
    if (failed(type.getStridesAndOffset(strides, offset)))
      return;
    isStrided = true;
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (ShapedType::isDynamic(size))
        openSizes.push_back(dim);
    // The strides of a packed layout follow from the sizes.
    if (!type.getLayout().isIdentity())
      for (auto [dim, stride] : llvm::enumerate(strides))
        if (ShapedType::isDynamic(stride))
          openStrides.push_back(dim);
  }

  MemRefType type;
  bool isStrided = false;
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  SmallVector<unsigned> openSizes, openStrides;
};

/// Appends the operands of a launch for one memref.
void appendOperands(OpBuilder &builder, Location loc, Value memref,
                    const MemRefParameters &parameters,
                    SmallVectorImpl<Value> &operands) {
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, memref);
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
  // The kernel adds a static offset.
  Value open = metadata.getOffset();
  if (!ShapedType::isDynamic(parameters.offset))
    open = arith::ConstantIndexOp::create(builder, loc, 0);
  Value bytes =
      arith::ConstantIndexOp::create(builder, loc, getElementBytes(memref));
  Value offset = arith::MulIOp::create(builder, loc, open, bytes);
  address = arith::AddIOp::create(builder, loc, address, offset);
  address =
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(), address);
  operands.push_back(LLVM::IntToPtrOp::create(
      builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), address));
  for (unsigned dim : parameters.openSizes)
    operands.push_back(metadata.getSizes()[dim]);
  for (unsigned dim : parameters.openStrides)
    operands.push_back(metadata.getStrides()[dim]);
}

/// Rebuilds the memref in the kernel from its parameters.
Value rebuild(OpBuilder &builder, Location loc, ValueRange values,
              const MemRefParameters &parameters) {
  size_t numSizes = parameters.openSizes.size();
  return buildMemRef(builder, loc, parameters.type, values.front(),
                     values.slice(1, numSizes),
                     values.drop_front(1 + numSizes));
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The parameters of a kernel after flattening.
class Signature {
public:
  Signature(gpu::GPUFuncOp kernel) : builder(kernel.getContext()) {}

  void add(Type type, StringRef name, DictionaryAttr attrs = {}) {
    types.push_back(type);
    this->attrs.push_back(attrs ? attrs : builder.getDictionaryAttr({}));
    descriptions.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("name", builder.getStringAttr(name)),
         builder.getNamedAttr("type", TypeAttr::get(type))}));
  }

  /// Adds the 128 bytes of a descriptor. `view` describes its view; if null,
  /// the author of the kernel creates the descriptor.
  void addDescriptor(TMATileType type, StringRef name, Attribute view) {
    types.push_back(LLVM::LLVMPointerType::get(builder.getContext()));
    attrs.push_back(builder.getDictionaryAttr({}));
    NamedAttrList description;
    description.set("name", builder.getStringAttr(name));
    description.set("type", TypeAttr::get(type));
    NamedAttrList geometry;
    if (auto known = cast_if_present<DictionaryAttr>(view))
      geometry = known;
    geometry.set("box", builder.getDenseI64ArrayAttr(type.getBox()));
    geometry.set("element_type", TypeAttr::get(type.getElementType()));
    geometry.set("swizzle",
                 builder.getStringAttr(stringifySwizzle(type.getSwizzle())));
    geometry.set("l2_promotion",
                 builder.getI64IntegerAttr(type.getL2Promotion()));
    description.set("descriptor", geometry.getDictionary(builder.getContext()));
    descriptions.push_back(description.getDictionary(builder.getContext()));
  }

  SmallVector<Type> types;
  SmallVector<Attribute> attrs;
  SmallVector<Attribute> descriptions;
  Builder builder;
};

struct FlattenKernelArgs
    : kvcache::impl::FlattenKernelArgsBase<FlattenKernelArgs> {
  using FlattenKernelArgsBase::FlattenKernelArgsBase;

  void runOnOperation() override {
    auto kernels = findOps<gpu::GPUFuncOp, FunctionOpInterface>(getOperation());
    llvm::erase_if(
        kernels, [](gpu::GPUFuncOp function) { return !function.isKernel(); });
    for (gpu::GPUFuncOp kernel : kernels)
      if (failed(checkArguments(kernel)))
        return signalPassFailure();

    KernelLaunches launches(getOperation());
    for (gpu::GPUFuncOp kernel : kernels) {
      flattenKernel(kernel, launches.lookup(kernel));
      alignAttributions(kernel);
    }
    for (auto launch :
         findOps<gpu::LaunchFuncOp, gpu::GPUModuleOp>(getOperation()))
      flattenLaunch(launch);
    dropNames();
  }

private:
  /// Whether a pointer from the host may be in the memory space of the type.
  static bool isGlobalMemory(MemRefType type) {
    Attribute space = type.getMemorySpace();
    if (auto number = dyn_cast_if_present<IntegerAttr>(space))
      return number.getInt() ==
             static_cast<int64_t>(NVVM::NVVMMemorySpace::Global);
    if (auto named = dyn_cast_if_present<gpu::AddressSpaceAttr>(space))
      return named.getValue() == gpu::AddressSpace::Global;
    return !space;
  }

  static LogicalResult checkArguments(gpu::GPUFuncOp kernel) {
    for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
      if (isa<UnrankedMemRefType>(type))
        return kernel.emitOpError("expects argument ")
               << index << " to be a ranked memref, got " << type;
      auto memref = dyn_cast<MemRefType>(type);
      if (memref && !isGlobalMemory(memref))
        return kernel.emitOpError("expects argument ")
               << index << " in the default or global memory space, got "
               << type;
      if (memref && !MemRefParameters(memref).isStrided)
        return kernel.emitOpError("expects argument ")
               << index << " to have a strided layout, got " << type;
    }
    return success();
  }

  static bool waitsForLaunches(gpu::GPUFuncOp kernel) {
    WalkResult result = kernel.walk([](NVVM::GriddepcontrolOp op) {
      return op.getKind() == NVVM::GridDepActionKind::wait
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    return result.wasInterrupted();
  }

  void flattenKernel(gpu::GPUFuncOp kernel,
                     ArrayRef<gpu::LaunchFuncOp> launches) {
    MLIRContext *context = &getContext();
    unsigned numArguments = kernel.getFunctionType().getNumInputs();
    Block &entry = kernel.getBody().front();

    llvm::SmallBitVector readOnly(numArguments);
    for (unsigned index = 0; index < numArguments; ++index)
      readOnly[index] = isa<MemRefType>(entry.getArgument(index).getType()) &&
                        isOnlyRead(entry.getArgument(index));
    llvm::SmallBitVector overlaps = findOverlaps(kernel, launches, readOnly);
    // Earlier launches may still write what a kernel only reads that waits for
    // them: it must not be loaded as memory that stays the same.
    if (waitsForLaunches(kernel)) {
      overlaps |= readOnly;
      readOnly.reset();
    }

    Signature signature(kernel);
    OpBuilder builder = OpBuilder::atBlockBegin(&entry);
    SmallVector<std::pair<unsigned, unsigned>> parametersOf(numArguments);
    for (unsigned index : getOrder(kernel.getArgumentTypes())) {
      unsigned first = signature.types.size();
      describe(kernel, index, readOnly[index], noAlias && !overlaps[index],
               signature);
      parametersOf[index] = {first, signature.types.size() - first};
    }

    // Insert the new arguments before the old ones, and then replace those.
    Location loc = kernel.getLoc();
    unsigned numParameters = signature.types.size();
    for (auto [index, type] : llvm::enumerate(signature.types))
      entry.insertArgument(index, type, loc);
    for (unsigned index = 0; index < numArguments; ++index) {
      BlockArgument old = entry.getArgument(numParameters + index);
      auto [first, count] = parametersOf[index];
      ValueRange values = ValueRange(entry.getArguments()).slice(first, count);
      old.replaceAllUsesWith(
          rebuildArgument(builder, old.getLoc(), old.getType(), values));
    }
    entry.eraseArguments(numParameters, numArguments);
    kernel.setFunctionType(FunctionType::get(context, signature.types, {}));
    kernel.setArgAttrsAttr(ArrayAttr::get(context, signature.attrs));
    kernel->setAttr(KVCacheDialect::kParametersAttr,
                    ArrayAttr::get(context, signature.descriptions));
  }

  /// Returns the arguments in the order of their parameters, descriptors last.
  static SmallVector<unsigned> getOrder(TypeRange types) {
    auto order = llvm::to_vector(llvm::seq<unsigned>(0, types.size()));
    std::stable_partition(order.begin(), order.end(), [&](unsigned index) {
      return !isa<TMATileType>(types[index]);
    });
    return order;
  }

  static Value rebuildArgument(OpBuilder &builder, Location loc, Type type,
                               ValueRange values) {
    if (auto memref = dyn_cast<MemRefType>(type))
      return rebuild(builder, loc, values, MemRefParameters(memref));
    if (isa<TMATileType>(type))
      return UnrealizedConversionCastOp::create(builder, loc, type, values)
          .getResult(0);
    return values.front();
  }

  static void alignAttributions(gpu::GPUFuncOp kernel) {
    constexpr int64_t alignment = 16;
    StringRef attr = LLVM::LLVMDialect::getAlignAttrName();
    Builder builder(kernel.getContext());
    for (unsigned index = 0; index < kernel.getNumWorkgroupAttributions();
         ++index)
      if (!kernel.getWorkgroupAttributionAttr(index, attr))
        kernel.setWorkgroupAttributionAttr(
            index, attr, builder.getI64IntegerAttr(alignment));
  }

  /// Drops argument names of other functions, which LLVM does not support.
  void dropNames() {
    for (auto module :
         findOps<gpu::GPUModuleOp, FunctionOpInterface>(getOperation()))
      for (auto function : module.getOps<FunctionOpInterface>())
        for (unsigned index = 0; index < function.getNumArguments(); ++index)
          for (StringRef name : {StringRef(KVCacheDialect::kArgNameAttr),
                                 StringRef(KVCacheDialect::kDescriptorAttr)})
            function.removeArgAttr(
                index, StringAttr::get(function.getContext(), name));
  }

  /// Adds the parameters of one argument.
  static void describe(gpu::GPUFuncOp kernel, unsigned index, bool readOnly,
                       bool noAlias, Signature &signature) {
    MLIRContext *context = kernel.getContext();
    Builder builder(context);
    auto named = kernel.getArgAttrOfType<StringAttr>(
        index, KVCacheDialect::kArgNameAttr);
    std::string name = named ? named.str() : ("arg" + Twine(index)).str();
    NamedAttrList attrs(kernel.getArgAttrDict(index));
    attrs.erase(KVCacheDialect::kArgNameAttr);

    Type type = kernel.getArgumentTypes()[index];
    if (auto descriptor = dyn_cast<TMATileType>(type)) {
      Attribute view = attrs.erase(KVCacheDialect::kDescriptorAttr);
      return signature.addDescriptor(descriptor, name, view);
    }
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      return signature.add(type, name, attrs.getDictionary(context));

    if (noAlias)
      attrs.set(LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    if (readOnly)
      attrs.set(LLVM::LLVMDialect::getReadonlyAttrName(),
                builder.getUnitAttr());
    signature.add(LLVM::LLVMPointerType::get(context), name,
                  attrs.getDictionary(context));
    MemRefParameters parameters(memref);
    for (unsigned dim : parameters.openSizes)
      signature.add(builder.getIndexType(),
                    name + ".size" + std::to_string(dim));
    for (unsigned dim : parameters.openStrides)
      signature.add(builder.getIndexType(),
                    name + ".stride" + std::to_string(dim));
  }

  /// Returns a pointer to the 128 bytes of a descriptor, which is passed by
  /// value.
  static Value getDescriptorPointer(OpBuilder &builder, Location loc,
                                    Value descriptor) {
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    return UnrealizedConversionCastOp::create(builder, loc, pointer, descriptor)
        .getResult(0);
  }

  static void flattenLaunch(gpu::LaunchFuncOp launch) {
    OpBuilder builder(launch);
    SmallVector<Value> operands;
    OperandRange given = launch.getKernelOperands();
    for (unsigned index : getOrder(given.getTypes())) {
      Value operand = given[index];
      if (auto type = dyn_cast<MemRefType>(operand.getType()))
        appendOperands(builder, launch.getLoc(), operand,
                       MemRefParameters(type), operands);
      else if (isa<TMATileType>(operand.getType()))
        operands.push_back(
            getDescriptorPointer(builder, launch.getLoc(), operand));
      else
        operands.push_back(operand);
    }
    launch.getKernelOperandsMutable().assign(operands);
  }
};

} // namespace
