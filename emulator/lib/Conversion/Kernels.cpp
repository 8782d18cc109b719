//===- Kernels.cpp - Kernels as functions of the host ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "kvcache/Target/Registers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// What kernels are like
//===----------------------------------------------------------------------===//

static std::optional<std::array<int64_t, 3>> getSides(LLVM::LLVMFuncOp function,
                                                      StringRef name) {
  auto attribute = function->getAttrOfType<DenseI32ArrayAttr>(name);
  if (!attribute)
    return std::nullopt;
  std::array<int64_t, 3> sides{1, 1, 1};
  llvm::copy(attribute.asArrayRef().take_front(3), sides.begin());
  return sides;
}

/// Whether an op may write through a pointer, or an address that is computed
/// from it: any use that is not known to read may do that.
static bool isChanged(Value pointer) {
  return llvm::any_of(pointer.getUsers(), [](Operation *user) {
    if (isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(user))
      return isChanged(user->getResult(0));
    return !isa<LLVM::LoadOp>(user) &&
           !isa<NVVM::NVVMDialect>(user->getDialect());
  });
}

static KernelFacts getFacts(LLVM::LLVMFuncOp kernel, const DataLayout &types,
                            const SharedLayout &layout) {
  KernelFacts facts;
  facts.name = kernel.getNameAttr();
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto byValue = kernel.getArgAttrOfType<TypeAttr>(
        index, LLVM::LLVMDialect::getByValAttrName());
    facts.isByValue.push_back(bool(byValue));
    facts.paramBytes.push_back(
        types.getTypeSize(byValue ? byValue.getValue() : type));
  }
  for (BlockArgument argument : kernel.getArguments())
    facts.isChanged.push_back(isChanged(argument));
  findWrittenMemory(kernel, facts);
  facts.shared = layout.getKernel(kernel.getName());
  if (auto sides = getSides(kernel, NVVM::NVVMDialect::getReqntidAttrName()))
    facts.requiredBlock = *sides;
  if (auto sides = getSides(kernel, NVVM::NVVMDialect::getClusterDimAttrName()))
    facts.requiredCluster = *sides;
  if (auto blocks = kernel->getAttrOfType<IntegerAttr>(
          NVVM::NVVMDialect::getClusterMaxBlocksAttrName()))
    facts.maxClusterBlocks = blocks.getInt();
  if (auto sides = getSides(kernel, NVVM::NVVMDialect::getMaxntidAttrName()))
    facts.maxThreads = (*sides)[0] * (*sides)[1] * (*sides)[2];
  facts.registers = getInitialRegisters(kernel).value_or(0);
  return facts;
}

SmallVector<KernelFacts, 0> kvcache::getKernelFacts(gpu::GPUModuleOp module,
                                                    const SharedLayout &layout,
                                                    int64_t localBytes) {
  SmallVector<KernelFacts, 0> kernels;
  DataLayout types(module);
  // Any kernel may call a function that does so.
  bool startDependents =
      module
          ->walk([](NVVM::GriddepcontrolOp op) {
            return op.getKind() == NVVM::GridDepActionKind::launch_dependents
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          })
          .wasInterrupted();
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal() ||
        !function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      continue;
    kernels.push_back(getFacts(function, types, layout));
    kernels.back().localBytes = localBytes;
    kernels.back().startsDependents = startDependents;
  }
  return kernels;
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

static void addThread(LLVM::LLVMFuncOp function, EmulatorCalls &calls) {
  SmallVector<Type> types{calls.pointerType};
  llvm::append_range(types, function.getArgumentTypes());
  SmallVector<Attribute> attributes{DictionaryAttr::get(function.getContext())};
  if (ArrayAttr given = function.getArgAttrsAttr())
    llvm::append_range(attributes, given);
  else
    attributes.assign(types.size(), attributes.front());
  LLVM::LLVMFunctionType type = function.getFunctionType();
  function.setFunctionType(LLVM::LLVMFunctionType::get(type.getReturnType(),
                                                       types, type.isVarArg()));
  function.setArgAttrsAttr(ArrayAttr::get(function.getContext(), attributes));
  function.getBody().insertArgument(0u, calls.pointerType, function.getLoc());
}

/// A function that gets a structure by value may change it.
static Value copyValue(LLVM::CallOp call, Value pointer, Type type,
                       EmulatorCalls &calls) {
  OpBuilder builder(call);
  DataLayout layout = DataLayout::closest(call);
  Value copy = calls.createSlot(call, type);
  LLVM::MemcpyOp::create(builder, call.getLoc(), copy, pointer,
                         calls.getI64(call, layout.getTypeSize(type)),
                         /*isVolatile=*/false);
  return copy;
}

