//===- WarpgroupCores.cpp - Products of tiles by warpgroups ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupCores.h"

#include "kvcache/IR/MatrixOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

SmallVector<Value> WarpgroupCores::wait(ValueRange started) const {
  auto wait = MmaWaitOp::create(builder, loc, started, /*pending=*/0);
  SmallVector<Value> all;
  for (Value complete : wait.getResults())
    llvm::append_range(
        all, vector::ToElementsOp::create(builder, loc, complete).getResults());
  return all;
}

SmallVector<Value>
WarpgroupCores::multiplyRows(Value queries, Value firstRow, Value keys,
                             function_ref<void()> meanwhile) const {
  // Half of the 128 threads share a row of a column.
  int64_t columns = cast<TileType>(keys.getType()).getRows();
  auto type = VectorType::get(columns / 2, builder.getF32Type());
  Value zero = frame.index(0);
  Value started = MmaOp::create(builder, loc, type, queries, firstRow, zero,
                                keys, zero, zero, /*accumulators=*/Value(),
                                /*k=*/IntegerAttr());
  meanwhile();
  return wait(started);
}

SmallVector<Value> WarpgroupCores::addColumns(ArrayRef<Fragment> weights,
                                              Value values, Value firstColumn,
                                              ArrayRef<Value> sums) const {
  Type element = cast<TileType>(values.getType()).getElementType();
  Value left = TensorCores::join(frame, weights, element);
  auto type =
      VectorType::get(static_cast<int64_t>(sums.size()), builder.getF32Type());
  Value added = vector::FromElementsOp::create(builder, loc, type, sums);
  return wait(MmaOp::create(builder, loc, type, left, /*a_row=*/Value(),
                            /*a_column=*/Value(), values, frame.index(0),
                            firstColumn, added, /*k=*/IntegerAttr(), Major::K,
                            Major::MN)
                  .getResult());
}

void WarpgroupCores::emitFence() const {
  NVVM::FenceProxyOp::create(
      builder, loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(builder.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}
