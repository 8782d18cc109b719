//===- Stack.cpp - What threads have on their stacks ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// The elements of a variable, if that is known.
static std::optional<int64_t> getCount(LLVM::AllocaOp op) {
  APInt count;
  if (!matchPattern(op.getArraySize(), m_ConstantInt(&count)))
    return std::nullopt;
  // As many as nothing has, for what is more.
  constexpr uint64_t most = uint64_t{1} << 40;
  return count.getLimitedValue(most);
}

void kvcache::moveVariablesToEntry(gpu::GPUModuleOp module) {
  SmallVector<LLVM::AllocaOp> variables;
  module.walk([&](LLVM::AllocaOp op) {
    if (getCount(op))
      variables.push_back(op);
  });
  for (LLVM::AllocaOp op : variables) {
    auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
    if (!op->getBlock()->isEntryBlock()) {
      OpBuilder after(op->getContext());
      after.setInsertionPointAfter(op);
      LLVM::LifetimeStartOp::create(after, op.getLoc(), op.getResult());
    }
    OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
    Value count = LLVM::ConstantOp::create(
        builder, op.getLoc(), op.getArraySize().getType(), *getCount(op));
    op.getArraySizeMutable().assign(count);
    op->moveAfter(count.getDefiningOp());
  }
}

/// The bytes of a function's variables.
static int64_t countVariableBytes(LLVM::LLVMFuncOp function,
                                  const DataLayout &layout) {
  int64_t bytes = 0;
  function.walk([&](LLVM::AllocaOp op) {
    constexpr int64_t most = int64_t{1} << 50;
    int64_t size = layout.getTypeSize(op.getElemType());
    int64_t count = getCount(op).value_or(1);
    bytes += size > 0 && count > most / size ? most : size * count;
    bytes = std::min(bytes, most);
  });
  return bytes;
}

/// The bytes of values that registers of the host don't hold.
static int64_t getLargeValueBytes(LLVM::LLVMFuncOp function,
                                  const DataLayout &layout) {
  constexpr int64_t registerBytes = 32;
  int64_t bytes = 0;
  function.walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      if (!LLVM::isCompatibleType(type) || isa<LLVM::LLVMVoidType>(type))
        continue;
      int64_t size = layout.getTypeSize(type);
      bytes += size > registerBytes ? size : 0;
    }
  });
  return bytes;
}

FailureOr<int64_t> kvcache::getLocalBytes(gpu::GPUModuleOp module) {
  // CUDA C++ Programming Guide, "Technical Specifications per Compute
  // Capability": local memory of a thread.
  constexpr int64_t maxVariables = 512 << 10, maxValues = 4 << 20;
  DataLayout layout(module);
  int64_t bytes = 0;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    int64_t variables = countVariableBytes(function, layout);
    if (variables > maxVariables)
      return function.emitOpError("has variables of ")
             << variables << " bytes; a thread can have " << maxVariables
             << " bytes";
    int64_t values = getLargeValueBytes(function, layout);
    if (values > maxValues)
      return function.emitOpError("has vectors and structures of ")
             << values << " bytes together; the emulator supports up to "
             << maxValues << " bytes in a function";
    bytes += variables + values;
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Overflows
//===----------------------------------------------------------------------===//

static llvm::SetVector<Operation *> getCallees(Operation *function,
                                               const SymbolTable &symbols) {
  llvm::SetVector<Operation *> callees;
  auto addCallees = [&](Operation *caller) {
    caller->walk([&](LLVM::CallOp call) {
      if (std::optional<StringRef> name = call.getCallee())
        if (Operation *callee = symbols.lookup(*name))
          callees.insert(callee);
    });
  };
  addCallees(function);
  for (size_t next = 0; next < callees.size(); ++next)
    addCallees(callees[next]);
  return callees;
}

/// Asks for the stack that a variable takes wherever it is made.
static void reserve(LLVM::AllocaOp op, const DataLayout &layout,
                    EmulatorCalls &calls) {
  OpBuilder builder(op);
  Value count = op.getArraySize();
  unsigned width = count.getType().getIntOrFloatBitWidth();
  if (width < 64)
    count = LLVM::ZExtOp::create(builder, op.getLoc(), calls.i64, count);
  else if (width > 64)
    count = LLVM::TruncOp::create(builder, op.getLoc(), calls.i64, count);
  calls.call(op, "kvcacheEmulatorReserveStack", Type(),
             {count, calls.getI64(op, layout.getTypeSize(op.getElemType()))});
}

void kvcache::guardStacks(gpu::GPUModuleOp module, EmulatorCalls &calls) {
  DataLayout layout(module);
  SymbolTable symbols(module);
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    SmallVector<LLVM::AllocaOp> variables;
    function.walk([&](LLVM::AllocaOp op) { variables.push_back(op); });
    for (LLVM::AllocaOp op : variables)
      if (!getCount(op))
        reserve(op, layout, calls);
    if (!getCallees(function, symbols).contains(function))
      continue;
    int64_t bytes = countVariableBytes(function, layout) +
                    getLargeValueBytes(function, layout);
    Operation *first = &function.front().front();
    calls.call(first, "kvcacheEmulatorReserveStack", Type(),
               {calls.getI64(first, bytes), calls.getI64(first, 1)});
  }
}