/// The operands of a call of a function of the module: the thread, and those
/// that it had. What their attributes say holds for the chip.
static SmallVector<Value> getOperands(LLVM::CallOp call, EmulatorCalls &calls) {
  SmallVector<Value> operands{calls.getThread(call)};
  ArrayAttr attributes = call.getArgAttrsAttr();
  for (auto [index, operand] : llvm::enumerate(call.getCalleeOperands())) {
    auto given =
        attributes ? cast<DictionaryAttr>(attributes[index]) : DictionaryAttr();
    auto type =
        given ? given.getAs<TypeAttr>(LLVM::LLVMDialect::getByValAttrName())
              : TypeAttr();
    operands.push_back(type ? copyValue(call, operand, type.getValue(), calls)
                            : operand);
  }
  return operands;
}

LogicalResult kvcache::addThreads(gpu::GPUModuleOp module,
                                  EmulatorCalls &calls) {
  SymbolTable symbols(module);
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      addThread(function, calls);
  WalkResult result = module.walk([&](LLVM::CallOp call) {
    std::optional<StringRef> name = call.getCallee();
    if (!name) {
      call.emitOpError("through a pointer has no lowering for the emulator");
      return WalkResult::interrupt();
    }
    auto callee = symbols.lookup<LLVM::LLVMFuncOp>(*name);
    if (!callee || callee.isExternal())
      return WalkResult::advance();
    call.getCalleeOperandsMutable().assign(getOperands(call, calls));
    call.removeArgAttrsAttr();
    call.removeResAttrsAttr();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// To the host
//===----------------------------------------------------------------------===//

/// Attributes of kernels and of their parameters mean nothing on the host.
static void dropAttributes(LLVM::LLVMFuncOp function) {
  for (NamedAttribute attribute :
       llvm::to_vector(function->getDiscardableAttrs()))
    function->removeDiscardableAttr(attribute.getName());
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
}

/// All pointers are addresses of the host, in its one space.
static void dropAddressSpaces(gpu::GPUModuleOp module, EmulatorCalls &calls) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](LLVM::LLVMPointerType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  module.walk([](LLVM::AddrSpaceCastOp op) {
    op.replaceAllUsesWith(op.getArg());
    op.erase();
  });
  for (auto global : module.getOps<LLVM::GlobalOp>())
    global.setAddrSpace(0);
}

/// Moves everything out of the module, under names that begin with its own.
static void hoistSymbols(gpu::GPUModuleOp module, EmulatorCalls &calls) {
  SymbolTable inner(module);
  SymbolTableCollection tables;
  SymbolUserMap users(tables, module);
  SymbolTable &outer = calls.runtime.getSymbols();
  std::string prefix = (module.getName() + "_").str();
  SmallVector<Operation *> moved;
  for (Operation &op : module.getOps()) {
    if (!isa<SymbolOpInterface>(op))
      continue;
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    // Intrinsics keep their names.
    if (function && function.isExternal())
      continue;
    moved.push_back(&op);
  }
  for (Operation *op : moved) {
    auto symbol = cast<SymbolOpInterface>(op);
    std::string name = prefix + symbol.getName().str();
    unsigned count = 0;
    std::string unique = name;
    while (outer.lookup(unique) || inner.lookup(unique))
      unique = name + "_" + std::to_string(count++);
    // SymbolTable::rename would look through the module for each.
    users.replaceAllUsesWith(op, StringAttr::get(op->getContext(), unique));
    inner.remove(op);
    symbol.setName(unique);
    inner.insert(op);
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op)) {
      function.setLinkage(LLVM::Linkage::Internal);
      dropAttributes(function);
    } else if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
      global.setLinkage(LLVM::Linkage::Internal);
    }
  }
  for (Operation *op : moved) {
    op->remove();
    outer.insert(op);
  }
}

/// A thread's own copy, as far aligned as parameters can be.
static Value copyParameter(OpBuilder &builder, Location loc, Value address,
                           int64_t bytes, EmulatorCalls &calls) {
  constexpr unsigned alignment = 128;
  Value size = LLVM::ConstantOp::create(builder, loc, calls.i64, bytes);
  Value copy = LLVM::AllocaOp::create(builder, loc, calls.pointerType, calls.i8,
                                      size, alignment);
  LLVM::MemcpyOp::create(builder, loc, copy, address, size,
                         /*isVolatile=*/false);
  return copy;
}

