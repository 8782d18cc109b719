//===- WholeCacheOps.cpp - Ops on whole caches ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "WholeCacheRules.h"

#include "kvcache/IR/WholeCacheOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void AppendOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/false, /*writesCache=*/true,
                       effects);
}
void GatherOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/true, /*writesCache=*/false,
                       effects);
}
void CopyOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/true, /*writesCache=*/true,
                       effects);
}
void CopyPagesOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/true, /*writesCache=*/true,
                       effects);
}
void RemapRowsOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/false, /*writesCache=*/false,
                       effects);
}

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

void AppendOp::build(OpBuilder &b, OperationState &state, Value keys,
                     Value values, Value keyCache, Value valueCache,
                     Value rowOffsets, Value queries) {
  build(b, state, TypeRange(getTensorTypes(queries)), keys, values,
        /*latent_rope=*/Value(), keyCache, valueCache, rowOffsets,
        /*slots=*/Value(), /*norm=*/Value(), /*query_norm=*/Value(),
        /*rope=*/Value(), /*positions=*/Value(), queries, /*key_scale=*/Value(),
        /*value_scale=*/Value(), /*query_out=*/Value(),
        /*query_scale=*/Value(), FloatAttr(), IntegerAttr(), UnitAttr(),
        UnitAttr(), UnitAttr(), DenseI64ArrayAttr(), IntegerAttr());
}

void GatherOp::build(OpBuilder &b, OperationState &state, Value keyCache,
                     Value valueCache, Value keys, Value values) {
  build(b, state, getTensorTypes({keys, values}), keyCache, valueCache,
        /*row_offsets=*/Value(), /*begin=*/Value(), /*end=*/Value(), keys,
        values, /*output_offsets=*/Value(), /*key_scale=*/Value(),
        /*value_scale=*/Value(), IntegerAttr(), IntegerAttr());
}

void CopyOp::build(OpBuilder &b, OperationState &state, Value source,
                   Value target) {
  build(b, state, source, target, /*begin=*/Value(), /*end=*/Value(),
        /*source_scale=*/Value(), /*target_scale=*/Value(), IntegerAttr(),
        IntegerAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr());
}

void RemapRowsOp::build(OpBuilder &b, OperationState &state, Value tokens,
                        Value cache, Value rowOffsets, Value ids) {
  build(b, state, TypeRange(getTensorTypes(ids)), tokens, cache, rowOffsets,
        ids, IntegerAttr());
}

//===----------------------------------------------------------------------===//
// append
//===----------------------------------------------------------------------===//

/// (C11).
static LogicalResult verifyRopeAxes(AppendOp op, int64_t pairs) {
  auto positions = op.getPositions()
                       ? cast<ShapedType>(op.getPositions().getType())
                       : ShapedType();
  bool hasAxes = positions && positions.getRank() == 2;
  if (hasAxes != op.getRopeAxes().has_value())
    return op.emitOpError("expects 'rope_axes' and 'positions' of two "
                          "dimensions together");
  if (!hasAxes)
    return success();
  int64_t count = positions.getDimSize(0);
  if (ShapedType::isDynamic(count))
    return op.emitOpError("expects a static number of axes in 'positions'");
  ArrayRef<int64_t> axes = *op.getRopeAxes();
  if (static_cast<int64_t>(axes.size()) != pairs)
    return op.emitOpError() << "expects 'rope_axes' to have a number for each "
                            << "of " << pairs << " pairs, got " << axes.size();
  for (int64_t axis : axes)
    if (axis < 0 || axis >= count)
      return op.emitOpError() << "expects 'rope_axes' to be below the " << count
                              << " axes of 'positions', got " << axis;
  return success();
}

