//===- VariableShadows.cpp - What variables of a thread hold --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VariableShadows.h"
#include "Families.h"

using namespace mlir;
using namespace mlir::kvcache;

static constexpr unsigned kUnaligned = 1;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void VariableShadows::fill(ShadowBuilder &b, Value address, uint64_t bytes,
                           int64_t value) {
  LLVM::MemsetOp::create(
      b.builder, b.loc, address, b.create<LLVM::ConstantOp>(calls.i8, value),
      b.create<LLVM::ConstantOp>(calls.i64, static_cast<int64_t>(bytes)),
      /*isVolatile=*/false);
}

/// Creates the shadow of a variable: one byte for each of its bytes, which is
/// `value` at first.
Value VariableShadows::createBytes(LLVM::AllocaOp variable, int64_t value) {
  constexpr unsigned alignment = 16;
  uint64_t bytes = getVariableBytes(variable, layout);
  ShadowBuilder b = ShadowBuilder::after(variable);
  Value count =
      b.create<LLVM::ConstantOp>(calls.i64, static_cast<int64_t>(bytes));
  Value memory =
      b.create<LLVM::AllocaOp>(calls.pointerType, calls.i8, count, alignment);
  fill(b, memory, bytes, value);
  return memory;
}

Value VariableShadows::getUnwritten(LLVM::AllocaOp variable) {
  VariableShadow &shadow = shadows[variable];
  if (!shadow.unwritten)
    shadow.unwritten = createBytes(variable, -1);
  return shadow.unwritten;
}

VariableShadows::VariableShadow &
VariableShadows::getStored(LLVM::AllocaOp variable) {
  VariableShadow &shadow = shadows[variable];
  if (shadow.bits)
    return shadow;
  shadow.bits = createBytes(variable, 0);
  ShadowBuilder b = ShadowBuilder::after(variable);
  Value one = b.create<LLVM::ConstantOp>(calls.i64, int64_t{1});
  shadow.origin = b.create<LLVM::AllocaOp>(calls.pointerType, calls.i32, one,
                                           sizeof(uint32_t));
  LLVM::StoreOp::create(b.builder, b.loc, b.zero(calls.i32), shadow.origin);
  return shadow;
}

Value VariableShadows::getOffset(ShadowBuilder &b, Value address,
                                 LLVM::AllocaOp variable) {
  return b.create<LLVM::SubOp>(
      b.create<LLVM::PtrToIntOp>(calls.i64, address),
      b.create<LLVM::PtrToIntOp>(calls.i64, variable.getResult()));
}

Value VariableShadows::getAddress(ShadowBuilder &b, Value address,
                                  LLVM::AllocaOp variable, Value bytes) {
  return b.create<LLVM::GEPOp>(calls.pointerType, calls.i8, bytes,
                               getOffset(b, address, variable));
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

Shadow VariableShadows::loadUnwritten(ShadowBuilder &b, LLVM::LoadOp op,
                                      LLVM::AllocaOp variable) {
  Type type = ShadowBuilder::getType(op.getType());
  Value address = getAddress(b, op.getAddr(), variable, getUnwritten(variable));
  auto constant = [&](int64_t value) {
    return b.create<LLVM::ConstantOp>(calls.i64, value);
  };
  Value origin =
      calls.call(b.builder, op, "kvcacheEmulatorReadUnwritten", calls.i32,
                 {address, constant(getStoreBytes(op.getType(), layout)),
                  getOffset(b, op.getAddr(), variable),
                  constant(getVariableBytes(variable, layout))});
  if (!ShadowBuilder::hasPlainBytes(type, layout))
    return {b.fill(type, b.isNotZero(origin)), origin};
  return {b.create<LLVM::LoadOp>(type, address, kUnaligned), origin};
}

Shadow VariableShadows::loadStored(ShadowBuilder &b, LLVM::LoadOp op,
                                   LLVM::AllocaOp variable) {
  VariableShadow &shadow = getStored(variable);
  Value address = getAddress(b, op.getAddr(), variable, shadow.bits);
  Type type = ShadowBuilder::getType(op.getType());
  return {b.create<LLVM::LoadOp>(type, address, kUnaligned),
          b.create<LLVM::LoadOp>(calls.i32, shadow.origin)};
}

Shadow VariableShadows::load(LLVM::LoadOp op, LLVM::AllocaOp variable) {
  ShadowBuilder b = ShadowBuilder::after(op);
  if (!maybe.isInVariable(variable))
    return loadUnwritten(b, op, variable);
  Shadow stored = loadStored(b, op, variable);
  if (!maybe.isReadUnwritten(variable))
    return stored;
  Shadow unwritten = loadUnwritten(b, op, variable);
  Value isUnwritten = b.isNotZero(unwritten.origin);
  Type type = stored.bits.getType();
  bool hasParts = isa<LLVM::LLVMArrayType, LLVM::LLVMStructType>(type);
  Value bits = hasParts ? b.create<LLVM::SelectOp>(isUnwritten, unwritten.bits,
                                                   stored.bits)
                        : b.create<LLVM::OrOp>(unwritten.bits, stored.bits);
  return {bits, b.create<LLVM::SelectOp>(isUnwritten, unwritten.origin,
                                         stored.origin)};
}

void VariableShadows::store(LLVM::StoreOp op, LLVM::AllocaOp variable,
                            Shadow shadow) {
  Type type = op.getValue().getType();
  ShadowBuilder b = ShadowBuilder::after(op);
  if (maybe.isReadUnwritten(variable))
    fill(b, getAddress(b, op.getAddr(), variable, getUnwritten(variable)),
         getStoreBytes(type, layout), 0);
  if (!maybe.isInVariable(variable))
    return;
  VariableShadow &stored = getStored(variable);
  Value bits = shadow ? shadow.bits : b.zero(ShadowBuilder::getType(type));
  LLVM::StoreOp::create(b.builder, b.loc, bits,
                        getAddress(b, op.getAddr(), variable, stored.bits),
                        kUnaligned);
  if (!shadow)
    return;
  Value old = b.create<LLVM::LoadOp>(calls.i32, stored.origin);
  Value origin = b.create<LLVM::SelectOp>(b.any(bits), shadow.origin, old);
  LLVM::StoreOp::create(b.builder, b.loc, origin, stored.origin);
}

void VariableShadows::empty(Operation *lifetime) {
  LLVM::AllocaOp variable = maybe.findVariable(lifetime->getOperand(0));
  if (!variable || !maybe.isReadUnwritten(variable))
    return;
  ShadowBuilder b = ShadowBuilder::after(lifetime);
  fill(b, getUnwritten(variable), getVariableBytes(variable, layout), -1);
}
