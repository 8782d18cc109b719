//===- PageTablePatterns.cpp - Page-table prefetch ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"
#include "kvcache/IR/PageTableOps.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The alignment of a read of `width` table entries. On a GPU rows of the table
/// are allocated so that each read is aligned to its own size, of which a chip
/// uses at most 16 bytes at once; on the CPU a table is aligned to its entries.
llvm::Align getTableAlignment(Operation *op, int64_t width) {
  constexpr int64_t entryBytes = 4;
  if (!isInGPUCode(op))
    return llvm::Align(entryBytes);
  return llvm::Align(std::min(width * entryBytes, getBaseAlignment(op)));
}

struct LowerPopulate : OpConversionPattern<PopulateOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PopulateOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle cache(rewriter, op.getLoc(), op.getCache().getType(),
                 adaptor.getCache());
    Value batch = getSingle(adaptor.getBatch());
    Value base = getSingle(adaptor.getBase());
    SmallVector<Value> parts;
    if (op.getRows().getType().getNumPages() == 1)
      parts.push_back(lowerOnePage(op, cache, batch, base));
    else
      parts = lowerPages(op, cache, batch, base);
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }

private:
  /// The row of `base`; of its page, where base is known to start one.
  Value lowerOnePage(PopulateOp op, const Bundle &cache, Value batch,
                     Value base) const {
    CacheTypeInterface type = op.getCache().getType();
    bool startsPage = type.hasStaticPageSize() &&
                      op.getKnownBaseAlignment() % type.getPageSize() == 0;
    Value rowInPage = startsPage ? cache.i32(0) : cache.getRowInPage(base);
    return cache.getRow(cache.getPage(batch, base), rowInPage);
  }

  /// The rows of the pages' first tokens, then what a dynamic `get_row` needs.
  SmallVector<Value> lowerPages(PopulateOp op, const Bundle &cache, Value batch,
                                Value base) const {
    OpBuilder &builder = cache.builder;
    int64_t numPages = op.getRows().getType().getNumPages();
    int64_t width = op.getReadWidth();
    auto entriesType = VectorType::get({width}, builder.getI32Type());
    llvm::Align alignment = getTableAlignment(op, width);

    Value table = cache.getTable();
    Value first = cache.getTableIndex(batch, base);
    Value rowsPerPage = cache.getRowsPerPage();
    SmallVector<Value> parts;
    for (int64_t page = 0; page < numPages; page += width) {
      Value entries =
          vector::LoadOp::create(builder, cache.loc, entriesType, table,
                                 cache.add(first, cache.index(page)),
                                 /*nontemporal=*/false, alignment);
      for (int64_t lane = 0; lane < width; ++lane) {
        Value entry =
            vector::ExtractOp::create(builder, cache.loc, entries, lane);
        parts.push_back(cache.mul(cache.fromI32(entry), rowsPerPage));
      }
    }
    parts.push_back(cache.advance(cache.get(PartKind::Table), first));
    parts.push_back(rowsPerPage);
    return parts;
  }
};

struct LowerGetRow : OpConversionPattern<GetRowOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GetRowOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RowIndicesType type = op.getRows().getType();
    Bundle rows(rewriter, op.getLoc(), type, adaptor.getRows());
    SmallVector<Value> firstRows = rows.getAll(PartKind::Row);
    int64_t pageRows = type.getRowsPerPage();
    Value offset = getSingle(adaptor.getOffset());

    if (type.getNumPages() == 1) {
      rewriter.replaceOp(op, rows.add(firstRows.front(), offset));
      return success();
    }
    std::optional<int64_t> constant = getConstantIntValue(offset);
    if (constant && *constant >= 0 && *constant < type.getRows()) {
      rewriter.replaceOp(op, rows.add(firstRows[*constant / pageRows],
                                      rows.index(*constant % pageRows)));
      return success();
    }
    Value table = rows.window(rows.get(PartKind::TableEntry),
                              rows.index(type.getNumPages()));
    Value page = rows.fromI32(rows.div(rows.toI32(offset), pageRows));
    Value entry = memref::LoadOp::create(rewriter, op.getLoc(), table, page);
    Value rowInPage = rows.fromI32(rows.rem(rows.toI32(offset), pageRows));
    rewriter.replaceOp(op, rows.add(rows.mul(rows.fromI32(entry),
                                             rows.get(PartKind::RowsPerPage)),
                                    rowInPage));
    return success();
  }
};

} // namespace

void kvcache::populatePageTablePatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<LowerPopulate, LowerGetRow>(converter, patterns.getContext());
}
