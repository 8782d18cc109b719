//===- FragmentBuilder.cpp - Build ops on fragments -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::kvcache;

Value FragmentBuilder::map(ValueRange fragments, Element element,
                           FragmentOrigin origin, Type type) const {
  SmallVector<Type> types;
  for (Value fragment : fragments)
    types.push_back(cast<FragmentType>(fragment.getType()).getElementType());
  types.append((origin.row ? 1 : 0) + (origin.column ? 1 : 0) +
                   (origin.hasLaneColumns ? 1 : 0),
               builder.getIndexType());
  auto result = cast<FragmentType>(fragments.front().getType());
  if (type)
    result = FragmentType::get(result.getContext(), result.getShape(), type,
                               result.getLayout(), result.getPartial());
  auto map =
      MapOp::create(builder, loc, result, fragments, origin.row, origin.column,
                    origin.row ? thread : Value(), origin.hasLaneColumns);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&map.getBody(), {}, types,
                                    SmallVector<Location>(types.size(), loc));
  YieldOp::create(builder, loc, element(body->getArguments()));
  return map;
}

Value FragmentBuilder::multiply(Value fragment, Value rows) const {
  return map({fragment, rows}, [&](ValueRange elements) -> Value {
    return arith::MulFOp::create(builder, loc, elements[0], elements[1]);
  });
}

Value FragmentBuilder::truncate(Value fragment, FloatType type) const {
  return map(
      fragment,
      [&](ValueRange element) -> Value {
        return arith::TruncFOp::create(builder, loc, type, element.front());
      },
      /*origin=*/{}, type);
}

Value FragmentBuilder::toOperand(FragmentType type, Value fragment) const {
  return ToOperandOp::create(builder, loc, type, fragment);
}

Value FragmentBuilder::splat(FragmentType type, Value value) const {
  return SplatOp::create(builder, loc, type, value);
}

Value FragmentBuilder::load(FragmentType type, Value tile, Value row,
                            Value column, LoadForm form) const {
  return FragmentLoadOp::create(builder, loc, type, tile, row, column, thread,
                                form == LoadForm::Repeated,
                                form == LoadForm::Paired);
}

Value FragmentBuilder::reduce(Reduction kind, Value source, Value init,
                              FragmentType type, Value scratch) const {
  return ReduceOp::create(builder, loc, type, kind, source, init, scratch,
                          scratch ? thread : Value());
}

Value FragmentBuilder::consume(Value pipe, Value use, Type type,
                               function_ref<Value(Value tile)> body) const {
  return consumeAll(
             pipe, use, type,
             [&](Value tile) -> SmallVector<Value> { return {body(tile)}; })
      .front();
}

SmallVector<Value> FragmentBuilder::consumeAll(
    Value pipe, Value use, TypeRange types,
    function_ref<SmallVector<Value>(Value tile)> body) const {
  auto consume = ConsumeOp::create(builder, loc, types, pipe, use);
  OpBuilder::InsertionGuard guard(builder);
  Type tile = cast<PipeType>(pipe.getType()).getTiles()[0];
  Block *block = builder.createBlock(&consume.getBody(), {}, tile, {loc});
  YieldOp::create(builder, loc, body(block->getArgument(0)));
  return SmallVector<Value>(consume.getResults());
}

void FragmentBuilder::recomputePlaces() {
  thread = OpaqueThreadOp::create(builder, loc, builder.getIndexType());
}

void FragmentBuilder::keepThread(function_ref<void()> body) {
  Value before = thread;
  body();
  thread = before;
}

InFlightType FragmentBuilder::getInFlight(FragmentType type) {
  return InFlightType::get(type.getContext(), type.getShape(),
                           type.getElementType(), type.getLayout());
}

Value FragmentBuilder::startProduct(FragmentType type, Value left, Value tile,
                                    Value column, Value acc, Major major,
                                    bool isRowsFirst,
                                    const PackedElements &packed) const {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return FragmentMmaOp::create(
      builder, loc, getInFlight(type), left,
      /*a_row=*/Value(), /*a_column=*/Value(), tile, zero, column, acc,
      isWgmmaAcc(type.getLayout()) ? Value() : thread, packed.scales,
      packed.row, /*k=*/IntegerAttr(), Major::K, major, isRowsFirst,
      /*paired=*/false, packed.type ? TypeAttr::get(packed.type) : TypeAttr());
}

Value FragmentBuilder::startTiles(FragmentType type, Value left, Value row,
                                  Value column, Value right, int64_t k,
                                  Value acc, Major leftMajor,
                                  Major rightMajor) const {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return FragmentMmaOp::create(builder, loc, getInFlight(type), left, row,
                               column, right, zero, zero, acc,
                               /*thread=*/Value(), /*scales=*/Value(),
                               /*scales_row=*/Value(),
                               builder.getI64IntegerAttr(k), leftMajor,
                               rightMajor, /*rows_first=*/false,
                               /*paired=*/false, /*packed=*/TypeAttr());
}

Value FragmentBuilder::wait(Value product) const {
  return FragmentWaitOp::create(builder, loc, product, /*pending=*/0)
      .getResult(0);
}
