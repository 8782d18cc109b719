//===- Descriptors.cpp - Matrices in shared memory ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptors.h"
#include "Patterns.h"
#include "kvcache/Target/Wgmma.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

static constexpr int64_t kUnitBytes = tma::MatrixDescriptor::kUnitBytes;

DescriptorBuilder::DescriptorBuilder(OpBuilder &builder, Location loc,
                                     const MatrixPart &part,
                                     tma::MatrixFormat format)
    : b(builder, loc), tile(part.tile), layout(part.tile.getType().getLayout()),
      major(part.major == Major::K ? tma::Major::K : tma::Major::MN),
      format(format), row(part.row), column(part.column) {}

/// Whether a column surely is a multiple of a number.
static bool isMultiple(Value column, int64_t number) {
  auto product = column.getDefiningOp<arith::MulIOp>();
  if (!product)
    return false;
  std::optional<int64_t> factor = getConstantIntValue(product.getRhs());
  return factor && *factor % number == 0;
}

Value DescriptorBuilder::get(int64_t k) {
  if (!start)
    start = getStart(0);
  int64_t bytes = 0;
  if (major == tma::Major::MN) {
    bytes = k * tma::getSpan(layout.swizzle);
  } else if (std::optional<int64_t> first = getConstantIntValue(column)) {
    bytes = getColumnBytes(*first + k) - getColumnBytes(*first);
  } else if (isMultiple(column, layout.getChunkColumns())) {
    bytes = getColumnBytes(k);
  } else if (k != 0) {
    return getStart(k);
  }
  if (bytes == 0)
    return start;
  Value units =
      arith::ConstantIntOp::create(b.builder, b.loc, bytes / kUnitBytes, 64);
  return arith::AddIOp::create(b.builder, b.loc, start, units);
}

int64_t DescriptorBuilder::getColumnBytes(int64_t column) const {
  int64_t inChunk = layout.getChunkColumns();
  return column / inChunk * layout.getChunkBytes() +
         column % inChunk * layout.elementBytes;
}

Value DescriptorBuilder::getColumnBytes(Value column) const {
  if (std::optional<int64_t> constant = getConstantIntValue(column))
    return b.index(getColumnBytes(*constant));
  int64_t inChunk = layout.getChunkColumns();
  Value bytes = b.mul(b.rem(column, inChunk), layout.elementBytes);
  return b.add(bytes, b.mul(b.div(column, inChunk), layout.getChunkBytes()));
}

Value DescriptorBuilder::getStart(int64_t k) const {
  Value first = k == 0 ? column : b.add(column, b.index(k));
  Value offset =
      b.add(b.mul(row, tma::getSpan(layout.swizzle)), getColumnBytes(first));
  Value pointer = getTileAddress(b.builder, b.loc, tile, offset);
  Type i64 = b.builder.getI64Type(), i32 = b.builder.getI32Type();
  Value address = LLVM::PtrToIntOp::create(b.builder, b.loc, i32, pointer);
  Value unit = b.i32(llvm::Log2_64(kUnitBytes));
  Value units = arith::ShRUIOp::create(b.builder, b.loc, address, unit);
  // Otherwise LLVM moves the descriptors of all steps out of a loop, where
  // they take more registers than there are.
  units = createRegisterFence(b.builder, b.loc, units).front();
  units = arith::ExtUIOp::create(b.builder, b.loc, i64, units);
  // The verifier has checked that the tile has a matrix.
  uint64_t bits = tma::encode(*tma::getMatrix(layout, 0, major, 0, 0), format);
  Value rest = arith::ConstantIntOp::create(b.builder, b.loc,
                                            static_cast<int64_t>(bits), 64);
  return arith::AddIOp::create(b.builder, b.loc, rest, units);
}
