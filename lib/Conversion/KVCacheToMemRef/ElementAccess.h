//===- ElementAccess.h - Loads and stores of a view -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_ELEMENTACCESS_H
#define KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_ELEMENTACCESS_H

#include "Bundle.h"

namespace mlir::kvcache {

/// Where an access starts; the page is null if it has to be looked up.
struct AccessIndices {
  template <typename AdaptorTy>
  AccessIndices(AdaptorTy adaptor, ValueRange page)
      : batch(getSingle(adaptor.getBatch())),
        head(getSingle(adaptor.getHead())),
        token(getSingle(adaptor.getToken())),
        element(getSingle(adaptor.getElement())), page(getSingle(page)) {}

  Value batch, head, token, element, page;
};

/// Consecutive elements of a head, or consecutive scales.
class ElementAccess {
public:
  ElementAccess(Bundle cache, const AccessIndices &indices);

  /// Loads a scalar or a vector of them.
  Value load(Operation *op, Type type, bool nontemporal = false) const;
  /// Stores a scalar or a vector of them.
  void store(Operation *op, Value value, bool nontemporal = false) const;
  /// Loads or stores the elements that hold a vector of `lanes` lanes: bytes of
  /// 4-bit elements, the first one low.
  Value loadStored(Operation *op, int64_t lanes, bool nontemporal) const;
  void storeStored(Operation *op, Value stored, bool nontemporal) const;
  /// The zero points of the groups of these scales.
  ElementAccess getZeroPoints() const;
  /// Gives an access to these elements of the token `offset` later in the page.
  ElementAccess getRow(int64_t offset) const;
  /// The memory from the first of them on, a row for each token.
  Value getTile(MemRefType tile) const;

private:
  /// Whether lanes follow each other. Interleaved scales of a token do not.
  bool isContiguous(int64_t lanes) const;
  /// The stored element of a lane.
  Value getPosition(int64_t lane) const;
  Value loadLanes(VectorType type) const;
  void storeLanes(Value value) const;

  Bundle cache;
  AccessIndices indices;
  /// The first stored element, counted from the view's base.
  Value position;
};

/// Lowers an op to one load or store, or to the memory that it would access:
/// `lower` gets the values of the op's first operand, and gives its result, if
/// it has one.
template <typename OpTy, bool isScales>
struct LowerAccess : OpConversionPattern<OpTy> {
  using OneToNOpAdaptor = typename OpConversionPattern<OpTy>::OneToNOpAdaptor;
  using LowerFn = Value (*)(OpTy op, const ElementAccess &first,
                            ValueRange operand);

  LowerAccess(const TypeConverter &converter, MLIRContext *context,
              LowerFn lower)
      : OpConversionPattern<OpTy>(converter, context), lower(lower) {}

  LogicalResult
  matchAndRewrite(OpTy op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle cache(rewriter, op.getLoc(), op.getCache().getType(),
                 adaptor.getCache());
    ValueRange page;
    if constexpr (isScales)
      page = adaptor.getScalePage();
    else
      page = adaptor.getPage();
    ElementAccess first(isScales ? cache.getScales() : cache,
                        AccessIndices(adaptor, page));
    if (Value result = lower(op, first, adaptor.getOperands().front()))
      rewriter.replaceOp(op, result);
    else
      rewriter.eraseOp(op);
    return success();
  }

private:
  LowerFn lower;
};

/// Adds the lowering of an op that accesses elements, or scales.
template <typename OpTy>
void addAccess(const TypeConverter &converter, RewritePatternSet &patterns,
               Value (*lower)(OpTy, const ElementAccess &, ValueRange)) {
  patterns.add<LowerAccess<OpTy, /*isScales=*/false>>(
      converter, patterns.getContext(), lower);
}
template <typename OpTy>
void addScalesAccess(const TypeConverter &converter,
                     RewritePatternSet &patterns,
                     Value (*lower)(OpTy, const ElementAccess &, ValueRange)) {
  patterns.add<LowerAccess<OpTy, /*isScales=*/true>>(
      converter, patterns.getContext(), lower);
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_ELEMENTACCESS_H
