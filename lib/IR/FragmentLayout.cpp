//===- FragmentLayout.cpp - Which elements a lane has ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/FragmentLayout.h"

using namespace mlir;
using namespace mlir::kvcache;

static constexpr LayoutDigit row(int64_t distance) { return {true, distance}; }
static constexpr LayoutDigit col(int64_t distance) { return {false, distance}; }

// PTX ISA, "Matrix Fragments for mma.m16n8k16" and "Register Fragments for
// wgmma.mma_async.m64nNk16".
static constexpr LayoutDigit kLane[] = {col(2), col(4), row(1), row(2), row(4)};
static constexpr LayoutDigit kAcc[] = {col(1), row(8)};
static constexpr LayoutDigit kA16[] = {col(1), row(8), col(8)};
// PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk32".
static constexpr LayoutDigit kLaneA8[] = {col(4), col(8), row(1), row(2),
                                          row(4)};
static constexpr LayoutDigit kA8[] = {col(1), col(2), row(8), col(16)};

const LayoutDigits &LayoutDigits::get(FragmentLayout layout) {
  // In the order of the enum.
  static const LayoutDigits table[] = {
      {/*warps=*/1, /*elementBits=*/0, kLane, kAcc},   // mma_acc
      {/*warps=*/1, /*elementBits=*/16, kLane, kA16},  // mma_a16
      {/*warps=*/4, /*elementBits=*/0, kLane, kAcc},   // wgmma_acc
      {/*warps=*/4, /*elementBits=*/16, kLane, kA16},  // wgmma_a16
      {/*warps=*/4, /*elementBits=*/8, kLaneA8, kA8}}; // wgmma_a8
  return table[static_cast<size_t>(layout)];
}

int64_t LayoutDigits::countColumns() const {
  int64_t columns = 1;
  for (LayoutDigit digit : llvm::concat<const LayoutDigit>(lane, element))
    columns *= digit.isRow ? 1 : 2;
  return columns;
}

SmallVector<ElementPlace> LayoutDigits::getPlaces(int64_t columns) const {
  SmallVector<ElementPlace> places;
  for (int64_t atom = 0; atom < columns; atom += countColumns())
    for (int64_t i = 0; i < int64_t(1) << element.size(); ++i) {
      ElementPlace &place = places.emplace_back(ElementPlace{0, atom});
      for (auto [bit, digit] : llvm::enumerate(element))
        (digit.isRow ? place.row : place.column) +=
            (i >> bit & 1) * digit.distance;
    }
  return places;
}

SmallVector<int64_t> LayoutDigits::getRows() const {
  SmallVector<int64_t> rows{0};
  for (LayoutDigit digit : element)
    if (digit.isRow)
      for (size_t i = 0, size = rows.size(); i < size; ++i)
        rows.push_back(rows[i] + digit.distance);
  llvm::sort(rows);
  return rows;
}

SmallVector<int64_t> LayoutDigits::getSharerStrides() const {
  SmallVector<int64_t> strides;
  for (auto [bit, digit] : llvm::enumerate(lane))
    if (!digit.isRow)
      strides.push_back(int64_t(1) << bit);
  return strides;
}
