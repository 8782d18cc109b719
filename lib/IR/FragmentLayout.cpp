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
static constexpr LayoutDigit kLaneOfFour[] = {col(4), col(8), row(1), row(2),
                                              row(4)};
static constexpr LayoutDigit kA8[] = {col(1), col(2), row(8), col(16)};
// The columns of four bytes that `ldmatrix` gives a lane. Two words of A have
// two of them each, and the even and the odd ones have accumulators of their
// own.
static constexpr LayoutDigit kA16Pairs[] = {col(1), row(8), col(2)};
static constexpr LayoutDigit kAccPairs[] = {col(2), row(8), col(1)};
// The columns of eight elements of 4 bits that `ldmatrix` gives a lane. A word
// of A, or a product of D, has columns at a distance of 4: these are bits at a
// distance of 16.
static constexpr LayoutDigit kLaneOfEight[] = {col(8), col(16), row(1), row(2),
                                               row(4)};
static constexpr LayoutDigit kQuads[] = {col(4), row(8), col(1), col(2)};
// The rows of a warp after those of the one before. In tensor memory, a warp
// reaches a quarter of 128 rows: PTX ISA, "Access restrictions".
static constexpr LayoutDigit kWarpgroup[] = {row(16), row(32)};
static constexpr LayoutDigit kQuarters[] = {row(32), row(64), row(16)};
// An accumulator of wgmma whose rows are columns of the fragment.
static constexpr LayoutDigit kWarpgroupT[] = {col(16), col(32)};
static constexpr LayoutDigit kLaneT[] = {row(2), row(4), col(1), col(2),
                                         col(4)};
static constexpr LayoutDigit kAccT[] = {row(1), col(8)};

// A thread has a row: PTX ISA, "Matrix fragments for shape .32x32b".
static constexpr LayoutDigit kRowsOfLanes[] = {row(1), row(2), row(4), row(8),
                                               row(16)};
static constexpr LayoutDigit kRowsOfWarps[] = {row(32), row(64)};
static constexpr LayoutDigit kRow[] = {col(1), col(2)};

/// A layout with several numbers of rows has an entry for each, in ascending
/// order.
static ArrayRef<LayoutDigits> getTable() {
  static const LayoutDigits table[] = {
      {FragmentLayout::MmaAcc, /*elementBits=*/0, {}, kLane, kAcc},
      {FragmentLayout::MmaA16, /*elementBits=*/16, {}, kLane, kA16},
      {FragmentLayout::WgmmaAcc, /*elementBits=*/0, kWarpgroup, kLane, kAcc},
      {FragmentLayout::WgmmaA16, /*elementBits=*/16, kWarpgroup, kLane, kA16},
      {FragmentLayout::WgmmaA8, /*elementBits=*/8, kWarpgroup, kLaneOfFour,
       kA8},
      {FragmentLayout::TmemAcc, /*elementBits=*/0, kWarpgroup, kLane, kAcc},
      {FragmentLayout::TmemAcc, /*elementBits=*/0, kQuarters, kLane, kAcc},
      {FragmentLayout::WgmmaAccT, /*elementBits=*/0, kWarpgroupT, kLaneT, kAccT,
       /*repeatsRows=*/true},
      {FragmentLayout::MmaA16Pairs,
       /*elementBits=*/16,
       {},
       kLaneOfFour,
       kA16Pairs},
      {FragmentLayout::MmaAccPairs,
       /*elementBits=*/0,
       {},
       kLaneOfFour,
       kAccPairs},
      {FragmentLayout::TmemRow, /*elementBits=*/0, kRowsOfWarps, kRowsOfLanes,
       kRow},
      {FragmentLayout::MmaA16Quads,
       /*elementBits=*/16,
       {},
       kLaneOfEight,
       kQuads},
      {FragmentLayout::MmaAccQuads,
       /*elementBits=*/0,
       {},
       kLaneOfEight,
       kQuads}};
  return table;
}

const LayoutDigits &LayoutDigits::get(FragmentLayout layout, int64_t rows) {
  const LayoutDigits *first = llvm::find_if(
      getTable(), [&](const auto &each) { return each.layout == layout; });
  const LayoutDigits *exact = llvm::find_if(getTable(), [&](const auto &each) {
    return each.layout == layout && each.countRows() == rows;
  });
  return exact == getTable().end() ? *first : *exact;
}

