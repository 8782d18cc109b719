//===- Bundle.h - The values that a cache becomes ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cache expands to a bundle of values, its parts. `Bundle` finds a part by
// its kind, and builds the address arithmetic that all op families share, over
// the cache or over its scales.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_BUNDLE_H
#define KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_BUNDLE_H

#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Support/IndexBuilder.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::kvcache {

/// Builds the arithmetic of offsets and addresses.
class AddressBuilder : public IndexBuilder {
public:
  /// Offsets are not negative, and below 2^31 in 32 bits and 2^63 in 64.
  AddressBuilder(OpBuilder &builder, Location loc)
      : IndexBuilder(builder, loc,
                     arith::IntegerOverflowFlags::nsw |
                         arith::IntegerOverflowFlags::nuw) {}

  /// Sums and products of distances, which may be negative.
  Value addSigned(Value lhs, Value rhs) const;
  Value mulSigned(Value lhs, Value rhs) const;

  /// The buffer that `pointer` points into, and the element.
  std::pair<Value, Value> takeApart(Value pointer) const;
  /// `pointer` moved by `offset` elements.
  Value advance(Value pointer, Value offset) const;
  /// The memory at `pointer` as a one-dimensional memref. Its size is of no
  /// consequence, but not so large that arithmetic on it could overflow.
  Value window(Value pointer, Value size) const;
};

/// The parts of one value, and the addresses in it.
class Bundle : public AddressBuilder {
public:
  Bundle(OpBuilder &builder, Location loc, Type type, ValueRange values);

  /// Gives these values for the view of the cache's scales.
  Bundle getScales() const;

  /// The part of this kind, which the type must have. Over scales it is theirs:
  /// their base for the blocks, and so on.
  Value get(PartKind kind) const;
  /// A size of one of the tensors, extended to index. Not for what authors give
  /// in 32 bits, such as the maximum lengths.
  Value getIndex(PartKind kind) const;
  /// All parts of this kind, in order.
  SmallVector<Value> getAll(PartKind kind) const;

  /// The cache whose parts these are, or the view of its scales; null for row
  /// indices.
  CacheTypeInterface getCacheType() const { return cache; }

  /// The distance from a row to the next, in stored elements: `H * E` in packed
  /// rows.
  int64_t getRowPitch() const { return cache.getTokenStride(); }
  /// `head * S_head`, in stored elements, of the type of `head`; index if the
  /// stride is known only at run time.
  Value getHeadOffset(Value head) const;
  /// The cache lengths and the lookup table as one-dimensional memrefs.
  Value getLengths() const;
  Value getTable() const;
  /// The index in the lookup table of the entry for token `token`.
  Value getTableIndex(Value batch, Value token) const;
  /// The first entry of the sequence in a `csr` table, or its row in a `rows`
  /// table.
  Value getTableStart(Value batch) const;
  /// The tokens for which a sequence has entries: `batch`, or any if it is
  /// null.
  Value getTokens(Value batch) const;
  /// Tokens in a page, or in a block of a continuous cache, as index.
  Value getPageSize() const;
  /// The page of a token: `known`, or an entry of the lookup table.
  Value getPage(Value batch, Value token, Value known = {}) const;
  /// The token's row in its page: 32 bits over pages, index over blocks.
  Value getRowInPage(Value token) const;
  /// The rows from the first to the last of the view: `num_kv_rows`.
  Value getNumRows() const;
  /// The distance between pages in rows.
  Value getRowsPerPage() const;
  /// `page * S + row`, as index.
  Value getRow(Value page, Value rowInPage) const;
  /// The stored element `(b, h, t, d)`, counted from the view's base.
  Value getElement(Value batch, Value head, Value token, Value element,
                   Value knownPage) const;
  /// The blocks of the view as a one-dimensional memref.
  Value getBlocks() const;
  /// The blocks of a view or collection with their sizes and strides, of a type
  /// that leaves to run time what the type of the cache does not say.
  Value getMemory(MemRefType type) const;

private:
  /// `token div P` in 32 bits, of a paged cache.
  Value getColumn(Value token) const;
  /// The stored element of a head, or its scale, that holds element `d`.
  Value getLane(Value element) const;
  /// The row and the column in memory of element `d` of a row: others only for
  /// interleaved scales.
  Value getStoredRow(Value rowInPage, Value element) const;
  Value getStoredElement(Value rowInPage, Value element) const;
  /// The offset in its page of the stored element `(h, t, d)`, as index.
  Value getInPage(Value head, Value rowInPage, Value element) const;

  /// The type whose parts these are.
  ExpandableTypeInterface type;
  CacheTypeInterface cache;
  ValueRange values;
};

/// The value of an operand that is not a cache, or null if it is absent.
inline Value getSingle(ValueRange operand) {
  return operand.empty() ? Value() : llvm::getSingleElement(operand);
}

/// Gives the alignment of the blocks and scales that `op` accesses: 16 bytes,
/// and 32 for a chip with 256-bit loads.
int64_t getBaseAlignment(Operation *op);

/// One family of patterns each, by the file of the same name.
void populateViewPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);
void populateQueryPatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns);
void populateAccessPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns);
void populateScalesPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns);
void populatePartPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);
void populateQuantizationPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns);
void populateTensorMapPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns);
void populateTilePatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);
void populatePageTablePatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_BUNDLE_H
