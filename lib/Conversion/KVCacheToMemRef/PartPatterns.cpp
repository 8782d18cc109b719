//===- PartPatterns.cpp - The tensors of a cache --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"

#include "kvcache/IR/PartOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Replaces an op by a memref that `lower` makes of the parts of its cache.
template <typename OpTy> struct LowerPart : OpConversionPattern<OpTy> {
  using OneToNOpAdaptor = typename OpConversionPattern<OpTy>::OneToNOpAdaptor;
  using LowerFn = Value (*)(const Bundle &cache, MemRefType type);

  LowerPart(const TypeConverter &converter, MLIRContext *context, LowerFn lower)
      : OpConversionPattern<OpTy>(converter, context), lower(lower) {}

  LogicalResult
  matchAndRewrite(OpTy op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle cache(rewriter, op.getLoc(), op.getCache().getType(),
                 adaptor.getCache());
    rewriter.replaceOp(op, lower(cache, cast<MemRefType>(op.getType())));
    return success();
  }

private:
  LowerFn lower;
};

/// The memory at `pointer` with these sizes and distances.
Value makeWindow(const Bundle &cache, MemRefType type, Value pointer,
                 ArrayRef<OpFoldResult> sizes, ArrayRef<OpFoldResult> strides) {
  auto [buffer, start] = cache.takeApart(pointer);
  return memref::ReinterpretCastOp::create(cache.builder, cache.loc, type,
                                           buffer, OpFoldResult(start), sizes,
                                           strides);
}

Value lowerBlocks(const Bundle &cache, MemRefType type) {
  return cache.getMemory(type);
}

Value lowerCacheLengths(const Bundle &cache, MemRefType type) {
  return makeWindow(cache, type, cache.get(PartKind::Lengths),
                    {cache.getIndex(PartKind::Batch)},
                    {cache.builder.getIndexAttr(1)});
}

Value lowerLookupTable(const Bundle &cache, MemRefType type) {
  OpFoldResult one = cache.builder.getIndexAttr(1);
  TableKind kind = cache.getCacheType().getTable();
  PartKind rows =
      kind == TableKind::Rows ? PartKind::NumTableRows : PartKind::Batch;
  Value table = cache.get(PartKind::Table);
  if (type.getRank() == 2)
    return makeWindow(cache, type, table,
                      {cache.getIndex(rows), cache.getIndex(PartKind::Columns)},
                      {cache.getIndex(PartKind::TableStride), one});
  if (kind == TableKind::CSR)
    rows = PartKind::Columns;
  return makeWindow(cache, type, table, {cache.getIndex(rows)}, {one});
}

} // namespace

void kvcache::populatePartPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerPart<BlocksOp>>(converter, context, lowerBlocks);
  patterns.add<LowerPart<CacheLengthsOp>>(converter, context,
                                          lowerCacheLengths);
  patterns.add<LowerPart<LookupTableOp>>(converter, context, lowerLookupTable);
}
