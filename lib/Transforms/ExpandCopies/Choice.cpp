//===- Choice.cpp - How a chip copies into a tile
//----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice.h"

#include "kvcache/IR/CacheShape.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// What is known of an index
//===----------------------------------------------------------------------===//

/// The largest number that `value`, an index, is known to be a multiple of; 0
/// for a value that is 0.
static int64_t getKnownDivisor(Value value);

static int64_t multiplyDivisors(int64_t lhs, int64_t rhs) {
  int64_t product;
  return llvm::MulOverflow(lhs, rhs, product) ? 1 : product;
}

/// Of an expression over the operands of `apply`, which mapped loops compute
/// their variables by.
static int64_t getKnownDivisorOf(AffineExpr expr, affine::AffineApplyOp apply) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return std::abs(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return getKnownDivisor(apply.getMapOperands()[dim.getPosition()]);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return getKnownDivisor(apply.getSymbolOperands()[symbol.getPosition()]);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = getKnownDivisorOf(binary.getLHS(), apply);
  int64_t rhs = getKnownDivisorOf(binary.getRHS(), apply);
  if (expr.getKind() == AffineExprKind::Add)
    return std::gcd(lhs, rhs);
  return expr.getKind() == AffineExprKind::Mul ? multiplyDivisors(lhs, rhs) : 1;
}

static int64_t getKnownDivisorOfAll(ArrayRef<Value> values) {
  int64_t divisor = 0;
  for (Value value : values)
    divisor = std::gcd(divisor, getKnownDivisor(value));
  return divisor;
}

static int64_t getKnownDivisorOfShift(Value value, Value shift) {
  std::optional<int64_t> amount = getConstantIntValue(shift);
  if (!amount || *amount < 0 || *amount > 30)
    return 1;
  int64_t divisor = getKnownDivisor(value);
  return divisor > (int64_t(1) << 30) ? 1 : divisor << *amount;
}

/// Of a loop's induction variable: what divides its first value and its step.
static int64_t getKnownDivisorOfVariable(BlockArgument variable) {
  auto loop = dyn_cast<LoopLikeOpInterface>(variable.getOwner()->getParentOp());
  if (!loop)
    return 1;
  auto variables = loop.getLoopInductionVars();
  auto lowerBounds = loop.getLoopLowerBounds();
  auto steps = loop.getLoopSteps();
  if (!variables || !lowerBounds || !steps)
    return 1;
  for (auto [each, lower, step] : llvm::zip(*variables, *lowerBounds, *steps)) {
    if (each != variable)
      continue;
    auto getDivisor = [](OpFoldResult bound) {
      if (std::optional<int64_t> constant = getConstantIntValue(bound))
        return std::abs(*constant);
      return getKnownDivisor(cast<Value>(bound));
    };
    return std::gcd(getDivisor(lower), getDivisor(step));
  }
  return 1;
}