/// The function that runs one thread: it takes the parameters by their
/// addresses.
static LLVM::LLVMFuncOp createEntry(LLVM::LLVMFuncOp kernel,
                                    const KernelFacts &facts,
                                    EmulatorCalls &calls) {
  Location loc = kernel.getLoc();
  OpBuilder builder(kernel->getContext());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(kernel->getContext()),
                                  {calls.pointerType, calls.pointerType});
  auto entry = LLVM::LLVMFuncOp::create(builder, loc,
                                        (kernel.getName() + "_thread").str(),
                                        type, LLVM::Linkage::Internal);
  calls.runtime.getSymbols().insert(entry);
  builder.setInsertionPointToStart(entry.addEntryBlock(builder));
  SmallVector<Value> operands{entry.getArgument(0)};
  for (auto [index, isByValue] : llvm::enumerate(facts.isByValue)) {
    Value slot = LLVM::GEPOp::create(
        builder, loc, calls.pointerType, calls.pointerType,
        entry.getArgument(1),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    Value address = LLVM::LoadOp::create(builder, loc, calls.pointerType, slot);
    if (isByValue && facts.isChanged[index])
      address =
          copyParameter(builder, loc, address, facts.paramBytes[index], calls);
    operands.push_back(
        isByValue ? address
                  : LLVM::LoadOp::create(builder, loc,
                                         kernel.getArgumentTypes()[index + 1],
                                         address)
                        .getResult());
  }
  LLVM::CallOp::create(builder, loc, kernel, operands);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return entry;
}

namespace {
/// The fields of a KVCacheEmulatedKernel.
struct KernelRecord {
  const KernelFacts *facts;
  LLVM::LLVMFuncOp entry;
  LLVM::GlobalOp paramBytes, isParamWritten, sharedVariables;
};
} // namespace

static LLVM::GlobalOp createSharedVariables(Location loc,
                                            const KernelFacts &facts,
                                            EmulatorCalls &calls) {
  Type pointer = calls.pointerType, i64 = calls.i64;
  RuntimeCalls &runtime = calls.runtime;
  return runtime.createStructs(
      loc, "kvcache_shared_variables", {pointer, i64, i64, i64},
      facts.shared.variables.size(),
      [&](size_t index, FieldBuilder &fields, OpBuilder &builder) {
        const SharedVariable &variable = facts.shared.variables[index];
        fields.set(runtime.getString(builder, loc, variable.name), 0);
        fields.set(variable.offset, i64, 1);
        fields.set(variable.bytes, i64, 2);
        fields.set(variable.shift, i64, 3);
      });
}

static LLVM::GlobalOp createKernels(ArrayRef<KernelRecord> kernels,
                                    EmulatorCalls &calls) {
  Type pointer = calls.pointerType, i64 = calls.i64;
  Type sides = LLVM::LLVMArrayType::get(i64, 3);
  Type site = LLVM::LLVMStructType::getLiteral(pointer.getContext(),
                                               {pointer, pointer});
  RuntimeCalls &runtime = calls.runtime;
  return runtime.createStructs(
      runtime.getModule().getLoc(), "kvcache_kernels",
      {pointer, pointer, pointer, i64, i64, i64, pointer, i64, i64, i64, sides,
       i64, sides, i64, pointer, i64, i64, i64, site},
      kernels.size(),
      [&](size_t index, FieldBuilder &fields, OpBuilder &builder) {
        const KernelRecord &kernel = kernels[index];
        const KernelFacts &facts = *kernel.facts;
        const KernelSharedMemory &shared = facts.shared;
        LLVM::LLVMFuncOp entry = kernel.entry;
        Location loc = entry.getLoc();
        auto getAddress = [&](auto symbol) {
          return LLVM::AddressOfOp::create(builder, loc, symbol);
        };
        fields.set(runtime.getString(builder, loc, facts.name.getValue()), 0);
        fields.set(getAddress(entry), 1);
        fields.set(getAddress(kernel.paramBytes), 2);
        fields.set(facts.paramBytes.size(), i64, 3);
        fields.set(shared.staticBytes, i64, 4);
        fields.set(shared.dynamicOffset, i64, 5);
        fields.set(getAddress(kernel.sharedVariables), 6);
        fields.set(shared.variables.size(), i64, 7);
        fields.set(shared.dynamicShift, i64, 8);
        fields.set(facts.localBytes, i64, 9);
        for (int64_t side = 0; side < 3; ++side)
          fields.set(facts.requiredBlock[side], i64, {10, side});
        fields.set(facts.maxThreads, i64, 11);
        for (int64_t side = 0; side < 3; ++side)
          fields.set(facts.requiredCluster[side], i64, {12, side});
        fields.set(facts.maxClusterBlocks, i64, 13);
        fields.set(getAddress(kernel.isParamWritten), 14);
        fields.set(facts.writesAnything, i64, 15);
        fields.set(facts.startsDependents, i64, 16);
        fields.set(facts.registers, i64, 17);
        std::string where = addPosition(loc, "");
        fields.set(runtime.getString(builder, loc, "a kernel"), {18, 0});
        fields.set(
            runtime.getString(builder, loc, StringRef(where).rtrim(": ")),
            {18, 1});
      });
}

