//===- QuantizationPatterns.cpp - Quantize and dequantize -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"

#include "kvcache/IR/QuantizationOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct LowerQuantize : OpConversionPattern<QuantizeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(QuantizeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type scaleType = op.getScale().getType();
    int64_t granularity =
        getNumLanes(op.getValue().getType()) / getNumLanes(scaleType);
    int64_t spread = op.getLanes().value_or(1);
    // A vector of one scale may be asked for.
    auto asAsked = [&](Value numbers) -> Value {
      if (numbers.getType() == scaleType)
        return numbers;
      return vector::FromElementsOp::create(
          rewriter, op.getLoc(), cast<VectorType>(scaleType), numbers);
    };
    if (op.getZeroPoint()) {
      Quantized result = quantizeToPairs(
          rewriter, op.getLoc(), adaptor.getValue(), granularity,
          cast<FloatType>(getLaneType(scaleType)), spread);
      Value pairs = vector::BitCastOp::create(
          rewriter, op.getLoc(), cast<VectorType>(op.getQuantized().getType()),
          result.rows.front());
      rewriter.replaceOp(
          op, {pairs, asAsked(result.scales), asAsked(result.zeroPoints)});
      return success();
    }
    Quantized result = quantize(rewriter, op.getLoc(), adaptor.getValue(),
                                {granularity, adaptor.getTensorScale(),
                                 op.getPowerOfTwo(), op.getLeastAmax(), spread},
                                getLaneType(op.getQuantized().getType()),
                                getLaneType(scaleType));
    rewriter.replaceOp(op, {result.rows.front(), asAsked(result.scales)});
    return success();
  }
};

struct LowerDequantize : OpConversionPattern<DequantizeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(DequantizeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    int64_t granularity =
        getNumLanes(op.getType()) / getNumLanes(op.getScale().getType());
    rewriter.replaceOp(
        op, dequantize(rewriter, op.getLoc(), adaptor.getQuantized(),
                       adaptor.getScale(), granularity,
                       adaptor.getTensorScale(), getLaneType(op.getType())));
    return success();
  }
};

struct LowerStoreQuantized : OpConversionPattern<StoreQuantizedOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreQuantizedOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    CacheTypeInterface type = op.getCache().getType();
    Bundle cache(rewriter, op.getLoc(), type, adaptor.getCache());
    if (!type.isQuantized()) {
      Value scaled = divideByTensor(
          rewriter, op.getLoc(), getSingle(adaptor.getValue()),
          getSingle(adaptor.getTensorScale()), type.getElementType());
      ElementAccess(cache, AccessIndices(adaptor, adaptor.getPage()))
          .store(op, scaled, op.getNontemporal());
      rewriter.eraseOp(op);
      return success();
    }
    Quantized result = quantizeRows(op, adaptor, rewriter);
    ElementAccess first(cache, AccessIndices(adaptor, adaptor.getPage()));
    for (auto [token, row] : llvm::enumerate(result.rows))
      storeRow(op, token ? first.getRow(token) : first, row);
    Bundle scales = cache.getScales();
    ElementAccess scale(scales, AccessIndices(adaptor, adaptor.getScalePage()));
    scale.store(op, result.scales);
    if (result.zeroPoints)
      scale.getZeroPoints().store(op, result.zeroPoints);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Quantizes the values of one token, or of those that share scales.
  static Quantized quantizeRows(StoreQuantizedOp op, OneToNOpAdaptor adaptor,
                                OpBuilder &builder) {
    CacheTypeInterface type = op.getCache().getType();
    Value value = getSingle(adaptor.getValue());
    SmallVector<Value> rows = {value};
    if (int64_t tokens = op.getAccessedTokens(); tokens > 1) {
      rows.clear();
      for (int64_t token = 0; token < tokens; ++token)
        rows.push_back(
            vector::ExtractOp::create(builder, op.getLoc(), value, token));
    }
    if (type.hasZeroPoints())
      return quantizeToPairs(builder, op.getLoc(), rows, type.getGranularity(),
                             cast<FloatType>(type.getScale()));
    return quantize(builder, op.getLoc(), rows,
                    {type.getGranularity(), getSingle(adaptor.getTensorScale()),
                     op.getPowerOfTwo(), op.getLeastAmax()},
                    type.getElementType(), type.getScale());
  }

  /// Stores quantized values, or bytes of pairs of them.
  static void storeRow(StoreQuantizedOp op, const ElementAccess &access,
                       Value row) {
    CacheTypeInterface type = op.getCache().getType();
    if (type.hasZeroPoints())
      access.storeStored(op, row, op.getNontemporal());
    else
      access.store(op, row, op.getNontemporal());
  }
};

Value lowerLoadQuantized(LoadQuantizedOp op, const ElementAccess &first,
                         ValueRange) {
  return first.load(op, op.getType(), op.getNontemporal());
}

} // namespace

void kvcache::populateQuantizationPatterns(const TypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns.add<LowerQuantize, LowerDequantize, LowerStoreQuantized>(
      converter, patterns.getContext());
  addAccess(converter, patterns, lowerLoadQuantized);
}
