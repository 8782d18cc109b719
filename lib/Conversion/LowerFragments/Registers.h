//===- Registers.h - The registers of fragments -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_REGISTERS_H
#define KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_REGISTERS_H

#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/Support/IndexBuilder.h"

#include "mlir/Transforms/DialectConversion.h"

namespace mlir::kvcache {

/// Returns the elements of a thread, from its registers.
SmallVector<Value> unpack(OpBuilder &builder, Location loc, FragmentType type,
                          ValueRange registers);
/// Returns the registers of the elements of a thread.
SmallVector<Value> pack(OpBuilder &builder, Location loc, FragmentType type,
                        ArrayRef<Value> elements);

/// Makes a vector of all registers, and elements of words.
Value join(OpBuilder &builder, Location loc, FragmentType type,
           ValueRange registers);
/// Returns the elements of a vector.
SmallVector<Value> split(OpBuilder &builder, Location loc, Value vector);

/// Returns the elements that have these numbers.
SmallVector<Value> select(ArrayRef<Value> elements, ArrayRef<int64_t> numbers);

/// Returns whether one instruction adds to two f32 of a fragment: on some
/// chips, for those beside tensor memory. Others are where an accumulator takes
/// most registers, and pairs take more. Products are not paired: ptxas adds to
/// a paired product before it is rounded, although both have a rounding mode.
bool addsPairs(Operation *op, FragmentType type);

/// Returns whether a condition holds in any lane of the warp.
Value voteAny(OpBuilder &builder, Location loc, Value condition);

/// The place of a thread in its team. `thread` is its number in the block, or
/// null.
struct TeamThread {
  Value warp, lane;

  static TeamThread get(const IndexBuilder &b, FragmentType type,
                        Value thread = {});
};

/// The place of the first element of a thread in a fragment, and of its lane
/// among the columns of a warp.
struct FirstPlace {
  Value row, column, laneColumn;

  static FirstPlace get(const IndexBuilder &b, FragmentType type,
                        Value thread = {});
};

/// Adds the pattern for map.
void populateMapPatterns(const TypeConverter &converter,
                         RewritePatternSet &patterns);
/// Adds the patterns for splat, reduce, warp_any and to_operand.
void populateElementPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns);
/// Adds the patterns for loads from tiles and stores into them.
void populateTileAccessPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns);
/// Adds the patterns for loads from tensor memory and stores into it.
void populateTensorMemoryPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns);
/// Adds the pattern for stores of rows into memrefs.
void populateRowPatterns(const TypeConverter &converter,
                         RewritePatternSet &patterns);
/// Adds the patterns for products by mma.sync.
void populateSyncPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);
/// Adds the patterns for products by wgmma, and for waits.
void populateWgmmaPatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns);

/// Emits `mma.sync.m16n8k16` of f16, or of bf16: adds the product of four words
/// of A and two of B to four elements of the accumulator.
void emitSyncInstruction(OpBuilder &builder, Location loc, bool isHalf,
                         ValueRange a, ValueRange b,
                         MutableArrayRef<Value> acc);

/// The order of four matrices of 8 x 8 elements of 16 bits: (0, 0), (8, 0),
/// (0, 8) and (8, 8), or (0, 8) before (8, 0). ptxas moves words that an
/// instruction takes side by side, but `ldmatrix` does not give side by side.
enum class MatrixOrder { RowsFirst, ColumnsFirst };

/// Loads 16 rows of 32 bytes of a tile by `ldmatrix`, as four words: the
/// matrices of an order, each transposed or not. Two elements of 8 bits are
/// one. `row` is a multiple of 8, and `column` of 16 bytes. Two words are the
/// first two. `stmatrix` stores words likewise.
class MatrixLoader {
public:
  MatrixLoader(OpBuilder &builder, Location loc, TypedValue<TileType> tile,
               Value lane, MatrixOrder order = MatrixOrder::RowsFirst);

  SmallVector<Value> load(Value row, Value column, bool isTransposed,
                          int64_t words = 4) const;
  void store(ValueRange words, Value row, Value column) const;

private:
  /// The address of the lane, of matrices that begin at a row and a column.
  Value getPointer(Value firstRow, Value firstColumn) const;

  IndexBuilder b;
  TypedValue<TileType> tile;
  /// The row and the column, one of two, that the lane addresses.
  Value row, column;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_REGISTERS_H