static LLVM::GlobalOp createGlobals(ArrayRef<LLVM::GlobalOp> globals,
                                    EmulatorCalls &calls) {
  Type pointer = calls.pointerType;
  RuntimeCalls &runtime = calls.runtime;
  DataLayout layout(runtime.getModule());
  return runtime.createStructs(
      runtime.getModule().getLoc(), "kvcache_globals",
      {pointer, pointer, calls.i64, calls.i32, calls.i32}, globals.size(),
      [&](size_t index, FieldBuilder &fields, OpBuilder &builder) {
        LLVM::GlobalOp global = globals[index];
        Location loc = global.getLoc();
        fields.set(runtime.getString(builder, loc, global.getSymName()), 0);
        fields.set(LLVM::AddressOfOp::create(builder, loc, global), 1);
        fields.set(layout.getTypeSize(global.getType()), calls.i64, 2);
        fields.set(global.getConstant(), calls.i32, 3);
        // Without a value it is declared to hold zeros.
        fields.set(1, calls.i32, 4);
      });
}

LLVM::GlobalOp kvcache::moveToHost(gpu::GPUModuleOp module,
                                   ArrayRef<KernelFacts> kernels,
                                   int64_t numRegisters, EmulatorCalls &calls) {
  RuntimeCalls &runtime = calls.runtime;
  Location loc = module.getLoc();
  SymbolTable symbols(module);
  SmallVector<LLVM::LLVMFuncOp> functions;
  for (const KernelFacts &facts : kernels)
    functions.push_back(symbols.lookup<LLVM::LLVMFuncOp>(facts.name));
  SmallVector<LLVM::GlobalOp> globals(module.getOps<LLVM::GlobalOp>());
  dropAddressSpaces(module, calls);
  hoistSymbols(module, calls);

  SmallVector<KernelRecord> records;
  for (auto [facts, function] : llvm::zip(kernels, functions)) {
    auto bytesType =
        LLVM::LLVMArrayType::get(calls.i64, facts.paramBytes.size());
    auto writtenType =
        LLVM::LLVMArrayType::get(calls.i32, facts.isWritten.size());
    Builder builder(module.getContext());
    records.push_back(
        {&facts, createEntry(function, facts, calls),
         runtime.createConstant(loc, "kvcache_parameter_bytes", bytesType,
                                builder.getI64TensorAttr(facts.paramBytes)),
         runtime.createConstant(loc, "kvcache_written_parameters", writtenType,
                                builder.getI32TensorAttr(facts.isWritten)),
         createSharedVariables(loc, facts, calls)});
  }
  LLVM::GlobalOp kernelTable = createKernels(records, calls);
  LLVM::GlobalOp globalTable = createGlobals(globals, calls);
  Type pointer = calls.pointerType, i64 = calls.i64, i32 = calls.i32;
  return runtime.createStruct(
      loc, (module.getName() + "_emulated").str(),
      {pointer, i64, pointer, i64, i64, i64, i32, i32, i64, i64},
      [&](FieldBuilder &fields, OpBuilder &builder) {
        fields.set(LLVM::AddressOfOp::create(builder, loc, kernelTable), 0);
        fields.set(records.size(), i64, 1);
        fields.set(LLVM::AddressOfOp::create(builder, loc, globalTable), 2);
        fields.set(globals.size(), i64, 3);
        fields.set(calls.chip.getSharedMemory(), i64, 4);
        fields.set(calls.chip.computeCapability >= 90, i64, 5);
        fields.set(calls.isSanitized, i32, 6);
        fields.set(calls.isMetered, i32, 7);
        fields.set(numRegisters, i64, 8);
        fields.set(calls.mayRewrite, i64, 9);
      });
}