SmallVector<int64_t> LayoutDigits::getRowCounts(FragmentLayout layout) {
  SmallVector<int64_t> counts;
  for (const LayoutDigits &each : getTable())
    if (each.layout == layout)
      counts.push_back(each.countRows());
  return counts;
}

int64_t LayoutDigits::count(bool rows) const {
  int64_t count = 1;
  for (LayoutDigit digit : llvm::concat<const LayoutDigit>(warp, lane, element))
    count *= digit.isRow == rows ? 2 : 1;
  return count;
}

bool LayoutDigits::hasSharedRows() const {
  return llvm::any_of(warp, [](LayoutDigit digit) { return !digit.isRow; });
}

int64_t LayoutDigits::countRun(bool alongRows) const {
  // Loads of several registers at once would give these in another order than
  // that of the instruction.
  // A run of f32 has at most 16 bytes.
  constexpr int64_t longest = 4;
  int64_t most = isAccumulator()
                     ? std::min(int64_t(1) << element.size(), longest)
                     : countPacked();
  int64_t count = 1;
  while (count < most &&
         llvm::is_contained(element, LayoutDigit{alongRows, count}))
    count *= 2;
  return count;
}

SmallVector<ElementRun> LayoutDigits::getRuns(FragmentType type,
                                              bool alongRows) {
  const LayoutDigits &digits = get(type);
  int64_t size = digits.countRun(alongRows);
  // The numbers of a run's elements, relative to the first one.
  SmallVector<int64_t> distances{0};
  for (int64_t i = 1; i < size; i *= 2) {
    const LayoutDigit *digit =
        llvm::find(digits.element, LayoutDigit{alongRows, i});
    int64_t bit = digit - digits.element.begin();
    for (int64_t before = 0; before < i; ++before)
      distances.push_back(distances[before] + (int64_t(1) << bit));
  }
  SmallVector<ElementRun> runs;
  for (auto [i, place] : llvm::enumerate(getPlaces(type))) {
    if ((alongRows ? place.row : place.column) % size)
      continue;
    ElementRun &run = runs.emplace_back(ElementRun{place, {}});
    for (int64_t distance : distances)
      run.elements.push_back(static_cast<int64_t>(i) + distance);
  }
  return runs;
}

SmallVector<ElementPlace> LayoutDigits::getPlaces(int64_t rows,
                                                  int64_t columns) const {
  SmallVector<ElementPlace> places;
  for (int64_t column = 0; column < columns; column += countColumns())
    for (int64_t row = 0; row < rows; row += countRows())
      for (int64_t i = 0; i < int64_t(1) << element.size(); ++i) {
        ElementPlace &place = places.emplace_back(ElementPlace{row, column});
        for (auto [bit, digit] : llvm::enumerate(element))
          (digit.isRow ? place.row : place.column) +=
              (i >> bit & 1) * digit.distance;
      }
  return places;
}

SmallVector<int64_t> LayoutDigits::getRows(int64_t rows) const {
  SmallVector<int64_t> all;
  for (const ElementPlace &place : getPlaces(rows, countColumns()))
    if (!llvm::is_contained(all, place.row))
      all.push_back(place.row);
  llvm::sort(all);
  return all;
}

SmallVector<int64_t> LayoutDigits::getSharerStrides() const {
  SmallVector<int64_t> strides;
  for (auto [bit, digit] : llvm::enumerate(lane))
    if (!digit.isRow)
      strides.push_back(int64_t(1) << bit);
  return strides;
}

bool LayoutDigits::haveSameRows(FragmentType one, FragmentType other) {
  auto getRowDigits = [](ArrayRef<LayoutDigit> digits) {
    SmallVector<int64_t> distances;
    for (LayoutDigit digit : digits)
      distances.push_back(digit.isRow ? digit.distance : 0);
    return distances;
  };
  const LayoutDigits &first = get(one), &second = get(other);
  return one.getRows() == other.getRows() && getRows(one) == getRows(other) &&
         getRowDigits(first.warp) == getRowDigits(second.warp) &&
         getRowDigits(first.lane) == getRowDigits(second.lane);
}
