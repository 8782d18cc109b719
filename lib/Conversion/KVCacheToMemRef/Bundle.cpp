//===- Bundle.cpp - The values that a cache becomes -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// AddressBuilder
//===----------------------------------------------------------------------===//

Value AddressBuilder::addSigned(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::AddIOp>(loc, lhs, rhs,
                                             arith::IntegerOverflowFlags::nsw);
}

Value AddressBuilder::mulSigned(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::MulIOp>(loc, lhs, rhs,
                                             arith::IntegerOverflowFlags::nsw);
}

std::pair<Value, Value> AddressBuilder::takeApart(Value pointer) const {
  // Most pointers have been put together a moment before.
  if (auto cast = pointer.getDefiningOp<memref::ReinterpretCastOp>())
    if (auto type = dyn_cast<MemRefType>(cast.getSource().getType());
        type && type.getRank() == 0 && type.getLayout().isIdentity() &&
        !cast.getOffsets().empty())
      return {cast.getSource(), cast.getOffsets().front()};
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, pointer);
  return {metadata.getBaseBuffer(), metadata.getOffset()};
}

Value AddressBuilder::advance(Value pointer, Value offset) const {
  auto [buffer, start] = takeApart(pointer);
  return memref::ReinterpretCastOp::create(
      builder, loc, cast<MemRefType>(pointer.getType()), buffer,
      OpFoldResult(addSigned(start, offset)), ArrayRef<OpFoldResult>(),
      ArrayRef<OpFoldResult>());
}

Value AddressBuilder::window(Value pointer, Value size) const {
  auto [buffer, start] = takeApart(pointer);
  auto type = MemRefType::get(
      {ShapedType::kDynamic},
      cast<MemRefType>(pointer.getType()).getElementType(),
      StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {1}));
  return memref::ReinterpretCastOp::create(
      builder, loc, type, buffer, OpFoldResult(start), OpFoldResult(size),
      OpFoldResult(builder.getIndexAttr(1)));
}

//===----------------------------------------------------------------------===//
// Bundle
//===----------------------------------------------------------------------===//

Bundle::Bundle(OpBuilder &builder, Location loc, Type type, ValueRange values)
    : AddressBuilder(builder, loc), type(cast<ExpandableTypeInterface>(type)),
      cache(dyn_cast<CacheTypeInterface>(type)), values(values) {}

Bundle Bundle::getScales() const {
  Bundle scales = *this;
  if (isa<ScalesType>(cache))
    return scales;
  scales.cache = ScalesType::get(cache.getContext(), cache);
  return scales;
}

/// The part of the scales that corresponds to a part of a cache. Only dense
/// tables differ for elements and scales.
static PartKind getKindOfScales(PartKind kind, TableKind table) {
  bool sharesTable = table != TableKind::Dense;
  switch (kind) {
  case PartKind::Blocks:
    return PartKind::Scales;
  case PartKind::NumPages:
    return PartKind::ScalePages;
  case PartKind::PageStride:
    return PartKind::ScalePageStride;
  case PartKind::HeadStride:
    return PartKind::ScaleHeadStride;
  case PartKind::Table:
    return sharesTable ? kind : PartKind::ScaleTable;
  case PartKind::Columns:
    return sharesTable ? kind : PartKind::ScaleColumns;
  case PartKind::TableStride:
    return sharesTable ? kind : PartKind::ScaleTableStride;
  default:
    return kind;
  }
}

Value Bundle::get(PartKind kind) const {
  if (isa_and_present<ScalesType>(cache))
    kind = getKindOfScales(kind, cache.getTable());
  return llvm::getSingleElement(getAll(kind));
}

SmallVector<Value> Bundle::getAll(PartKind kind) const {
  SmallVector<Value> found;
  for (auto [part, value] : llvm::zip_equal(type.getParts(), values))
    if (part.kind == kind)
      found.push_back(value);
  return found;
}

Value Bundle::getIndex(PartKind kind) const {
  Value count = get(kind);
  // Counts are sizes, which 32 bits hold.
  if (auto truncated = count.getDefiningOp<arith::IndexCastUIOp>();
      truncated && truncated.getIn().getType().isIndex())
    return truncated.getIn();
  return fromI32(count);
}

Value Bundle::getLengths() const {
  return window(get(PartKind::Lengths), getIndex(PartKind::Batch));
}

