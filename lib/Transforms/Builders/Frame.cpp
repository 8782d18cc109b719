//===- Frame.cpp - Blocks, threads and rows of an expanded op -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Frame.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/DenseOperands.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

Target::Target(ArrayRef<const Chip *> chips) {
  if (chips.empty())
    return;
  features = chips.front()->supported;
  sharedBytes = chips.front()->getSharedMemory();
  for (const Chip *chip : chips.drop_front()) {
    features &= chip->supported;
    sharedBytes = std::min(sharedBytes, chip->getSharedMemory());
  }
}

FailureOr<Target> Target::lookup(Operation *op, ArrayRef<std::string> names) {
  FailureOr<SmallVector<const Chip *>> chips = lookupChips(op, names);
  if (failed(chips))
    return failure();
  return Target(*chips);
}

/// Threads of a block without a hint, and of the loops of a CPU.
constexpr int64_t kBlockThreads = 256;

static TiledOpInterface getHints(Operation *op, bool isGPU) {
  return isGPU ? dyn_cast<TiledOpInterface>(op) : TiledOpInterface();
}

static int64_t getBlockThreads(TiledOpInterface hints) {
  return hints ? hints.getBlockThreads().value_or(kBlockThreads)
               : kBlockThreads;
}

Frame::Frame(OpBuilder &builder, Operation *op, bool isGPU, bool hasChecks,
             const Target &target)
    : IndexBuilder(builder, op->getLoc()), isGPU(isGPU), hasChecks(hasChecks),
      target(target), blockThreads(getBlockThreads(getHints(op, isGPU))) {
  if (TiledOpInterface hints = getHints(op, isGPU))
    headsPerThread = hints.getHeadsPerThread();
}

int64_t Frame::getHeadsInFlight(int64_t heads, int64_t most) const {
  return isGPU ? getDivisorUpTo(heads, headsPerThread.value_or(most)) : 1;
}

Operation *Frame::forBlocks(ArrayRef<Value> ends, ArrayRef<int64_t> steps,
                            function_ref<void(ValueRange)> body,
                            std::optional<unsigned> alongX) const {
  // The last loop becomes the grid's x.
  SmallVector<unsigned> order =
      llvm::to_vector(llvm::seq<unsigned>(ends.size()));
  if (alongX && isGPU)
    std::rotate(order.begin() + *alongX, order.begin() + *alongX + 1,
                order.end());
  SmallVector<Value> firsts(ends.size(), index(0)), ordered, stepValues;
  for (unsigned position : order) {
    ordered.push_back(ends[position]);
    stepValues.push_back(index(steps[position]));
  }
  auto loop = scf::ParallelOp::create(builder, loc, firsts, ordered, stepValues,
                                      [](OpBuilder &, Location, ValueRange) {});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  SmallVector<Value> ids(ends.size());
  for (auto [position, id] : llvm::zip_equal(order, loop.getInductionVars()))
    ids[position] = id;
  body(ids);
  return loop;
}

void Frame::checkFirst(Value index, StringRef what,
                       ArrayRef<std::pair<StringRef, Value>> memrefs) const {
  for (auto [name, memref] : memrefs)
    if (memref)
      checkIndex(index, what, name, memref, 0);
}

void Frame::checkIndex(Value index, StringRef what, StringRef name,
                       Value memref, int64_t position) const {
  if (hasChecks)
    CheckOp::create(builder, loc, index, dim(memref, position),
                    (what + " of '" + name + "'").str());
}

void Frame::checkSize(StringRef what, const Size &size,
                      const Size &most) const {
  if (!hasChecks || !size.memref || !most.memref)
    return;
  std::string text = llvm::formatv("number of {0} of '{1}' in '{2}'", what,
                                   size.name, most.name);
  CheckOp::create(builder, loc, dim(size.memref, size.position),
                  add(dim(most.memref, most.position), index(1)), text);
}

void Frame::checkAlignment(StringRef name, Value memref) const {
  auto type = cast<MemRefType>(memref.getType());
  int64_t unit = getRowAlignment(type);
  if (!isGPU || !hasChecks || unit == 1)
    return;
  auto check = [&](Value bytes, Value isUsed, const Twine &what) {
    Value rest = arith::SelectOp::create(builder, loc, isUsed, rem(bytes, unit),
                                         index(0));
    CheckOp::create(builder, loc, rest, index(1),
                    (what + " of '" + name + "' modulo " + Twine(unit) +
                     ", which must be 0,")
                        .str());
  };
  Value address = LLVM::PtrToIntOp::create(
      builder, loc, builder.getI64Type(), getHostPointer(builder, loc, memref));
  Value least = dim(memref, 0);
  for (int64_t dimension = 1; dimension < type.getRank(); ++dimension)
    least = min(least, dim(memref, dimension));
  check(arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                     address),
        below(index(0), least), "address");
  SmallVector<int64_t> strides = type.getStridesAndOffset().first;
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, memref);
  for (auto [dimension, stride] : llvm::enumerate(strides))
    if (ShapedType::isDynamic(stride) ||
        (dimension + 1 < strides.size() &&
         stride * getElementBytes(memref) % unit))
      check(mul(metadata.getStrides()[dimension], getElementBytes(memref)),
            below(index(1), dim(memref, dimension)),
            "stride " + Twine(dimension) + " in bytes");
}

