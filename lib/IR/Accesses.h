//===- Accesses.h - Common parts of ops that address a cache ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IR_ACCESSES_H
#define KVCACHE_LIB_IR_ACCESSES_H

#include "kvcache/IR/KVCacheDialect.h"

/// Defines the interface methods of an op with the operands cache, batch, head,
/// token and element.
#define KVCACHE_DEFINE_INDICES(OpTy)                                           \
  TypedValue<CacheTypeInterface> OpTy::getAccessedCache() {                    \
    return asCache(getCache());                                                \
  }                                                                            \
  Value OpTy::getAccessedBatch() { return getBatch(); }                        \
  Value OpTy::getAccessedHead() { return getHead(); }                          \
  Value OpTy::getAccessedToken() { return getToken(); }                        \
  Value OpTy::getAccessedElement() { return getElement(); }

/// Defines the interface methods of an op with an operand for the page of its
/// elements, or of its scales.
#define KVCACHE_DEFINE_PAGE(OpTy)                                              \
  std::optional<MutableOperandRange> OpTy::getPageOperand() {                  \
    return getPageMutable();                                                   \
  }
#define KVCACHE_DEFINE_SCALE_PAGE(OpTy)                                        \
  bool OpTy::accessesScales() { return true; }                                 \
  std::optional<MutableOperandRange> OpTy::getScalePageOperand() {             \
    return getScalePageMutable();                                              \
  }

namespace mlir::kvcache {

/// Casts a cache to the type that the access interface returns.
inline TypedValue<CacheTypeInterface> asCache(Value cache) {
  return cast<TypedValue<CacheTypeInterface>>(cache);
}

/// Checks that the operand or result `name` of an op has at most the number of
/// lanes of a head, and an even number for a 4-bit cache.
LogicalResult verifyWidth(Operation *op, StringRef name, Type type,
                          CacheTypeInterface cache);

/// Checks (C1) to (C3) of the ops that return a tile of `cache`.
LogicalResult verifyTile(Operation *op, MemRefType tile,
                         CacheTypeInterface cache);

/// Checks that an op has `tensorScale` only for elements of at most 8 bits.
LogicalResult verifyTensorScale(Operation *op, Value tensorScale,
                                CacheTypeInterface cache);

/// Checks that scales of `type`, null for none, hold all powers of two.
LogicalResult verifyPowerOfTwo(Operation *op, Type type);
/// Checks this for the scales of a cache, which must have no zero points.
LogicalResult verifyPowerOfTwo(Operation *op, CacheTypeInterface cache);

/// Checks that an op with `leastAmax` has powers of two as scales.
LogicalResult verifyLeastAmax(Operation *op, bool leastAmax, bool powerOfTwo);

/// Whether the length of sequence `batch` provably exists: `batch` is a
/// constant below the static size of the lengths of `cache`.
bool isLengthInRange(Value cache, Value batch);

/// Whether the entries for `tokens` tokens of sequence `batch` from `token` on
/// provably exist in the lookup table, or in that of the scales.
bool areEntriesInRange(Value cache, Value batch, Value token, int64_t tokens,
                       bool isScales = false);

/// The range `[0, max]` of an index.
ConstantIntRanges getRangeUpTo(uint64_t max);
/// The range of table entries, lengths and sizes: unsigned 32-bit numbers.
ConstantIntRanges getEntryRange();
/// The range of rows in a page of `cache`, which must be paged.
ConstantIntRanges getRowInPageRange(CacheTypeInterface cache);
/// The range of rows: nonnegative numbers.
ConstantIntRanges getRowRange();

inline Speculation::Speculatability speculateIf(bool inRange) {
  return inRange ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_ACCESSES_H
