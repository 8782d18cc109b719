//===- DeviceCalls.cpp - Calls of the C ABI of a device -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

DeviceCalls::DeviceCalls(ModuleOp module, bool callerWaits)
    : runtime(module), callerWaits(callerWaits),
      pointerType(LLVM::LLVMPointerType::get(module.getContext())),
      i32(IntegerType::get(module.getContext(), 32)),
      i64(IntegerType::get(module.getContext(), 64)) {}

void DeviceCalls::call(OpBuilder &builder, Location loc, StringRef function,
                       ValueRange operands, const Twine &what) {
  check(builder, loc, runtime.call(builder, loc, function, i32, operands),
        what);
}

void DeviceCalls::check(OpBuilder &builder, Location loc, Value status,
                        const Twine &what) {
  Value success = arith::ConstantIntOp::create(builder, loc, i32, 0);
  Value fails = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                      status, success);
  auto branch = scf::IfOp::create(builder, loc, fails);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  Value where = runtime.getString(builder, loc, addPosition(loc, what));
  Value message =
      runtime.call(builder, loc, "kvcacheGetLastError", pointerType, {});
  runtime.call(builder, loc, "kvcacheDeviceFailed", /*resultType=*/{},
               {where, message});
}

Value DeviceCalls::createSlot(OpBuilder &builder, Location loc, Type type,
                              int64_t alignment) {
  // Allocate in the entry block, because a loop around the op would allocate in
  // each iteration.
  Operation *function = builder.getInsertionBlock()->getParentOp();
  if (!isa<FunctionOpInterface>(function))
    function = function->getParentOfType<FunctionOpInterface>();
  OpBuilder atEntry = OpBuilder::atBlockBegin(&function->getRegion(0).front());
  Value one = LLVM::ConstantOp::create(atEntry, loc, i64, 1);
  return LLVM::AllocaOp::create(atEntry, loc, pointerType, type, one,
                                alignment);
}

Value DeviceCalls::createSlot(OpBuilder &builder, Location loc, Value value,
                              int64_t alignment) {
  Value slot = createSlot(builder, loc, value.getType(), alignment);
  LLVM::StoreOp::create(builder, loc, value, slot, alignment);
  return slot;
}

Value DeviceCalls::getStream(OpBuilder &builder, Location loc) {
  return runtime.call(builder, loc, "kvcacheScopeStream", pointerType, {});
}

void DeviceCalls::finish(OpBuilder &builder, gpu::AsyncOpInterface op,
                         const Twine &what) {
  if (op.getAsyncToken())
    return replaceToken(builder, op);
  if (callerWaits && !isa<gpu::WaitOp>(op))
    return;
  call(builder, op.getLoc(), "kvcacheStreamSynchronize",
       getStream(builder, op.getLoc()), what);
}

void DeviceCalls::replaceToken(OpBuilder &builder, gpu::AsyncOpInterface op) {
  if (Value token = op.getAsyncToken())
    token.replaceAllUsesWith(getStream(builder, op.getLoc()));
}

Value kvcache::toI64(OpBuilder &builder, Location loc, Value value) {
  Type i64 = builder.getI64Type();
  if (value.getType() == i64)
    return value;
  if (isa<IndexType>(value.getType()))
    return arith::IndexCastOp::create(builder, loc, i64, value);
  return arith::ExtSIOp::create(builder, loc, i64, value);
}

VectorType kvcache::getDescriptorBytesType(MLIRContext *context) {
  return VectorType::get(kDescriptorBytes, IntegerType::get(context, 8));
}