/// (C4), (C5), (C7).
static LogicalResult verifyRope(AppendOp op, int64_t headSize) {
  if (!op.getRope()) {
    if (op.getInterleaved() || op.getRopeBegin() || op.getPositions() ||
        op.getRopeAxes())
      return op.emitOpError("expects 'interleaved', 'rope_begin', 'positions' "
                            "and 'rope_axes' only with 'rope'");
    return success();
  }
  int64_t size = cast<ShapedType>(op.getRope().getType()).getDimSize(1);
  if (ShapedType::isDynamic(size) || size <= 0 || size % 2)
    return op.emitOpError("expects 'rope' to have an even, static number of "
                          "columns");
  int64_t begin = op.getRopeBegin();
  if (begin < 0 || size > headSize || begin > headSize - size)
    return op.emitOpError() << "expects 'rope_begin' (" << begin << ") and the "
                            << size << " columns of 'rope' to be in a head of "
                            << headSize << " elements";
  if (op.getLatentRope() &&
      begin < headSize -
                  cast<ShapedType>(op.getLatentRope().getType()).getDimSize(2))
    return op.emitOpError("expects 'rope' to rotate elements of 'latent_rope' "
                          "only");
  if (op.getSlots() && !op.getPositions())
    return op.emitOpError("expects 'positions', because 'slots' say none");
  return verifyRopeAxes(op, size / 2);
}

static LogicalResult verifyNorm(Operation *op, StringRef name, Value weights,
                                int64_t most) {
  if (!weights)
    return success();
  int64_t size = cast<ShapedType>(weights.getType()).getDimSize(0);
  if (ShapedType::isDynamic(size) || size < 1 || size > most)
    return op->emitOpError() << "expects '" << name << "' to have a static "
                             << "size of at most " << most;
  return success();
}

/// (C1): the elements of `latent_rope`, or 0 without it.
static FailureOr<int64_t> verifyLatentRope(AppendOp op,
                                           CacheTypeInterface cache) {
  if (!op.getLatentRope())
    return 0;
  if (!cache.isMLA())
    return op.emitOpError("expects 'latent_rope' only for a latent cache");
  auto rope = cast<ShapedType>(op.getLatentRope().getType());
  int64_t size = rope.getDimSize(2);
  if (ShapedType::isDynamic(size) || size >= cache.getHeadSize())
    return op.emitOpError("expects 'latent_rope' to have a static size below "
                          "that of a row");
  if (failed(verifyDense(op, "latent_rope", rope, cache.getNumHeads(), size)))
    return failure();
  return size;
}

/// (C3), (C4), (C6).
static LogicalResult verifyQueries(AppendOp op, CacheTypeInterface cache) {
  if (op.getQueryNorm() && !op.getQueries())
    return op.emitOpError("expects 'queries' for 'query_norm'");
  if (!op.getQueries())
    return success();
  auto queries = cast<ShapedType>(op.getQueries().getType());
  int64_t size = queries.getDimSize(2);
  if (ShapedType::isDynamic(queries.getDimSize(1)) ||
      ShapedType::isDynamic(size))
    return op.emitOpError("expects 'queries' to have static sizes of heads and "
                          "elements, got ")
           << queries;
  if (!cache.isMLA() && size != cache.getHeadSize())
    return op.emitOpError()
           << "expects 'queries' to have heads of " << cache.getHeadSize()
           << " elements, got " << queries;
  if (op.getRope()) {
    int64_t begin = op.getRopeBegin();
    int64_t end =
        begin + cast<ShapedType>(op.getRope().getType()).getDimSize(1);
    if (end > size)
      return op.emitOpError() << "expects 'rope', of elements " << begin
                              << " to " << end << ", to be in a head of "
                              << "'queries', got " << queries;
  }
  if (failed(verifyPacked(op, "queries", queries)))
    return failure();
  return verifyNorm(op, "query_norm", op.getQueryNorm(), size);
}

/// (C14).
static LogicalResult verifyQueryOut(AppendOp op) {
  if (!op.getQueryOut())
    return op.getQueryScale()
               ? op.emitOpError("expects 'query_out' for 'query_scale'")
               : success();
  if (!op.getQueries())
    return op.emitOpError("expects 'queries' for 'query_out'");
  auto queries = cast<ShapedType>(op.getQueries().getType());
  return success(
      succeeded(verifyDense(op, "query_out", op.getQueryOut().getType(),
                            queries.getDimSize(1), queries.getDimSize(2))) &&
      succeeded(verifyScaleOfRows(op, "query_scale", op.getQueryScale(),
                                  "query_out", op.getQueryOut())));
}