static int64_t getKnownDivisor(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::abs(*constant);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getKnownDivisorOfVariable(argument);
  return llvm::TypeSwitch<Operation *, int64_t>(value.getDefiningOp())
      .Case<arith::MulIOp>([](auto op) {
        return multiplyDivisors(getKnownDivisor(op.getLhs()),
                                getKnownDivisor(op.getRhs()));
      })
      .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MinUIOp,
            arith::MaxSIOp, arith::MaxUIOp>([](auto op) {
        return getKnownDivisorOfAll({op.getLhs(), op.getRhs()});
      })
      .Case<arith::SelectOp>([](auto op) {
        return getKnownDivisorOfAll({op.getTrueValue(), op.getFalseValue()});
      })
      .Case<arith::ShLIOp>([](auto op) {
        return getKnownDivisorOfShift(op.getLhs(), op.getRhs());
      })
      .Case<affine::AffineApplyOp>([](auto op) {
        return getKnownDivisorOf(op.getAffineMap().getResult(0), op);
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>(
          [](auto op) { return getKnownDivisor(op.getIn()); })
      .Default(int64_t(1));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Tensor copies that one lane issues one after the other; where a tile takes
/// more, threads that copy 16 bytes each are sooner done.
static constexpr int64_t kMaxCopies = 64;

/// What a side of a box has at most.
static constexpr int64_t kMaxSide = 256;

/// PTX ISA, "cp.async.bulk.tensor": where tensor copies write to.
static constexpr int64_t kDestinationAlignment = 128;

/// Bytes of a row in a chunk of the tile.
static int64_t getRowBytes(const tma::TileLayout &layout) {
  return layout.getChunkColumns() * layout.elementBytes;
}

/// Of all threads: asynchronous if rows are aligned to 4 bytes at least.
static Choice chooseThreads(const tma::CacheShape &shape) {
  Choice choice;
  choice.unitBytes = shape.getRowAlignment();
  choice.way = choice.unitBytes >= 4 ? Way::AsyncCopy : Way::Plain;
  return choice;
}

//===----------------------------------------------------------------------===//
// Consecutive tokens
//===----------------------------------------------------------------------===//

/// The most rows of a tile that surely lie in a page together: they divide the
/// tile's, the page's, and what the first token is known to be a multiple of.
static int64_t getBoxRows(AsyncLoadTileOp op) {
  CacheTypeInterface cache = op.getCache().getType();
  int64_t rows = op.getTile().getType().getRows();
  if (cache.isPaged()) {
    int64_t divisor = std::lcm(getKnownDivisor(op.getToken()),
                               int64_t(op.getBaseAlignment().value_or(1)));
    rows = std::gcd(rows, std::gcd(cache.getPageSize(), divisor));
  }
  for (int64_t side = std::min(rows, kMaxSide); side > 1; --side)
    if (rows % side == 0)
      return side;
  return 1;
}

/// The attributes of `create_paged_tma_tile` and `create_ragged_tma_tile`.
static DictionaryAttr getAttributes(TileType tile, int64_t boxRows) {
  Builder builder(tile.getContext());
  NamedAttrList attributes;
  attributes.set("rows", builder.getI64IntegerAttr(boxRows));
  attributes.set("swizzle",
                 SwizzleAttr::get(tile.getContext(), tile.getSwizzle()));
  attributes.set("columns", builder.getI64IntegerAttr(tile.getColumns()));
  return attributes.getDictionary(tile.getContext());
}

/// A descriptor of boxes of rows, of which some may be missing if `isRagged`.
static DescriptorRequest requestBoxes(TileType tile, int64_t boxRows,
                                      bool isRagged) {
  DictionaryAttr attributes = getAttributes(tile, boxRows);
  if (!isRagged)
    return {CreatePagedTMATileOp::getOperationName(), attributes};
  // With a swizzle a span is all that a box can have.
  NamedAttrList ragged(attributes);
  if (tile.getSwizzle() != Swizzle::None)
    ragged.erase("columns");
  return {CreateRaggedTMATileOp::getOperationName(),
          ragged.getDictionary(tile.getContext())};
}

static Choice chooseForLoad(AsyncLoadTileOp op, Makeable descriptors) {
  CacheTypeInterface cache = op.getCache().getType();
  TileType tile = op.getTile().getType();
  tma::TileLayout layout = tile.getLayout();
  tma::CacheShape shape = getShape(cache);
  // Without the page size it is open which rows lie in a page together.
  if (descriptors == Makeable::None ||
      (cache.isPaged() && !cache.hasStaticPageSize()))
    return chooseThreads(shape);

  int64_t boxRows = getBoxRows(op);
  bool isRagged = op.getValid() || !cache.isPaged();
  if (isRagged && descriptors != Makeable::Any)
    return chooseThreads(shape);
  tma::OpenTensorMap map =
      isRagged
          ? tma::getRaggedTile(shape, boxRows, layout.columns, layout.swizzle)
          : tma::getPagedTile(shape, boxRows, layout.columns, layout.swizzle);
  bool isAligned = boxRows == layout.rows ||
                   boxRows * getRowBytes(layout) % kDestinationAlignment == 0;
  int64_t copies = layout.rows / boxRows * layout.getNumChunks();
  if (tma::findBrokenLimit(map) || !isAligned || copies > kMaxCopies)
    return chooseThreads(shape);
  return {Way::Boxes, boxRows, requestBoxes(tile, boxRows, isRagged)};
}

//===----------------------------------------------------------------------===//
// Any rows
//===----------------------------------------------------------------------===//

/// The elements in which a descriptor counts so that a row of a chunk fits a
/// box: the cache's own, or without a swizzle 64-bit integers.
static Type getBoxElement(TileType tile) {
  tma::TileLayout layout = tile.getLayout();
  if (layout.swizzle != tma::Swizzle::None || layout.columns <= kMaxSide)
    return tile.getElementType();
  return IntegerType::get(tile.getContext(), 64);
}

/// A descriptor of single rows.
static DescriptorRequest requestRows(TileType tile) {
  MLIRContext *context = tile.getContext();
  Builder builder(context);
  Type element = getBoxElement(tile);
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  NamedAttrList attributes;
  attributes.set("tile_height", builder.getI64IntegerAttr(tile.getRows()));
  attributes.set("tile_width", builder.getI64IntegerAttr(
                                   tile.getColumns() *
                                   tile.getLayout().elementBytes / bytes));
  attributes.set("swizzle", SwizzleAttr::get(context, tile.getSwizzle()));
  if (element != tile.getElementType())
    attributes.set("dtype", TypeAttr::get(element));
  return {CreateGather4TMATileOp::getOperationName(),
          attributes.getDictionary(context)};
}

/// Whether `tma_gather4` can fill the tile.
static bool canGather(TileType tile, const tma::CacheShape &shape,
                      const Chip &chip) {
  tma::TileLayout layout = tile.getLayout();
  int64_t bytes = getBoxElement(tile).getIntOrFloatBitWidth() / 8;
  int64_t pitchBytes = shape.getRowPitch() * shape.elementBytes;
  // A descriptor of rows knows where its heads are.
  if (shape.hasOpenHeadStride)
    return false;
  tma::OpenTensorMap map = tma::getGather4Tile(
      shape, bytes, layout.columns * layout.elementBytes / bytes,
      pitchBytes / bytes, layout.swizzle);
  // A destination is four rows on, or one where they are copied one by one. So
  // much of a tile can be as many times the copies.
  int64_t rowsOfCopy = chip.has(Feature::Gather4) ? 4 : 1;
  int64_t copies = layout.rows / rowsOfCopy * layout.getNumChunks();
  return layout.rows % 4 == 0 && !tma::findBrokenLimit(map) &&
         rowsOfCopy * getRowBytes(layout) % kDestinationAlignment == 0 &&
         copies <= kMaxCopies * rowsOfCopy;
}

static Choice chooseForGather(AsyncGatherTileOp op, const Chip &chip,
                              Makeable descriptors) {
  TileType tile = op.getTile().getType();
  tma::CacheShape shape = getShape(op.getCache().getType());
  // Bulk and tensor copies read from 16 bytes on.
  if (shape.getRowAlignment() != 16)
    return chooseThreads(shape);
  if (descriptors == Makeable::Any && canGather(tile, shape, chip))
    return {Way::Gather, /*boxRows=*/1, requestRows(tile)};
  if (tile.getSwizzle() == Swizzle::None)
    return {Way::BulkRows};
  return chooseThreads(shape);
}

//===----------------------------------------------------------------------===//
// Any copy
//===----------------------------------------------------------------------===//

Choice kvcache::chooseWay(Operation *copy, const Chip *chip, bool hasBarrier,
                          Makeable descriptors) {
  if (!chip)
    return {Way::Plain};
  if (!chip->has(Feature::TMA) || !hasBarrier)
    return chooseThreads(
        getShape(cast<AccessOpInterface>(copy).getAccessedCache().getType()));
  if (auto load = dyn_cast<AsyncLoadTileOp>(copy))
    return chooseForLoad(load, descriptors);
  return chooseForGather(cast<AsyncGatherTileOp>(copy), *chip, descriptors);
}
