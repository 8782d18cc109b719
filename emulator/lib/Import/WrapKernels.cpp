//===- WrapKernels.cpp - Imported functions as kernels of a gpu.module ----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reflect.h"
#include "kvcache/Import/Passes.h"

#include "mlir/IR/SymbolTable.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_WRAPKERNELS
#include "kvcache/Import/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The attributes of LLVM IR that say what a launch must be like, and those of
/// the NVVM dialect for them. NVPTX Usage, "Kernel Functions".
static constexpr std::pair<StringLiteral, bool> kBounds[] = {
    {"nvvm.maxntid", true},         {"nvvm.reqntid", true},
    {"nvvm.cluster_dim", true},     {"nvvm.minctasm", false},
    {"nvvm.maxclusterrank", false}, {"nvvm.maxnreg", false}};

/// `"128"`, `"16,8"`.
static Attribute parseSides(Builder &builder, StringRef text, bool isList) {
  SmallVector<int32_t> sides;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts)
    if (part.trim().getAsInteger(10, sides.emplace_back()))
      return {};
  if (!isList)
    return sides.size() == 1 ? builder.getI32IntegerAttr(sides.front())
                             : Attribute();
  return builder.getDenseI32ArrayAttr(sides);
}

static LogicalResult setBounds(LLVM::LLVMFuncOp function) {
  ArrayAttr passthrough = function.getPassthroughAttr();
  if (!passthrough)
    return success();
  Builder builder(function.getContext());
  for (Attribute entry : passthrough) {
    auto pair = dyn_cast<ArrayAttr>(entry);
    if (!pair || pair.size() != 2)
      continue;
    StringRef name = cast<StringAttr>(pair[0]);
    StringRef text = cast<StringAttr>(pair[1]);
    const auto *bound = llvm::find_if(
        kBounds, [&](const auto &known) { return known.first == name; });
    if (bound == std::end(kBounds))
      continue;
    Attribute value = parseSides(builder, text, bound->second);
    if (!value)
      return function.emitError("expects numbers for \"")
             << name << "\", got \"" << text << "\"";
    function->setAttr(name, value);
  }
  return success();
}

/// Leaves nothing of a function but its type, its body and what kernels have.
static LLVM::LLVMFuncOp rebuild(LLVM::LLVMFuncOp function, OpBuilder &builder) {
  auto rebuilt = LLVM::LLVMFuncOp::create(
      builder, function.getLoc(), function.getName(),
      function.getFunctionType(), LLVM::Linkage::External);
  for (NamedAttribute attribute : function->getDiscardableAttrs())
    if (attribute.getNameDialect() &&
        isa<NVVM::NVVMDialect>(attribute.getNameDialect()))
      rebuilt->setAttr(attribute.getName(), attribute.getValue());
  if (ArrayAttr attributes = function.getArgAttrsAttr())
    rebuilt.setArgAttrsAttr(attributes);
  rebuilt.getBody().takeBody(function.getBody());
  return rebuilt;
}

//===----------------------------------------------------------------------===//
// Locations and calls
//===----------------------------------------------------------------------===//

/// The place of an op in a file, without the scopes of debuggers. Of calls
/// that have been inlined, the innermost.
static Location getPlace(Location loc) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return getPlace(call.getCallee());
  return place ? Location(place) : UnknownLoc::get(loc.getContext());
}

