//===- IndexBuilder.cpp - Index arithmetic --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

Value IndexBuilder::index(int64_t value) const {
  return arith::ConstantIndexOp::create(builder, loc, value);
}
Value IndexBuilder::i32(int64_t value) const {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}
Value IndexBuilder::add(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::AddIOp>(loc, lhs, rhs, flags);
}
Value IndexBuilder::sub(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::SubIOp>(loc, lhs, rhs, flags);
}
Value IndexBuilder::mul(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::MulIOp>(loc, lhs, rhs, flags);
}
Value IndexBuilder::div(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::DivUIOp>(loc, lhs, rhs);
}
Value IndexBuilder::rem(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::RemUIOp>(loc, lhs, rhs);
}
Value IndexBuilder::min(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::MinSIOp>(loc, lhs, rhs);
}
Value IndexBuilder::max(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::MaxSIOp>(loc, lhs, rhs);
}
Value IndexBuilder::equal(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, lhs,
                                             rhs);
}
Value IndexBuilder::below(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ult,
                                             lhs, rhs);
}
Value IndexBuilder::less(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt,
                                             lhs, rhs);
}
Value IndexBuilder::constantLike(Value value, int64_t constant) const {
  return value.getType().isIndex() ? index(constant) : i32(constant);
}
Value IndexBuilder::mul(Value lhs, int64_t rhs) const {
  return mul(lhs, constantLike(lhs, rhs));
}
Value IndexBuilder::div(Value lhs, int64_t rhs) const {
  return div(lhs, constantLike(lhs, rhs));
}
Value IndexBuilder::rem(Value lhs, int64_t rhs) const {
  return rem(lhs, constantLike(lhs, rhs));
}
Value IndexBuilder::toI32(Value value) const {
  // Signed or not, the low bits are those of the value before.
  Operation *op = value.getDefiningOp();
  if (isa_and_present<arith::IndexCastOp, arith::IndexCastUIOp>(op) &&
      op->getOperand(0).getType().isInteger(32))
    return op->getOperand(0);
  if (value.getType().isInteger(32))
    return value;
  return builder.createOrFold<arith::IndexCastUIOp>(loc, builder.getI32Type(),
                                                    value);
}
Value IndexBuilder::fromI32(Value value) const {
  if (value.getType().isIndex())
    return value;
  return builder.createOrFold<arith::IndexCastUIOp>(loc, builder.getIndexType(),
                                                    value);
}

Value IndexBuilder::selectIf(Value condition, function_ref<Value()> then,
                             function_ref<Value()> otherwise) const {
  OpBuilder::InsertionGuard guard(builder);
  auto branch = scf::IfOp::create(
      builder, loc, condition,
      [&](OpBuilder &, Location) {
        Value value = then();
        scf::YieldOp::create(builder, loc, value);
      },
      [&](OpBuilder &, Location) {
        Value value = otherwise();
        scf::YieldOp::create(builder, loc, value);
      });
  return branch.getResult(0);
}

ValuePair
IndexBuilder::selectPairIf(Value condition, function_ref<ValuePair()> then,
                           function_ref<ValuePair()> otherwise) const {
  OpBuilder::InsertionGuard guard(builder);
  auto yield = [&](const ValuePair &pair) {
    scf::YieldOp::create(builder, loc, ValueRange{pair.first, pair.second});
  };
  auto branch = scf::IfOp::create(
      builder, loc, condition, [&](OpBuilder &, Location) { yield(then()); },
      [&](OpBuilder &, Location) { yield(otherwise()); });
  return {branch.getResult(0), branch.getResult(1)};
}

void IndexBuilder::runIf(Value condition, function_ref<void()> body,
                         function_ref<void()> otherwise) const {
  auto branch = scf::IfOp::create(builder, loc, condition,
                                  /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body();
  if (!otherwise)
    return;
  builder.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

void IndexBuilder::loop(Value first, Value end, Value step,
                        function_ref<void(Value)> body) const {
  auto loop = scf::ForOp::create(builder, loc, first, end, step);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}