/// Kernels wait for earlier launches before they access memory, and let later
/// ones begin at once: those wait as well. `kvcache-overlap-launches` decides
/// whether they overlap.
void Frame::orderLaunches() const {
  for (NVVM::GridDepActionKind kind :
       {NVVM::GridDepActionKind::wait,
        NVVM::GridDepActionKind::launch_dependents}) {
    auto control = NVVM::GriddepcontrolOp::create(builder, loc, kind);
    control->setAttr(KVCacheDialect::kProgrammaticAttr, builder.getUnitAttr());
  }
}

void Frame::forThreads(ArrayRef<int64_t> sizes,
                       function_ref<void(ValueRange)> body) const {
  SmallVector<Value> ends;
  for (int64_t size : sizes)
    ends.push_back(index(size));
  if (isGPU) {
    forBlocks(ends, SmallVector<int64_t>(sizes.size(), 1), [&](ValueRange ids) {
      orderLaunches();
      body(ids);
    });
    return;
  }
  SmallVector<Value> ids;
  std::function<void()> nest = [&] {
    if (ids.size() == sizes.size())
      return body(ids);
    forEach(index(0), sizes[ids.size()], 1, [&](Value id) {
      ids.push_back(id);
      nest();
      ids.pop_back();
    });
  };
  nest();
}

Value Frame::getThreadId(ValueRange thread, int64_t lanes) const {
  if (thread.size() == 1)
    return thread[0];
  return add(mul(thread[0], lanes), thread[1]);
}

namespace {

/// A number from 1 up to 2^31 that is known when the host launches a kernel, by
/// which blocks divide numbers below 2^31. Where s = ceil(log2 d), the quotient
/// of n is `n * m div 2^(31 + s)` with m = ceil(2^(31 + s) / d), which is below
/// 2^32 (Granlund and Montgomery, Division by Invariant Integers Using
/// Multiplication, section 4). The host computes m and s.
class Divisor {
public:
  Divisor(const Frame &frame, Value number)
      : frame(frame), number(frame.toI32(frame.max(number, frame.index(1)))) {
    Value wide = frame.fromI32(this->number);
    Value below = frame.sub(this->number, frame.i32(1));
    Value zeros =
        math::CountLeadingZerosOp::create(frame.builder, frame.loc, below);
    shift = frame.sub(frame.i32(32), zeros);
    Value power =
        arith::ShLIOp::create(frame.builder, frame.loc, frame.index(1),
                              frame.fromI32(frame.add(shift, frame.i32(31))));
    Value rounded = frame.add(power, frame.sub(wide, frame.index(1)));
    multiplier = frame.toI32(frame.div(rounded, wide));
  }

  /// The quotient and the remainder of an i32.
  std::pair<Value, Value> divide(Value value) const {
    Value twice = frame.add(value, value);
    auto product = arith::MulUIExtendedOp::create(frame.builder, frame.loc,
                                                  twice, multiplier);
    Value quotient = arith::ShRUIOp::create(frame.builder, frame.loc,
                                            product.getHigh(), shift);
    return {quotient, frame.sub(value, frame.mul(quotient, number))};
  }

private:
  const Frame &frame;
  Value number, multiplier, shift;
};

} // namespace

void Frame::forTokens(Value batch, Value tokens, int64_t step,
                      ArrayRef<int64_t> threads,
                      function_ref<void(Value, Value, ValueRange)> body) const {
  if (!isGPU) {
    forBlocks({batch, tokens}, {1, step}, [&](ValueRange ids) {
      forThreads(threads,
                 [&](ValueRange thread) { body(ids[0], ids[1], thread); });
    });
    return;
  }
  Value count = div(add(tokens, index(step - 1)), step);
  // A grid has less than 2^31 blocks along x.
  Divisor blocks(*this, count);
  forBlocks({mul(batch, count)}, {1}, [&](ValueRange ids) {
    forThreads(threads, [&](ValueRange thread) {
      auto [b, rest] = blocks.divide(toI32(ids[0]));
      body(fromI32(b), mul(fromI32(rest), step), thread);
    });
  });
}

void Frame::forEach(Value first, int64_t end, int64_t step,
                    function_ref<void(Value)> body) const {
  if (step >= end)
    return body(first);
  loop(first, index(end), index(step), body);
}

Value Frame::dim(Value memref, int64_t position) const {
  return builder.createOrFold<memref::DimOp>(loc, memref, position);
}

Value Frame::loadNumber(Value memref, ValueRange indices) const {
  Value number = memref::LoadOp::create(builder, loc, memref, indices);
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                      number);
}

