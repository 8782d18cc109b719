//===- HostRules.cpp - What a host can't do for a chip --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Ops that the host has and that mean something else there, or nothing on a
/// chip.
static bool isOfHostOnly(Operation *op) {
  if (isa<LLVM::InvokeOp, LLVM::LandingpadOp, LLVM::ResumeOp,
          LLVM::BlockAddressOp, LLVM::IndirectBrOp, LLVM::VaStartOp,
          LLVM::VaCopyOp, LLVM::VaEndOp, LLVM::VaArgOp, LLVM::IFuncOp>(op))
    return true;
  if (auto list = dyn_cast<LLVM::GlobalCtorsOp>(op))
    return !list.getCtors().empty();
  if (auto list = dyn_cast<LLVM::GlobalDtorsOp>(op))
    return !list.getDtors().empty();
  return false;
}

/// Functions get a thread before their parameters.
static bool hasVariableArguments(Operation *op) {
  if (auto call = dyn_cast<LLVM::CallOp>(op))
    return call.getVarCalleeType().has_value();
  auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
  return function && function.isVarArg() && !function.isExternal();
}

/// Addresses of shared memory are numbers from 0 on, which vectors of them
/// don't become.
static bool castsVectorOfShared(Operation *op) {
  if (!isa<LLVM::PtrToIntOp, LLVM::IntToPtrOp>(op))
    return false;
  auto isOfShared = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    auto pointer =
        vector ? dyn_cast<LLVM::LLVMPointerType>(vector.getElementType())
               : LLVM::LLVMPointerType();
    if (!pointer)
      return false;
    auto space = static_cast<NVVM::NVVMMemorySpace>(pointer.getAddressSpace());
    return space == NVVM::NVVMMemorySpace::Shared ||
           space == NVVM::NVVMMemorySpace::SharedCluster;
  };
  return isOfShared(op->getOperand(0).getType()) ||
         isOfShared(op->getResult(0).getType());
}

static LogicalResult checkOp(Operation *op) {
  if (isOfHostOnly(op))
    return op->emitOpError("has no lowering for the emulator");
  if (hasVariableArguments(op))
    return op->emitOpError(
        "with variable arguments has no lowering for the emulator");
  if (castsVectorOfShared(op))
    return op->emitOpError("of a vector of pointers to shared memory has no "
                           "lowering for the emulator");
  return success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Types that NVPTX doesn't have either, and vectors whose length only the
/// host has.
static bool isOfAnotherTarget(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.isScalable();
  return isa<Float80Type, Float128Type, LLVM::LLVMPPCFP128Type,
             LLVM::LLVMX86AMXType, LLVM::LLVMTargetExtType>(type);
}

static LogicalResult checkTypes(Operation *op) {
  Type found;
  AttrTypeWalker walker;
  walker.addWalk([&](Type type) {
    if (isOfAnotherTarget(type))
      found = type;
  });
  for (Type type : op->getResultTypes())
    walker.walk(type);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        walker.walk(type);
  if (auto alloca = dyn_cast<LLVM::AllocaOp>(op))
    walker.walk(alloca.getElemType());
  if (auto global = dyn_cast<LLVM::GlobalOp>(op))
    walker.walk(global.getType());
  if (!found)
    return success();
  return op->emitOpError("uses the type ") << found
                                           << ", which no chip of the table of "
                                              "chips has";
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

static bool isShared(LLVM::GlobalOp global) {
  return global.getAddrSpace() ==
         static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
}

/// Whether it has a value that is not `undef`.
static bool isInitialized(LLVM::GlobalOp global) {
  if (Attribute value = global.getValueOrNull())
    return !isa<LLVM::UndefAttr>(value);
  Block *block = global.getInitializerBlock();
  if (!block)
    return false;
  auto end = cast<LLVM::ReturnOp>(block->getTerminator());
  return !end.getArg().getDefiningOp<LLVM::UndefOp>() &&
         !end.getArg().getDefiningOp<LLVM::PoisonOp>();
}

/// A variable of shared memory is somewhere else in each block.
static LogicalResult checkInitializer(LLVM::GlobalOp global,
                                      const SymbolTable &symbols) {
  WalkResult result = global.walk([&](LLVM::AddressOfOp address) {
    auto used = symbols.lookup<LLVM::GlobalOp>(address.getGlobalName());
    if (!used || !isShared(used))
      return WalkResult::advance();
    global.emitOpError("can't begin with the address of @")
        << used.getSymName() << ", which is in shared memory";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// PTX ISA, "State Spaces".
static LogicalResult checkGlobal(LLVM::GlobalOp global,
                                 const SymbolTable &symbols,
                                 const DataLayout &layout) {
  constexpr uint64_t maxConstant = 64 << 10, maxGlobal = 1 << 30;
  if (isShared(global) && isInitialized(global))
    return global.emitOpError("in shared memory can't have an initial value "
                              "(PTX ISA, \"Initializers\""
                              ")");
  bool isConstant = global.getAddrSpace() ==
                    static_cast<unsigned>(NVVM::NVVMMemorySpace::Constant);
  uint64_t bytes = layout.getTypeSize(global.getType());
  uint64_t most = isConstant ? maxConstant : maxGlobal;
  if (!isShared(global) && bytes > most)
    return global.emitOpError("has ")
           << bytes << " bytes; "
           << (isConstant ? "constant memory has "
                          : "the emulator supports variables of up to ")
           << most << " bytes";
  return checkInitializer(global, symbols);
}

LogicalResult kvcache::checkHost(gpu::GPUModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    return WalkResult(
        success(succeeded(checkOp(op)) && succeeded(checkTypes(op))));
  });
  if (result.wasInterrupted())
    return failure();
  SymbolTable symbols(module);
  DataLayout layout(module);
  for (auto global : module.getOps<LLVM::GlobalOp>())
    if (failed(checkGlobal(global, symbols, layout)))
      return failure();
  return success();
}