Value Bundle::getTable() const {
  if (cache.getTable() == TableKind::CSR)
    return window(get(PartKind::Table), getIndex(PartKind::Columns));
  Value rows =
      getIndex(cache.getTable() == TableKind::Rows ? PartKind::NumTableRows
                                                   : PartKind::Batch);
  if (cache.isPaged())
    rows = mul(rows, getIndex(PartKind::TableStride));
  return window(get(PartKind::Table), rows);
}

Value Bundle::getTableStart(Value batch) const {
  auto [kind, more] = cache.getTable() == TableKind::CSR
                          ? std::pair(PartKind::TableStarts, 1)
                          : std::pair(PartKind::TableRows, 0);
  Value size = getIndex(PartKind::Batch);
  if (more)
    size = add(size, index(more));
  return fromI32(
      memref::LoadOp::create(builder, loc, window(get(kind), size), batch));
}

Value Bundle::getTableIndex(Value batch, Value token) const {
  if (!cache.isPaged())
    return batch;
  Value column = fromI32(getColumn(token));
  if (cache.getTable() == TableKind::CSR)
    return add(getTableStart(batch), column);
  Value row =
      cache.getTable() == TableKind::Rows ? getTableStart(batch) : batch;
  return add(mul(row, getIndex(PartKind::TableStride)), column);
}

Value Bundle::getTokens(Value batch) const {
  if (!cache.isPaged())
    return getPageSize();
  Value columns = getIndex(PartKind::Columns);
  if (batch && cache.getTable() == TableKind::CSR)
    columns = sub(getTableStart(add(batch, index(1))), getTableStart(batch));
  if (batch && cache.getTable() == TableKind::Rows) {
    // A row that does not exist has no entries.
    Value exists = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, getTableStart(batch),
        getIndex(PartKind::NumTableRows));
    columns = arith::SelectOp::create(builder, loc, exists, columns, index(0));
  }
  return mul(columns, getPageSize());
}

Value Bundle::getPageSize() const {
  if (!cache.isPaged())
    return getIndex(PartKind::BlockTokens);
  return cache.hasStaticPageSize() ? index(cache.getPageSize())
                                   : getIndex(PartKind::PageSize);
}

Value Bundle::getColumn(Value token) const {
  token = toI32(token);
  return cache.hasStaticPageSize() ? div(token, cache.getPageSize())
                                   : div(token, get(PartKind::PageSize));
}

Value Bundle::getPage(Value batch, Value token, Value known) const {
  if (known)
    return known;
  Value entry = memref::LoadOp::create(builder, loc, getTable(),
                                       getTableIndex(batch, token));
  return fromI32(entry);
}

Value Bundle::getRowInPage(Value token) const {
  if (!cache.isPaged())
    return token;
  if (cache.hasStaticPageSize()) {
    Value row = rem(toI32(token), cache.getPageSize());
    int64_t tokens = cache.getTokensPerRow();
    return tokens == 1 ? row : div(row, tokens);
  }
  // One division for the column and the row.
  return sub(toI32(token), mul(getColumn(token), get(PartKind::PageSize)));
}

Value Bundle::getNumRows() const {
  // (NB - 1) * S + P
  Value rows = getPageSize();
  Value lastPage = builder.createOrFold<arith::SubIOp>(
      loc, getIndex(PartKind::NumPages), index(1));
  // Of no pages at all the result is of no use, but must not be poison.
  return addSigned(mulSigned(lastPage, getRowsPerPage()), rows);
}

Value Bundle::getRowsPerPage() const {
  return div(get(PartKind::PageStride), getRowPitch());
}

Value Bundle::getRow(Value page, Value rowInPage) const {
  rowInPage = fromI32(rowInPage);
  return add(mul(page, getRowsPerPage()), rowInPage);
}

Value Bundle::getLane(Value element) const {
  int64_t packed = cache.getElementsPerLane() * cache.getLanesPerStored();
  return packed == 1 ? element : div(element, packed);
}

Value Bundle::getStoredRow(Value rowInPage, Value element) const {
  int64_t interleave = cache.getInterleave();
  if (interleave == 1)
    return rowInPage;
  // Some groups of all tokens that share their rows.
  int64_t groups = cache.getStoredHeadSize() / interleave;
  Value first = sub(rowInPage, rem(rowInPage, interleave));
  return add(first, div(getLane(element), groups));
}