/// (C8), (C9).
static LogicalResult verifyScalesOfTokens(AppendOp op) {
  if (failed(verifyLeastAmax(op, op.getLeastAmax(), op.getPowerOfTwo())))
    return failure();
  for (Value cache : {op.getKeyCache(), op.getValueCache()}) {
    if (!cache)
      continue;
    auto type = cast<CacheTypeInterface>(cache.getType());
    if (op.getPowerOfTwo() && failed(verifyPowerOfTwo(op, type)))
      return failure();
    if (type.getTokenGranularity() != 1)
      return op.emitOpError("expects tokens with scales of their own, because "
                            "groups of tokens are not full at every row, got ")
             << type << "; 'kvcache.copy' writes whole groups";
  }
  return success();
}

/// (C13), (C15).
static LogicalResult verifyWritten(AppendOp op) {
  if (failed(verifyApart(op, {"queries", op.getQueries()},
                         {{"keys", op.getKeys()},
                          {"values", op.getValues()},
                          {"latent_rope", op.getLatentRope()}})))
    return failure();
  Value written = op.getQueryOut() ? Value() : op.getQueries();
  return verifyElementsApart(
      op, {{"queries", written}, {"query_out", op.getQueryOut()}});
}

/// (C2).
static LogicalResult verifyAppendedValues(AppendOp op) {
  if (!op.getValues() != !op.getValueCache())
    return op.emitOpError("expects 'values' and 'value_cache' together");
  if (!op.getValues())
    return success();
  auto cache = cast<CacheTypeInterface>(op.getValueCache().getType());
  if (cache.isMLA())
    return op.emitOpError("expects no 'values' for a latent cache");
  return verifyDense(op, "values", op.getValues().getType(),
                     cache.getNumHeads(), cache.getHeadSize());
}

LogicalResult AppendOp::verify() {
  auto cache = cast<CacheTypeInterface>(getKeyCache().getType());
  FailureOr<int64_t> rope = verifyLatentRope(*this, cache);
  if (failed(rope))
    return failure();
  int64_t size = cache.getHeadSize() - *rope;
  // (C1), (C3)
  if (failed(verifyDense(*this, "keys", getKeys().getType(),
                         cache.getNumHeads(), size)) ||
      failed(verifyAppendedValues(*this)) ||
      failed(verifyRope(*this, cache.getHeadSize())) ||
      failed(verifyNorm(*this, "norm", getNorm(), size)))
    return failure();
  // (C5)
  if (getSlots() && !cache.isPaged())
    return emitOpError("expects a paged cache for 'slots'");
  if (failed(verifyQueries(*this, cache)) || failed(verifyQueryOut(*this)) ||
      failed(verifyScalesOfTokens(*this)) ||
      // (C10)
      failed(verifyStaticScale(*this, "key_scale", getKeyScale(),
                               getKeyCache())) ||
      failed(verifyStaticScale(*this, "value_scale", getValueScale(),
                               getValueCache())) ||
      failed(verifyCommonSize(*this, "rows",
                              {{getKeys(), 0},
                               {getValues(), 0},
                               {getLatentRope(), 0},
                               {getSlots(), 0},
                               {getPositions(), -1},
                               {getQueries(), 0},
                               {getQueryOut(), 0}})) ||
      failed(verifyWritten(*this)))
    return failure();
  return verifyResults(*this);
}

//===----------------------------------------------------------------------===//
// gather, copy, copy_pages
//===----------------------------------------------------------------------===//

MutableOperandRange GatherOp::getDpsInitsMutable() {
  return MutableOperandRange(
      getOperation(), getKeysMutable().getOperandNumber(), getValues() ? 2 : 1);
}

LogicalResult GatherOp::verify() {
  // (C2)
  if (!getValues() != !getValueCache())
    return emitOpError("expects 'values' and 'value_cache' together");
  // (C1), (C3)
  int64_t rank = getOutputOffsets() ? 3 : 4;
  auto verify = [&](StringRef name, Value out, Value cache) -> LogicalResult {
    if (cast<ShapedType>(out.getType()).getRank() != rank)
      return emitOpError() << "expects '" << name << "' to have " << rank
                           << " dimensions, "
                           << (rank == 3 ? "because there are 'output_offsets'"
                                         : "or 'output_offsets'");
    auto type = cast<CacheTypeInterface>(cache.getType());
    return verifyDense(*this, name, out.getType(), type.getNumHeads(),
                       type.getHeadSize());
  };
  if (failed(verify("keys", getKeys(), getKeyCache())) ||
      (getValues() && failed(verify("values", getValues(), getValueCache()))) ||
      failed(verifyStaticScale(*this, "key_scale", getKeyScale(),
                               getKeyCache())) ||
      failed(verifyStaticScale(*this, "value_scale", getValueScale(),
                               getValueCache())))
    return failure();
  for (int64_t dimension = 0; dimension < rank - 2; ++dimension)
    if (failed(verifyCommonSize(
            *this, "rows", {{getKeys(), dimension}, {getValues(), dimension}})))
      return failure();
  // (C7)
  Value batch = getOutputOffsets() ? Value() : getKeys();
  if (failed(verifyCommonSize(*this, "sequences",
                              {{getBegin(), 0}, {getEnd(), 0}, {batch, 0}})))
    return failure();
  // (C5)
  if (failed(
          verifyApart(*this, {"values", getValues()}, {{"keys", getKeys()}})))
    return failure();
  // (C6)
  if (failed(verifyElementsApart(
          *this, {{"keys", getKeys()}, {"values", getValues()}})))
    return failure();
  return verifyResults(*this);
}