/// Calling conventions of the chip mean nothing to a host.
static void simplify(Operation *op) {
  op->setLoc(getPlace(op->getLoc()));
  if (auto call = dyn_cast<LLVM::CallOp>(op)) {
    call.setCConv(LLVM::CConv::C);
    call.setTailCallKind(LLVM::TailCallKind::None);
  }
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (BlockArgument argument : block.getArguments())
        argument.setLoc(getPlace(argument.getLoc()));
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// Whether an op of a module is metadata, which means nothing to a kernel.
static bool isMetadata(Operation &op) {
  if (isa<LLVM::ModuleFlagsOp, LLVM::ComdatOp>(op))
    return true;
  auto global = dyn_cast<LLVM::GlobalOp>(op);
  return global && global.getLinkage() == LLVM::Linkage::Appending;
}

/// The sizes and alignments of numbers, with those of NVPTX where the source
/// says nothing. Pointers are those of the host.
static DataLayoutSpecInterface getNumbers(Operation *module) {
  MLIRContext *context = module->getContext();
  SmallVector<DataLayoutEntryInterface> entries;
  if (auto spec = dyn_cast_if_present<DataLayoutSpecAttr>(
          module->getAttr(DLTIDialect::kDataLayoutAttrName)))
    for (DataLayoutEntryInterface entry : spec.getEntries())
      if (auto type = dyn_cast<Type>(entry.getKey());
          type && type.isIntOrFloat())
        entries.push_back(entry);
  // Integers without an entry would get that of the next wider one.
  for (int64_t bits : {8, 16, 32, 64, 128}) {
    Type type = IntegerType::get(context, bits);
    if (llvm::none_of(entries, [&](DataLayoutEntryInterface entry) {
          return entry.getKey() == DataLayoutEntryKey(type);
        }))
      entries.push_back(DataLayoutEntryAttr::get(
          type, Builder(context).getI64VectorAttr({bits, bits})));
  }
  return DataLayoutSpecAttr::get(context, entries);
}

/// Whether the flags of a module let the math library flush small numbers.
static bool flushes(ModuleOp module) {
  for (auto flags : module.getOps<LLVM::ModuleFlagsOp>())
    for (Attribute attribute : flags.getFlags()) {
      auto flag = dyn_cast<LLVM::ModuleFlagAttr>(attribute);
      auto value =
          flag ? dyn_cast<IntegerAttr>(flag.getValue()) : IntegerAttr();
      if (value && flag.getKey() == "nvvm-reflect-ftz")
        return value.getInt() != 0;
    }
  return false;
}

static bool isKernel(LLVM::LLVMFuncOp function) {
  return !function.isExternal() &&
         (function.getCConv() == LLVM::CConv::PTX_Kernel ||
          function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()));
}

static LogicalResult check(ModuleOp module) {
  auto triple = module->getAttrOfType<StringAttr>(
      LLVM::LLVMDialect::getTargetTripleAttrName());
  if (triple && !triple.getValue().empty() &&
      !triple.getValue().starts_with("nvptx64"))
    return module.emitError("expects code for nvptx64, got code for ")
           << triple.getValue();
  auto assembly = module->getAttrOfType<ArrayAttr>(
      LLVM::LLVMDialect::getModuleLevelAsmAttrName());
  if (assembly && !assembly.empty())
    return module.emitError("expects no assembly beside the functions");
  if (llvm::any_of(module.getOps<LLVM::LLVMFuncOp>(), isKernel))
    return success();
  return module.emitError(
      "expects a kernel: a function with a body and the calling convention "
      "ptx_kernel");
}

/// Kernels of a higher level get other parameters when they are lowered.
static LogicalResult checkLevel(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    if (isa<gpu::GPUFuncOp>(op)) {
      op->emitOpError("is not of the LLVM dialect, as kernels of other "
                      "compilers are: it needs kvcache-to-emulator");
      return WalkResult::interrupt();
    }
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    bool isDeclared =
        function && function.isExternal() &&
        function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
    if (!isDeclared)
      return WalkResult::advance();
    op->emitOpError("expects a kernel to have a body");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

namespace {

struct WrapKernels : kvcache::impl::WrapKernelsBase<WrapKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module.getOps<gpu::GPUModuleOp>().empty()) {
      if (failed(checkLevel(module)))
        return signalPassFailure();
      for (auto kernels : module.getOps<gpu::GPUModuleOp>())
        kernels->setAttr(DLTIDialect::kDataLayoutAttrName, getNumbers(kernels));
      return;
    }
    if (failed(check(module)))
      return signalPassFailure();
    resolveReflections(module, [&](StringRef name) -> std::optional<int64_t> {
      if (name == "__CUDA_FTZ")
        return flushes(module);
      return std::nullopt;
    });
    SmallVector<Operation *> ops;
    for (Operation &op : *module.getBody())
      ops.push_back(&op);
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto kernels =
        gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
    kernels->setAttr(DLTIDialect::kDataLayoutAttrName, getNumbers(module));
    for (Operation *op : ops)
      if (failed(move(op, kernels)))
        return signalPassFailure();
    kernels.walk([](Operation *op) { simplify(op); });
    SmallVector<NamedAttribute> attributes(module->getDiscardableAttrs());
    for (NamedAttribute attribute : attributes)
      module->removeDiscardableAttr(attribute.getName());
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    builder.getUnitAttr());
  }

private:
  static LogicalResult move(Operation *op, gpu::GPUModuleOp kernels) {
    if (isMetadata(*op)) {
      op->erase();
      return success();
    }
    OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (!function) {
      op->remove();
      builder.insert(op);
      return success();
    }
    if (failed(setBounds(function)))
      return failure();
    if (isKernel(function))
      function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                        builder.getUnitAttr());
    bool isPrivate = !isKernel(function);
    LLVM::LLVMFuncOp rebuilt = rebuild(function, builder);
    if (isPrivate)
      SymbolTable::setSymbolVisibility(rebuilt,
                                       SymbolTable::Visibility::Private);
    function.erase();
    return success();
  }
};

} // namespace
