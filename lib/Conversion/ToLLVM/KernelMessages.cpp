//===- KernelMessages.cpp - Assertions and output of kernels --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelMessages.h"

#include "FailureRecorder.h"
#include "kvcache/Support/Nesting.h"
#include "kvcache/Support/PrintArguments.h"
#include "kvcache/Support/RuntimeCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The strings, declarations and memory of the calls in a module.
class Messages {
public:
  explicit Messages(gpu::GPUModuleOp module)
      : module(module), symbols(module),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  LogicalResult lower(cf::AssertOp op);
  LogicalResult lower(gpu::PrintfOp op);

private:
  LLVM::LLVMFuncOp declare(StringRef name, Type result, ArrayRef<Type> types);
  Value getString(OpBuilder &builder, Location loc, StringRef prefix,
                  StringRef text);
  Value storeArguments(OpBuilder &builder, gpu::PrintfOp op,
                       ArrayRef<Value> values);
  Value getMemory(Operation *user, LLVM::LLVMStructType type);

  gpu::GPUModuleOp module;
  SymbolTable symbols;
  Type pointer;
  llvm::StringMap<LLVM::GlobalOp> strings;
  LLVM::LLVMFuncOp recorder;
  /// For arguments, by function and type: a call is over before the next one.
  llvm::DenseMap<std::pair<Operation *, Type>, Value> memory;
};

} // namespace

LLVM::LLVMFuncOp Messages::declare(StringRef name, Type result,
                                   ArrayRef<Type> types) {
  if (auto known = symbols.lookup<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto created =
      LLVM::LLVMFuncOp::create(builder, module.getLoc(), name,
                               LLVM::LLVMFunctionType::get(result, types));
  symbols.insert(created);
  return created;
}

Value Messages::getString(OpBuilder &builder, Location loc, StringRef prefix,
                          StringRef text) {
  LLVM::GlobalOp &global = strings[text];
  if (!global) {
    std::string bytes = (text + Twine('\0')).str();
    OpBuilder atStart = OpBuilder::atBlockBegin(module.getBody());
    global = LLVM::GlobalOp::create(
        atStart, module.getLoc(),
        LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal, prefix,
        builder.getStringAttr(bytes));
    symbols.insert(global);
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

LogicalResult Messages::lower(cf::AssertOp op) {
  if (!recorder) {
    FailureOr<LLVM::LLVMFuncOp> created =
        createFailureRecorder(module, symbols);
    if (failed(created))
      return failure();
    recorder = *created;
  }
  Location loc = op.getLoc();
  Block *before = op->getBlock();
  Block *after = before->splitBlock(op);
  Block *failed = new Block;
  failed->insertBefore(after);
  OpBuilder builder = OpBuilder::atBlockEnd(before);
  cf::CondBranchOp::create(builder, loc, op.getArg(), after, failed);

  builder.setInsertionPointToStart(failed);
  FileLineColLoc position = findFileLoc(loc);
  Value message = getString(builder, loc, "assert_message", op.getMsg());
  Value file = getString(builder, loc, "assert_file",
                         position ? position.getFilename().getValue()
                                  : StringRef("(unknown)"));
  Value function = getString(builder, loc, "assert_function", "(unknown)");
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  Value line = LLVM::ConstantOp::create(builder, loc, i32,
                                        position ? position.getLine() : 0);
  Value charSize = LLVM::ConstantOp::create(builder, loc, i64, 1);
  LLVM::LLVMFuncOp callee =
      declare("__assertfail", LLVM::LLVMVoidType::get(module.getContext()),
              {pointer, pointer, i32, pointer, i64});
  callee.setPassthroughAttr(builder.getStrArrayAttr({"noreturn"}));
  LLVM::CallOp::create(builder, loc, recorder, {message, file, line});
  LLVM::CallOp::create(builder, loc, callee,
                       {message, file, line, function, charSize});
  LLVM::UnreachableOp::create(builder, loc);
  op.erase();
  return success();
}

LogicalResult Messages::lower(gpu::PrintfOp op) {
  FailureOr<PrintArguments> converted = getPrintArguments(op);
  if (failed(converted))
    return failure();
  OpBuilder builder(op);
  Value format =
      getString(builder, op.getLoc(), "printf_format", converted->format);
  Value arguments = storeArguments(builder, op, converted->operands);
  LLVM::LLVMFuncOp callee =
      declare("vprintf", builder.getI32Type(), {pointer, pointer});
  LLVM::CallOp::create(builder, op.getLoc(), callee, {format, arguments});
  op.erase();
  return success();
}

/// Stores the arguments of a print one after another, as in a structure, and
/// gives their address.
Value Messages::storeArguments(OpBuilder &builder, gpu::PrintfOp op,
                               ArrayRef<Value> values) {
  Location loc = op.getLoc();
  auto type = LLVM::LLVMStructType::getLiteral(
      op.getContext(), llvm::to_vector(ValueRange(values).getTypes()));
  Value address = getMemory(op, type);
  for (auto [index, value] : llvm::enumerate(values)) {
    Value field = LLVM::GEPOp::create(
        builder, loc, pointer, type, address,
        ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(index)});
    LLVM::StoreOp::create(builder, loc, value, field);
  }
  return address;
}

Value Messages::getMemory(Operation *user, LLVM::LLVMStructType type) {
  auto function = user->getParentOfType<FunctionOpInterface>();
  Value &address = memory[{function, type}];
  if (!address) {
    Location loc = function.getLoc();
    OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
    Value one = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), 1);
    address = LLVM::AllocaOp::create(builder, loc, pointer, type, one);
  }
  return address;
}

LogicalResult kvcache::lowerKernelMessages(gpu::GPUModuleOp module) {
  SmallVector<Operation *> ops;
  WalkResult result = module.walk([&](Operation *op) {
    // It splits its block, which those of structured ops don't allow.
    if (isa<cf::AssertOp>(op) && !isa<FunctionOpInterface>(op->getParentOp())) {
      op->emitOpError("in '") << op->getParentOp()->getName()
                              << "' has no lowering here: "
                                 "'kvcache-lower-control-flow' goes first";
      return WalkResult::interrupt();
    }
    if (!isa<cf::AssertOp, gpu::PrintfOp>(op))
      return WalkResult::advance();
    ops.push_back(op);
    return WalkResult(checkInFunction(op));
  });
  if (result.wasInterrupted())
    return failure();
  Messages messages(module);
  // The last one first: a split moves all that follows in the block.
  for (Operation *op : llvm::reverse(ops)) {
    auto print = dyn_cast<gpu::PrintfOp>(op);
    if (failed(print ? messages.lower(print)
                     : messages.lower(cast<cf::AssertOp>(op))))
      return failure();
  }
  return success();
}