int64_t CopyOp::getNumHeads() {
  return getHeads().value_or(
      cast<CacheTypeInterface>(getSource().getType()).getNumHeads());
}

LogicalResult CopyOp::verify() {
  auto source = cast<CacheTypeInterface>(getSource().getType());
  auto target = cast<CacheTypeInterface>(getTarget().getType());
  // (C1)
  if (source.getHeadSize() != target.getHeadSize())
    return emitOpError() << "expects caches of one head size, got "
                         << source.getHeadSize() << " and "
                         << target.getHeadSize();
  // (C3)
  bool converts = source.getElementType() != target.getElementType() ||
                  getSourceScale() || getTargetScale();
  if (converts && (failed(verifyStaticScale(*this, "source_scale",
                                            getSourceScale(), getSource())) ||
                   failed(verifyStaticScale(*this, "target_scale",
                                            getTargetScale(), getTarget()))))
    return failure();
  if (converts)
    for (CacheTypeInterface cache : {source, target})
      if (!cache.convertsElements())
        return emitOpError("expects caches of one element type, because the "
                           "elements of one are not converted, got ")
               << source.getElementType() << " and " << target.getElementType();
  auto verifyRange = [&](StringRef name, int64_t begin,
                         CacheTypeInterface cache) -> LogicalResult {
    if (begin >= 0 && getNumHeads() >= 1 &&
        begin <= cache.getNumHeads() - getNumHeads())
      return success();
    return emitOpError() << "expects " << getNumHeads() << " heads from "
                         << begin << " on to be among the "
                         << cache.getNumHeads() << " of '" << name << "'";
  };
  // (C2)
  if (failed(verifyRange("source", getSourceHead(), source)) ||
      failed(verifyRange("target", getTargetHead(), target)))
    return failure();
  // (C5)
  int64_t first = getSourceHead(), other = getTargetHead();
  if (getSource() == getTarget() &&
      std::max(first, other) < std::min(first, other) + getNumHeads())
    return emitOpError("expects 'source' and 'target' to share no heads, got "
                       "one cache with ")
           << getNumHeads() << " heads from " << first << " on and from "
           << other << " on";
  // (C6)
  return verifyCommonSize(*this, "sequences", {{getBegin(), 0}, {getEnd(), 0}});
}

LogicalResult CopyPagesOp::verify() {
  // (C1)
  int64_t columns = cast<ShapedType>(getPairs().getType()).getDimSize(1);
  if (columns != 2)
    return emitOpError("expects 'pairs' to have two columns, got ")
           << getPairs().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// remap_rows
//===----------------------------------------------------------------------===//

LogicalResult RemapRowsOp::verify() {
  if (isa<ScalesType>(getCache().getType()))
    return emitOpError("expects 'cache' not to be a view of scales");
  // (C2)
  auto tokens = cast<ShapedType>(getTokens().getType());
  auto ids = cast<ShapedType>(getIds().getType());
  if (tokens.getDimSize(1) != ids.getDimSize(1))
    return emitOpError("expects 'ids' to have the shape of 'tokens', got ")
           << ids << " and " << tokens;
  if (failed(
          verifyCommonSize(*this, "rows", {{getTokens(), 0}, {getIds(), 0}})) ||
      // (C4)
      failed(verifyElementsApart(*this, {{"ids", getIds()}})))
    return failure();
  return verifyResults(*this);
}
