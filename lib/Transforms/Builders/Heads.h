//===- Heads.h - Parts of heads, in memory and in caches --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_BUILDERS_HEADS_H
#define KVCACHE_LIB_TRANSFORMS_BUILDERS_HEADS_H

#include "Frame.h"
#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// A token of a cache: of a sequence, or at an offset of a page.
struct Place {
  Value batch;
  Value token;
  /// Null unless `token` is an offset in this page.
  Value page;
};

/// The place of an encoded row of a paged cache: `page * P + offset`.
Place getPlaceOfRow(const Frame &frame, Value cache, Value row);

/// The encoded row of a token of a sequence. With checks, it is below 2^31;
/// `name` is the operand that has the token.
Value encodeRow(const Frame &frame, Value cache, Value batch, Value token,
                StringRef name);

/// Converts floats, or vectors of them, to another lane type, through f32 if
/// neither contains the other.
Value convertLanes(const Frame &frame, Value value, Type lane);

/// The alignment in bytes of `count` elements of a head of dense memory, from a
/// multiple of their number on.
int64_t getDenseAlignment(const Frame &frame, MemRefType type, int64_t count);
/// Loads `count` elements from `d` on of a head of dense memory.
Value loadDense(const Frame &frame, Value memref, ValueRange indices, Value d,
                int64_t count);
/// Rows in one memref, or in two: the second has the last elements of each row,
/// and is null for one.
struct JoinedRows {
  Value first, second;
};
/// Loads such elements of joined rows. Both memrefs have a multiple of `count`.
Value loadJoined(const Frame &frame, const JoinedRows &rows, ValueRange indices,
                 Value d, int64_t count);
/// Stores such elements, converted to the memref's type.
void storeDense(const Frame &frame, Value values, Value memref,
                ValueRange indices, Value d);

/// The factor of a head: a static scale of the cache or of each head, or null.
Value loadStaticScale(const Frame &frame, Value scale, Value head);

/// Loads elements of a cache, dequantized, as `lane`, with a factor unless
/// null. The load is a hint whether other threads read them soon.
Value loadElements(const Frame &frame, Value cache, const Place &place,
                   Value head, Value d, int64_t count, Type lane,
                   Value factor = {}, bool nontemporal = false);

/// The elements of `size` of a head that are loaded at once, at most `most`:
/// those of one group.
int64_t getLanes(Value cache, int64_t size, int64_t most);

/// Whether all elements of a head of a token have one scale, which is
/// multiplied with in f32: sums of products with the elements may be scaled
/// instead.
bool hasTokenScales(CacheTypeInterface cache);
/// Whether elements are multiplied by their scales, if they have any, in f32:
/// products with scales of 16 bits are rounded to these.
bool multipliesInF32(CacheTypeInterface cache);
/// Loads such a scale as f32.
Value loadTokenScale(const Frame &frame, Value cache, const Place &place,
                     Value head);
/// Loads the scale of the group of element `d`, as f32.
Value loadScale(const Frame &frame, Value cache, const Place &place, Value head,
                Value d);
/// The groups of `size` elements of a head that have scales of their own; 0 if
/// the cache has no scales.
int64_t countScaleGroups(Value cache, int64_t size);
/// Loads the scales of so many groups of a head, or their zero points, as f32.
SmallVector<Value> loadScales(const Frame &frame, Value cache,
                              const Place &place, Value head, int64_t groups,
                              bool areZeroPoints = false);
/// Loads the scales of so many groups of a head, as the cache has them.
Value loadStoredScales(const Frame &frame, Value cache, const Place &place,
                       Value head, int64_t groups);
/// Loads elements as `loadElements` does, but without scales of tokens.
Value loadUnscaled(const Frame &frame, Value cache, const Place &place,
                   Value head, Value d, int64_t count, Type lane,
                   bool nontemporal = false);

/// The first `count` elements of a head in memory, [1, stored elements], for
/// prefetches on a CPU. Null unless those of a token lie beside each other.
Value getStoredRow(const Frame &frame, Value cache, const Place &place,
                   Value head, int64_t count);
/// Prefetches the lines of `count` elements from `d` on, in the row of a memref
/// with these indices. A locality of 3 is the first cache, 2 the second one:
/// it is for lines that tiles of other heads would evict from the first.
void prefetchRow(const Frame &frame, Value memref, ValueRange indices, Value d,
                 int64_t count, int32_t locality = 2);
/// Prefetches the lines of `count` stored elements of such a row from `d` on,
/// several times.
void prefetchLines(const Frame &frame, Value row, Value d, int64_t count);
/// The stored elements of a line.
int64_t countInLine(MemRefType row);

class ScaleRow;

/// How elements are stored.
struct StoreOptions {
  /// Threads for which it does not hold store nothing; null for all of them.
  Value condition;
  /// Whether scales are powers of two, and their bound is that of amax.
  bool powerOfTwo = false, leastAmax = false;
  /// The divisor of elements, or null.
  Value factor;
  /// Where scales go, which are stored later; null to store them as well.
  const ScaleRow *scales = nullptr;
};
/// Stores a unit of a head in the format of the cache: rounded, or quantized
/// with the scales of its groups. With several heads, `values` are the units of
/// all, which are quantized together.
void storeElements(const Frame &frame, Value values, Value cache,
                   const Place &place, ValueRange heads, Value d,
                   const Split &split, const StoreOptions &options = {});

/// The heads whose units `storeElements` gets together: on a CPU with vectors
/// of 512 bits, as many of rows of type `row` as registers hold, so that it
/// computes scales in vectors. Otherwise 1.
int64_t countHeadsAtOnce(const Frame &frame, CacheTypeInterface cache,
                         const Split &split, Type row);

/// Stores elements from `d` on of the tokens that share their scales, a row of
/// values for each; `place` is the first. They are divided by a factor unless
/// it is null.
void storeGroup(const Frame &frame, ValueRange rows, Value cache,
                const Place &place, Value head, Value d, Value factor);

/// The split of a head whose groups are quantized by `storeElements`. Threads
/// of a GPU may share a group.
Split splitForStore(const Frame &frame, CacheTypeInterface cache,
                    int64_t boundary, int64_t width);

/// Whether two caches keep values in the same bits.
bool haveOneFormat(CacheTypeInterface lhs, CacheTypeInterface rhs);

/// The split of a head for copies of its bits.
Split splitForCopy(const Frame &frame, CacheTypeInterface cache);

/// Copies a lane's share of a head between caches of one format, with scales.
struct BitCopy {
  Value source, target;
  Place from, to;
  Value sourceHead, targetHead;
};
/// Loads all elements, and returns a function that stores them and copies the
/// scales.
std::function<void()> loadBits(const Frame &frame, const BitCopy &copy,
                               Value lane, const Split &split,
                               bool withScales = true);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_BUILDERS_HEADS_H