Value Frame::loadSigned(Value memref, ValueRange indices) const {
  Value number = memref::LoadOp::create(builder, loc, memref, indices);
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    number);
}

Value Frame::getPageSize(Value cache) const {
  return builder.createOrFold<ExtentOp>(loc, builder.getIndexType(),
                                        Extent::PageSize, cache);
}

int64_t Frame::getFloatsAtOnce(int64_t headSize, ArrayRef<Type> types) const {
  if (!isGPU)
    return 64;
  constexpr int64_t kBits = 128, kLanes = 32;
  int64_t widest = 16;
  for (Type type : types)
    widest = std::max<int64_t>(widest, type.getIntOrFloatBitWidth());
  int64_t floats = kBits / widest;
  return headSize > floats * kLanes ? kBits / 16 : floats;
}

Value Frame::countSequences(Value rowOffsets) const {
  return sub(dim(rowOffsets, 0), index(1));
}

Value Frame::countRows(Value rowOffsets) const {
  return loadNumber(rowOffsets, countSequences(rowOffsets));
}

/// Sequences are counted in 32 bits, as caches count them.
static Value narrow(const Frame &frame, Value number) {
  return arith::IndexCastUIOp::create(frame.builder, frame.loc,
                                      frame.builder.getI32Type(), number);
}
static Value widen(const Frame &frame, Value number) {
  return arith::IndexCastUIOp::create(frame.builder, frame.loc,
                                      frame.builder.getIndexType(), number);
}

Value Frame::findLast(Value end, function_ref<Value(Value)> isPast) const {
  // The result is one of `count` from `first` on.
  Type i32Type = builder.getI32Type();
  auto loop = scf::WhileOp::create(
      builder, loc, TypeRange{i32Type, i32Type},
      ValueRange{i32(0), narrow(*this, end)},
      [&](OpBuilder &, Location, ValueRange range) {
        Value isOpen = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::ugt, range[1], i32(1));
        scf::ConditionOp::create(builder, loc, isOpen, range);
      },
      [&](OpBuilder &, Location, ValueRange range) {
        Value first = range[0], count = range[1];
        Value half = arith::ShRUIOp::create(builder, loc, count, i32(1));
        Value middle = arith::AddIOp::create(builder, loc, first, half);
        Value past = isPast(widen(*this, middle));
        first = arith::SelectOp::create(builder, loc, past, first, middle);
        count = arith::SubIOp::create(builder, loc, count, half);
        scf::YieldOp::create(builder, loc, ValueRange{first, count});
      });
  return widen(*this, loop.getResult(0));
}

Value Frame::findSequence(Value rowOffsets, Value row) const {
  // Where each sequence has one row, it is the row's own number; otherwise a
  // binary search.
  Value batch = countSequences(rowOffsets);
  Value last =
      arith::SubIOp::create(builder, loc, narrow(*this, batch), i32(1));
  Value guess = widen(
      *this, arith::MinUIOp::create(builder, loc, narrow(*this, row), last));
  Value begin = loadNumber(rowOffsets, guess);
  Value end = loadNumber(rowOffsets, add(guess, index(1)));
  Value isAbove = below(row, begin);
  Value isBelow =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, row, end);
  Value isElsewhere = arith::OrIOp::create(builder, loc, isAbove, isBelow);
  auto search = [&] {
    return findLast(batch, [&](Value middle) {
      return below(row, loadNumber(rowOffsets, middle));
    });
  };
  return selectIf(isElsewhere, search, [&] { return guess; });
}

void kvcache::runIfGiven(const Frame &frame, Value condition,
                         function_ref<void()> body) {
  if (condition)
    frame.runIf(condition, body);
  else
    body();
}

int64_t Split::getHeadThreads(int64_t heads, int64_t blockThreads) const {
  return getDivisorUpTo(heads, std::max<int64_t>(blockThreads / lanes, 1));
}

int64_t kvcache::getDivisorUpTo(int64_t number, int64_t most) {
  for (int64_t divisor = std::min(number, most); divisor > 1; --divisor)
    if (number % divisor == 0)
      return divisor;
  return 1;
}

Split kvcache::splitHead(int64_t headSize, int64_t boundary, int64_t width,
                         int64_t granularity, int64_t leastShare) {
  int64_t base = std::gcd(headSize, boundary);
  int64_t piece =
      std::min<int64_t>(llvm::bit_floor<uint64_t>(width), base & -base);
  Split split{piece, piece, 0, 1};
  if (granularity) {
    int64_t share = granularity / piece;
    if (headSize % granularity)
      split.unit = headSize;
    else if (piece % granularity == 0)
      split.unit = piece;
    else if (leastShare && piece % leastShare == 0 &&
             granularity % piece == 0 && llvm::isPowerOf2_64(share) &&
             share <= 32)
      split.lanesPerGroup = share;
    else
      split.unit = granularity % piece == 0 ? granularity : headSize;
  }
  split.lanes = headSize / split.unit;
  return split;
}
