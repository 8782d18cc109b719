//===- Registers.cpp - The registers of fragments -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "kvcache/Support/Threads.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

static int64_t countPacked(FragmentType type) {
  return type.hasColumns() ? LayoutDigits::get(type).countPacked() : 1;
}

SmallVector<Value> kvcache::split(OpBuilder &builder, Location loc,
                                  Value vector) {
  return vector::ToElementsOp::create(builder, loc, vector).getResults();
}

SmallVector<Value> kvcache::unpack(OpBuilder &builder, Location loc,
                                   FragmentType type, ValueRange registers) {
  int64_t packed = countPacked(type);
  if (packed == 1)
    return registers;
  auto elements = VectorType::get(packed, type.getElementType());
  SmallVector<Value> unpacked;
  for (Value word : registers) {
    Value all = vector::FromElementsOp::create(
        builder, loc, VectorType::get(1, word.getType()), word);
    all = vector::BitCastOp::create(builder, loc, elements, all);
    llvm::append_range(unpacked, split(builder, loc, all));
  }
  return unpacked;
}

SmallVector<Value> kvcache::pack(OpBuilder &builder, Location loc,
                                 FragmentType type, ArrayRef<Value> elements) {
  int64_t packed = countPacked(type);
  if (packed == 1)
    return SmallVector<Value>(elements);
  auto word = VectorType::get(1, builder.getI32Type());
  SmallVector<Value> registers;
  for (; !elements.empty(); elements = elements.drop_front(packed)) {
    Value all = vector::FromElementsOp::create(
        builder, loc, VectorType::get(packed, type.getElementType()),
        elements.take_front(packed));
    all = vector::BitCastOp::create(builder, loc, word, all);
    registers.push_back(vector::ExtractOp::create(builder, loc, all, 0));
  }
  return registers;
}

Value kvcache::join(OpBuilder &builder, Location loc, FragmentType type,
                    ValueRange registers) {
  auto size = static_cast<int64_t>(registers.size());
  Value all = vector::FromElementsOp::create(
      builder, loc, VectorType::get(size, registers.front().getType()),
      registers);
  auto elements =
      VectorType::get(size * countPacked(type), type.getElementType());
  return builder.createOrFold<vector::BitCastOp>(loc, elements, all);
}

SmallVector<Value> kvcache::select(ArrayRef<Value> elements,
                                   ArrayRef<int64_t> numbers) {
  return llvm::map_to_vector(numbers,
                             [&](int64_t number) { return elements[number]; });
}

bool kvcache::addsPairs(Operation *op, FragmentType type) {
  const Chip *chip = getTargetChip(op);
  return chip && chip->has(Feature::PairedF32) &&
         isTensorMemory(type.getLayout());
}

Value kvcache::voteAny(OpBuilder &builder, Location loc, Value condition) {
  Value all = arith::ConstantIntOp::create(builder, loc, -1, 32);
  return NVVM::VoteSyncOp::create(builder, loc, builder.getI1Type(), all,
                                  condition, NVVM::VoteSyncKind::any);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

TeamThread TeamThread::get(const IndexBuilder &b, FragmentType type,
                           Value thread) {
  constexpr int64_t lanes = LayoutDigits::kLanes;
  if (!thread)
    thread = getThread(b);
  const auto &digits = LayoutDigits::get(type);
  if (digits.countWarps() == 1)
    return {b.index(0), b.rem(thread, lanes)};
  Value warp = b.div(thread, lanes);
  bool isBlock =
      getKnownThreads(b.builder.getInsertionBlock()->getParentOp()) ==
      digits.countThreads();
  return {isBlock ? warp : b.rem(warp, digits.countWarps()),
          b.rem(thread, lanes)};
}

/// Returns the sum of what the bits of a lane or warp add to its row, or to its
/// column. Neighbouring bits that add powers of two in order are one product.
static Value addDigits(const IndexBuilder &b, Value number,
                       ArrayRef<LayoutDigit> digits, bool forRow) {
  Value sum = b.index(0);
  for (size_t bit = 0; bit < digits.size();) {
    size_t end = bit + 1;
    while (end < digits.size() && digits[end].isRow == digits[bit].isRow &&
           digits[end].distance == 2 * digits[end - 1].distance)
      ++end;
    if (digits[bit].isRow == forRow) {
      Value part = b.div(number, int64_t(1) << bit);
      if (end < digits.size())
        part = b.rem(part, int64_t(1) << (end - bit));
      sum = b.add(sum, b.mul(part, digits[bit].distance));
    }
    bit = end;
  }
  return sum;
}

FirstPlace FirstPlace::get(const IndexBuilder &b, FragmentType type,
                           Value number) {
  TeamThread thread = TeamThread::get(b, type, number);
  const LayoutDigits &digits = LayoutDigits::get(type);
  auto add = [&](Value number, ArrayRef<LayoutDigit> bits, bool forRow) {
    return addDigits(b, number, bits, forRow);
  };
  Value row = add(thread.lane, digits.lane, /*forRow=*/true);
  row = b.add(row, add(thread.warp, digits.warp, /*forRow=*/true));
  Value laneColumn = add(thread.lane, digits.lane, /*forRow=*/false);
  return {row,
          b.add(laneColumn, add(thread.warp, digits.warp, /*forRow=*/false)),
          laneColumn};
}
