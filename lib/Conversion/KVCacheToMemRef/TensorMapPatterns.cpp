//===- TensorMapPatterns.cpp - Descriptors of views -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/TensorMapOps.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Puts the extents of the view in the geometry of its descriptor.
struct LowerTensorMap : OpInterfaceConversionPattern<TensorMapOpInterface> {
  using OpInterfaceConversionPattern::OpInterfaceConversionPattern;

  LogicalResult
  matchAndRewrite(TensorMapOpInterface op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (isInGPUCode(op))
      return op.emitOpError("expects host code: a kernel takes descriptors as "
                            "arguments");
    Bundle cache(rewriter, op.getLoc(), op.getViewed().getType(), operands[0]);
    tma::OpenTensorMap map = op.getTensorMap();
    if (countsRows(map) && failed(checkDistance(op, cache)))
      return failure();
    SmallVector<Value> sizes, strides;
    for (int dim = 0; dim < map.rank; ++dim) {
      sizes.push_back(getSize(op, cache, map.dims[dim]));
      if (dim > 0)
        strides.push_back(getSize(op, cache, map.strides[dim]));
    }
    rewriter.replaceOpWithNewOp<EncodeTensorMapOp>(
        op, op.getDescriptor().getType(), cache.get(PartKind::Blocks), sizes,
        strides, map.offset);
    return success();
  }

private:
  /// Whether a dimension goes through the rows of all pages.
  static bool countsRows(const tma::OpenTensorMap &map) {
    return llvm::any_of(map.dims, [](const tma::Size &size) {
      return size.of == &tma::Extents::rows;
    });
  }

  /// Pages lie whole rows apart, if there are several.
  static LogicalResult checkDistance(TensorMapOpInterface op,
                                     const Bundle &cache) {
    std::optional<bool> isWhole = arePagesWholeRowsApart(op.getViewed());
    if (isWhole == true)
      return success();
    int64_t row = cache.getRowPitch();
    if (isWhole == false)
      return op->emitOpError("expects pages a whole number of rows (")
             << row << " elements) apart, because it counts rows";
    createRowDistanceCheck(cache.builder, op, cache.get(PartKind::PageStride),
                           cache.getIndex(PartKind::NumPages), row);
    return success();
  }

  static Value getSize(TensorMapOpInterface op, const Bundle &cache,
                       tma::Size size) {
    if (!size.of)
      return cache.index(size.constant);
    Value extent = getExtent(cache, size.of);
    if (size.divisor > 1) {
      Value divisor = cache.index(size.divisor);
      CheckOp::create(cache.builder, cache.loc, cache.rem(extent, divisor),
                      cache.index(1),
                      ("'" + op->getName().getStringRef() +
                       "' op distance between pages or heads modulo an element "
                       "of the descriptor (" +
                       Twine(size.divisor) + " elements), which must be 0,")
                          .str());
      extent = cache.div(extent, divisor);
    }
    return size.constant ? cache.add(extent, cache.index(size.constant))
                         : extent;
  }

  static Value getExtent(const Bundle &cache, int64_t tma::Extents::*of) {
    if (of == &tma::Extents::rows)
      return cache.getNumRows();
    if (of == &tma::Extents::pages)
      return cache.getIndex(PartKind::NumPages);
    if (of == &tma::Extents::headStride)
      return cache.get(PartKind::HeadStride);
    return cache.get(PartKind::PageStride);
  }
};

} // namespace

void kvcache::populateTensorMapPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<LowerTensorMap>(converter, patterns.getContext());
}