Value Bundle::getStoredElement(Value rowInPage, Value element) const {
  if (cache.getStoredLanesPerHead() == 1)
    return constantLike(element, 0);
  int64_t interleave = cache.getInterleave();
  Value lane = getLane(element);
  if (interleave == 1)
    return lane;
  int64_t groups = cache.getStoredHeadSize() / interleave;
  return add(mul(rem(lane, groups), interleave), rem(rowInPage, interleave));
}

Value Bundle::getHeadOffset(Value head) const {
  if (cache.hasOpenHeadStride())
    return mul(fromI32(head), get(PartKind::HeadStride));
  return mul(head, cache.getHeadStride());
}

/// Whether 32 bits hold the offsets of `count` pieces of `size` elements, each
/// `stride` after the one before. Strides are below 2^40, counts below 2^31.
static bool fitIn32Bits(int64_t count, int64_t stride, int64_t size) {
  constexpr int64_t limit = int64_t(1) << 31;
  if (ShapedType::isDynamic(count) || ShapedType::isDynamic(stride))
    return false;
  return size <= limit &&
         (count == 1 || stride <= (limit - size) / (count - 1));
}

Value Bundle::getInPage(Value head, Value rowInPage, Value element) const {
  int64_t tokens = cache.getRowsPerPage(), heads = cache.getNumHeads();
  int64_t size = cache.getStoredHeadSize();
  bool areTokensNarrow = fitIn32Bits(tokens, getRowPitch(), size);
  bool areHeadsNarrow = fitIn32Bits(heads, cache.getHeadStride(), size);
  bool isNarrow = areTokensNarrow && areHeadsNarrow &&
                  fitIn32Bits(heads, cache.getHeadStride(),
                              (tokens - 1) * getRowPitch() + size);
  // Indices of a continuous cache have 64 bits.
  Value row = getStoredRow(rowInPage, element);
  if (isNarrow || !cache.isPaged()) {
    Value inPage = mul(row, getRowPitch());
    inPage = add(inPage, getHeadOffset(head));
    return fromI32(add(inPage, getStoredElement(rowInPage, element)));
  }
  // The element joins a sum of 32 bits, if there is one.
  Value tokenOffset = mul(areTokensNarrow ? row : fromI32(row), getRowPitch());
  Value headOffset = getHeadOffset(areHeadsNarrow ? head : fromI32(head));
  element = getStoredElement(rowInPage, element);
  Value &joined = areHeadsNarrow || !areTokensNarrow ? headOffset : tokenOffset;
  joined = add(joined, joined.getType().isIndex() ? fromI32(element) : element);
  return add(fromI32(tokenOffset), fromI32(headOffset));
}

Value Bundle::getElement(Value batch, Value head, Value token, Value element,
                         Value knownPage) const {
  // Offsets inside a block of a continuous cache may take 64 bits.
  if (cache.isPaged()) {
    head = toI32(head);
    token = toI32(token);
    element = toI32(element);
  }
  Value inPage = getInPage(head, getRowInPage(token), element);
  Value page = getPage(batch, token, knownPage);
  return add(mul(page, get(PartKind::PageStride)), inPage);
}

Value Bundle::getBlocks() const {
  return window(get(PartKind::Blocks),
                mul(getIndex(PartKind::NumPages), get(PartKind::PageStride)));
}

Value Bundle::getMemory(MemRefType type) const {
  unsigned tokens = getTokensDim(type);
  SmallVector<Value> sizes = {getIndex(PartKind::NumPages)};
  SmallVector<Value> strides = {get(PartKind::PageStride)};
  if (cache.isCollection()) {
    sizes.push_back(getIndex(PartKind::NumLayers));
    // The one role of a latent cache is at no distance.
    Value layer = get(PartKind::LayerStride);
    strides.push_back(cache.isMLA() ? layer : get(PartKind::RoleStride));
    strides.push_back(layer);
  }
  if (type.isDynamicDim(tokens))
    sizes.push_back(getPageSize());
  if (cache.hasOpenHeadStride())
    strides.push_back(get(PartKind::HeadStride));
  auto [buffer, start] = takeApart(get(PartKind::Blocks));
  return memref::ReinterpretCastOp::create(
      builder, loc, type, buffer, OpFoldResult(start),
      getMixedValues(type.getShape(), sizes, builder),
      getMixedValues(type.getStridesAndOffset().first, strides, builder));
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

int64_t kvcache::getBaseAlignment(Operation *op) {
  const Chip *chip = getTargetChip(op);
  return chip && chip->has(Feature::Access256) ? 32 : 16;
}
