//===- CheckBuilder.cpp - Build checks of an op at run time ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckBuilder.h"

#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

Value CheckBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

Value CheckBuilder::extent(Extent kind, Value cache) {
  return ExtentOp::create(b, b.getIndexType(), kind, cache);
}

Value CheckBuilder::countTokens(Value batch,
                                TypedValue<CacheTypeInterface> cache) {
  // All sequences have the columns of a dense table.
  if (cache.getType().getTable() == TableKind::Dense)
    batch = {};
  return ExtentOp::create(b, b.getIndexType(), Extent::Tokens, cache, batch);
}

Value CheckBuilder::getPageSize(Value cache) {
  return b.createOrFold<ExtentOp>(b.getIndexType(), Extent::PageSize, cache);
}

Value CheckBuilder::getSize(Value memref, int64_t dim) {
  return memref::DimOp::create(b, memref, dim);
}

TypedValue<CacheTypeInterface>
CheckBuilder::getScales(TypedValue<CacheTypeInterface> cache) {
  if (isa<ScalesType>(cache.getType()))
    return cache;
  return cast<TypedValue<CacheTypeInterface>>(
      ScalesViewOp::create(b, cache).getResult());
}

void CheckBuilder::checkBelow(Value value, Value bound, StringRef what) {
  CheckOp::create(b, value, bound, ("'" + name + "' op " + what).str());
  ++numChecks;
}

void CheckBuilder::checkEqual(Value value, int64_t expected, StringRef what) {
  Value difference = arith::SubIOp::create(b, value, index(expected));
  checkBelow(difference, index(1),
             (what + " minus " + Twine(expected) + ", which must be 0,").str());
}

void CheckBuilder::checkMultiple(Value value, int64_t factor, StringRef what) {
  if (factor == 1)
    return;
  Value rest = arith::RemUIOp::create(b, value, index(factor));
  checkBelow(rest, index(1),
             (what + " modulo " + Twine(factor) + ", which must be 0,").str());
}
