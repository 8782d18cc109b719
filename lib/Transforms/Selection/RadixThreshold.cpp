//===- RadixThreshold.cpp - The k-th largest of some keys -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RadixThreshold.h"

#include "../Builders/WarpVote.h"
#include "WarpScan.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

constexpr int64_t kKeyBits = 32, kDigitBits = 8;
constexpr int64_t kDigits = int64_t(1) << kDigitBits;

RadixThreshold::RadixThreshold(const RowTeam &team)
    : team(team), histogram(team.frame, kDigits),
      digitsOfLane(team.frame.isGPU ? kDigits / kWarp : kDigits) {}

Threshold RadixThreshold::find(const BlockArray &keys, Value count,
                               int64_t k) const {
  const Frame &frame = team.frame;
  Value found = frame.i32(0), rank = frame.i32(k);
  for (int64_t shift = kKeyBits - kDigitBits; shift >= 0; shift -= kDigitBits) {
    team.forEach(frame.index(kDigits),
                 [&](Value digit) { histogram.store(frame.i32(0), digit); });
    team.sync();
    countDigits(keys, count, found, shift);
    team.sync();
    Digit digit = findDigit(rank);
    team.sync();
    rank = digit.rank;
    found = frame.add(found, frame.mul(digit.number, int64_t(1) << shift));
  }
  return {found, rank};
}

void RadixThreshold::countDigits(const BlockArray &keys, Value count,
                                 Value found, int64_t shift) const {
  const Frame &frame = team.frame;
  auto shiftRight = [&](Value value, int64_t bits) -> Value {
    return arith::ShRUIOp::create(frame.builder, frame.loc, value,
                                  frame.i32(bits));
  };
  int64_t above = shift + kDigitBits;
  team.forEach(count, [&](Value place) {
    Value key = keys.load(place);
    Value digit = frame.rem(shiftRight(key, shift), kDigits);
    auto increment = [&] { histogram.increment(frame.fromI32(digit)); };
    if (above == kKeyBits)
      return increment();
    frame.runIf(frame.equal(shiftRight(key, above), shiftRight(found, above)),
                increment);
  });
}

RadixThreshold::Digit RadixThreshold::findDigit(Value rank) const {
  const Frame &frame = team.frame;
  if (!frame.isGPU)
    return searchLane(frame.index(0), rank);
  // Every warp finds it, so that no thread has to wait for another.
  Value lane = frame.rem(team.thread, kWarp);
  Value sum = frame.i32(0);
  for (int64_t j = 0; j < digitsOfLane; ++j)
    sum = frame.add(sum,
                    histogram.load(frame.sub(frame.index(kDigits - 1 - j),
                                             frame.mul(lane, digitsOfLane))));
  WarpScan scan(frame, team.thread, sum);
  Digit own = searchLane(lane, frame.sub(rank, scan.getExclusive()));
  Value hasDigit = frame.less(frame.i32(0), own.rank);
  Value owner = math::CountTrailingZerosOp::create(frame.builder, frame.loc,
                                                   ballot(frame, hasDigit));
  return {scan.shuffle(own.number, owner), scan.shuffle(own.rank, owner)};
}

RadixThreshold::Digit RadixThreshold::searchLane(Value lane, Value rank) const {
  const Frame &frame = team.frame;
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Value zero = frame.i32(0);
  Value largest =
      frame.sub(frame.index(kDigits - 1), frame.mul(lane, digitsOfLane));
  auto loop = scf::ForOp::create(
      builder, loc, frame.index(0), frame.index(digitsOfLane), frame.index(1),
      ValueRange{rank, zero, zero},
      [&](OpBuilder &, Location, Value step, ValueRange carried) {
        Value digit = frame.sub(largest, step);
        Value count = histogram.load(digit);
        Value isAfter = frame.less(zero, carried[0]);
        Value isBefore = frame.less(carried[0], frame.add(count, frame.i32(1)));
        Value isHere = arith::AndIOp::create(builder, loc, isAfter, isBefore);
        auto select = [&](Value then, Value otherwise) -> Value {
          return arith::SelectOp::create(builder, loc, isHere, then, otherwise);
        };
        scf::YieldOp::create(builder, loc,
                             ValueRange{frame.sub(carried[0], count),
                                        select(frame.toI32(digit), carried[1]),
                                        select(carried[0], carried[2])});
      });
  return {loop.getResult(1), loop.getResult(2)};
}
