//===- AttentionOps.cpp - Attention over caches ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WholeCacheRules.h"

#include "kvcache/IR/AttentionOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void AttentionOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/true, /*writesCache=*/false,
                       effects);
  if (Value workspace = getWorkspace())
    for (OpOperand &operand : getOperation()->getOpOperands())
      if (operand.get() == workspace)
        effects.emplace_back(MemoryEffects::Write::get(), &operand);
}

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

void AttentionOp::build(OpBuilder &b, OperationState &state, Value q,
                        Value keyCache, Value valueCache, Value rowOffsets,
                        Value scale, Value out, Value lse) {
  build(b, state, getTensorTypes({out, lse}), q, keyCache, valueCache,
        rowOffsets, scale, out, lse, /*max_logits=*/Value(),
        /*workspace=*/Value(), /*sinks=*/Value(),
        /*mask=*/Value(), /*rows=*/Value(), /*lengths=*/Value(),
        /*key_scale=*/Value(), /*value_scale=*/Value(), /*query_scale=*/Value(),
        /*out_scale=*/Value(), /*q_rope=*/Value(), /*rope_cache=*/Value(),
        /*ranges=*/Value(), UnitAttr(), IntegerAttr(), FloatAttr(),
        IntegerAttr(), UnitAttr(), UnitAttr(), UnitAttr(), SplitAttr(),
        AttentionConfigAttr(),
        /*modifiersCount=*/0);
}

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

/// The last size of rows.
static int64_t countElements(Value rows) {
  return cast<ShapedType>(rows.getType()).getDimSize(2);
}

int64_t AttentionOp::getKeySize() {
  return countElements(getQ()) + (getQRope() ? countElements(getQRope()) : 0);
}

int64_t AttentionOp::getRopeSize() {
  return getRopeCache()
             ? cast<CacheTypeInterface>(getRopeCache().getType()).getHeadSize()
             : 0;
}

/// (C1), (C18).
static LogicalResult verifyQueries(AttentionOp op, CacheTypeInterface cache) {
  auto q = cast<ShapedType>(op.getQ().getType());
  int64_t heads = q.getDimSize(1), own = cache.getNumHeads();
  if (ShapedType::isDynamic(heads) || heads < 1 || heads % own) {
    InFlightDiagnostic error =
        op.emitOpError() << "expects 'q' to have a static number of "
                         << "heads, a multiple of the cache's (" << own << ")";
    if (!ShapedType::isDynamic(heads))
      error << ", got " << heads;
    return error;
  }
  // The CPU has tiles of heads on the stack.
  constexpr int64_t most = 16384;
  int64_t size = cache.getHeadSize() + op.getRopeSize();
  for (int64_t each :
       {size, cast<CacheTypeInterface>(op.getValues().getType()).getHeadSize()})
    if (each > most)
      return op.emitOpError() << "expects at most " << most
                              << " elements of a head, got " << each;
  if (!op.getQRope())
    return verifyRows(op, "q", q, heads, size);
  if (!cache.isMLA())
    return op.emitOpError("expects 'q_rope' only for a latent cache");
  auto rope = cast<ShapedType>(op.getQRope().getType());
  if (rope.getElementType() != q.getElementType())
    return op.emitOpError() << "expects 'q_rope' to have the element type of "
                            << "'q' (" << q.getElementType() << "), got "
                            << rope.getElementType();
  int64_t first = q.getDimSize(2);
  if (ShapedType::isDynamic(first) || first < 1 || first >= size)
    return op.emitOpError() << "expects 'q' to have a static number of less "
                            << "than " << size << " elements of a head with "
                            << "'q_rope', got " << q;
  return success(
      succeeded(verifyRows(op, "q", q, heads, first)) &&
      succeeded(verifyRows(op, "q_rope", rope, heads, size - first)));
}

/// (C19), (C20).
static LogicalResult verifyRopeCache(AttentionOp op, CacheTypeInterface keys) {
  if (!op.getRopeCache())
    return success();
  auto rope = cast<CacheTypeInterface>(op.getRopeCache().getType());
  if (!keys.isMLA() || !rope.isMLA())
    return op.emitOpError("expects 'rope_cache' only for a latent cache, and "
                          "latent itself, got ")
           << rope << " and " << keys;
  if (keys.isPaged() != rope.isPaged() ||
      (keys.isPaged() && keys.getPageSize() != rope.getPageSize()))
    return op.emitOpError() << "expects 'rope_cache' to have the pages of "
                            << "'key_cache', got " << rope << " and " << keys;
  if (rope.isQuantized() || !isa<FloatType>(rope.getElementType()) ||
      rope.getElementType().getIntOrFloatBitWidth() < 16)
    return op.emitOpError() << "expects 'rope_cache' to have elements of f32, "
                            << "f16 or bf16 without scales, got " << rope;
  if (op.getKeyScale())
    return op.emitOpError("expects no 'key_scale' with 'rope_cache'");
  return success();
}

/// (C2), (C3).
static LogicalResult verifyOutputs(AttentionOp op, CacheTypeInterface cache) {
  if (!op.getValueCache() != cache.isMLA())
    return op.emitOpError(cache.isMLA()
                              ? "expects no 'value_cache', because 'key_cache' "
                                "is latent"
                              : "expects 'value_cache', because 'key_cache' is "
                                "not latent");
  auto values = cast<CacheTypeInterface>(op.getValues().getType());
  if (values.getNumHeads() != cache.getNumHeads())
    return op.emitOpError()
           << "expects 'value_cache' to have " << cache.getNumHeads()
           << " heads, got " << values.getNumHeads();
  int64_t heads = cast<ShapedType>(op.getQ().getType()).getDimSize(1);
  auto out = cast<ShapedType>(op.getOut().getType());
  int64_t size = out.getDimSize(2);
  if (ShapedType::isDynamic(size) || size < 1 || size > values.getHeadSize())
    return op.emitOpError() << "expects 'out' to have a static number of at "
                            << "most " << values.getHeadSize()
                            << " elements of a head, got " << out;
  if (size % values.getLanesPerStored())
    return op.emitOpError()
           << "expects 'out' to have an even number of elements of a head for "
           << "values of " << values.getElementType() << ", got " << size;
  if (failed(verifyDense(op, "out", out, heads, size)))
    return failure();
  auto verifySize = [&](StringRef name, Value value) -> LogicalResult {
    if (!value)
      return success();
    auto type = cast<ShapedType>(value.getType());
    if (type.getShape().back() == heads)
      return success();
    return op.emitOpError() << "expects '" << name << "' to have " << heads
                            << " heads, got " << type;
  };
  return success(succeeded(verifySize("lse", op.getLse())) &&
                 succeeded(verifySize("max_logits", op.getMaxLogits())) &&
                 succeeded(verifySize("sinks", op.getSinks())));
}

/// (C5).
static LogicalResult verifySparseRows(AttentionOp op) {
  if (!op.getRows())
    return success();
  if (op.getCausal() || op.getWindow() || op.getChunk() || op.getMask() ||
      op.getRanges() || op.getLengths())
    return op.emitOpError("expects no 'causal', 'window', 'chunk', 'mask', "
                          "'ranges' or 'lengths' with 'rows', which say what "
                          "is seen");
  auto keys = cast<CacheTypeInterface>(op.getKeyCache().getType());
  auto values = cast<CacheTypeInterface>(op.getValues().getType());
  if (!keys.isPaged() || !values.isPaged() ||
      keys.getPageSize() != values.getPageSize())
    return op.emitOpError("expects paged caches of one page size for 'rows', "
                          "got ")
           << keys << " and " << values;
  auto rows = cast<ShapedType>(op.getRows().getType());
  if (rows.getRank() == 3 && rows.getDimSize(1) != keys.getNumHeads())
    return op.emitOpError()
           << "expects 'rows' to have the " << keys.getNumHeads()
           << " heads of the caches, got " << rows;
  return success();
}

/// (C6), (C21).
static LogicalResult verifyMasks(AttentionOp op) {
  if (op.getSinklessLse() && !op.getSinks())
    return op.emitOpError("expects 'sinkless_lse' only with 'sinks'");
  if (op.getWholeMask() && !op.getMask())
    return op.emitOpError("expects 'whole_mask' only with 'mask'");
  if (!op.getRanges())
    return success();
  auto type = cast<ShapedType>(op.getRanges().getType());
  if (type.getDimSize(1) != 0 && type.getDimSize(2) == 2)
    return success();
  return op.emitOpError("expects 'ranges' to have at least one range of a row, "
                        "and 2 numbers of each, got ")
         << type;
}

SplitAttr AttentionOp::getSplitOrDefault() {
  SplitAttr split = getSplitAttr();
  return split ? split : SplitAttr::getDefault(getContext());
}

AttentionConfig AttentionOp::getFields() {
  AttentionConfigAttr config = getConfigAttr();
  return config ? config.getConfig() : AttentionConfig();
}

bool AttentionOp::mergesInCluster() {
  return getFields().merge == SplitMerge::Cluster;
}

bool AttentionOp::decidesSplits() {
  AttentionConfig config = getFields();
  return config.mma == MmaKind::None ||
         (config.mma && config.rows && config.keys && config.dequant);
}

/// (C7), (C11).
static LogicalResult verifyWorkspace(AttentionOp op) {
  if (op.getWorkspace())
    return verifySplitMemory(op, op.getWorkspace(), op.getRowOffsets(),
                             op.getOut(), op.getSplitOrDefault());
  if (op.getSplit() && !op.mergesInCluster())
    return op.emitOpError("expects 'split' only with 'workspace', or with "
                          "'merge = cluster' in 'config'");
  if (op.getFields().persistent.value_or(0))
    return op.emitOpError("expects 'persistent' above 0 only with 'workspace'");
  return success();
}

/// (C22), (C23).
static LogicalResult verifyPartial(AttentionOp op) {
  if (!op.getPartial())
    return success();
  if (!op.getWorkspace())
    return op.emitOpError("expects 'partial' only with 'workspace'");
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
    return op.emitOpError("expects 'partial' only without tensors");
  if (op.decidesSplits())
    return success();
  return op.emitOpError(
      "expects 'partial' only with a 'config' that has 'mma', 'rows', 'keys' "
      "and 'dequant', or 'mma = none'");
}

/// (C26), (C27).
static LogicalResult verifyClusterMerge(AttentionOp op) {
  if (!op.mergesInCluster())
    return success();
  // The most thread blocks of a cluster on every chip that has clusters.
  constexpr int64_t least = 2, most = 8;
  int64_t max = op.getSplitOrDefault().getMax();
  if (max < least || max > most)
    return op.emitOpError("expects 'max' of 'split' to be from ")
           << least << " to " << most
           << " with 'merge = cluster' in 'config', got " << max;
  for (auto [name, isThere] : {std::pair("partial", op.getPartial()),
                               std::pair("rows", bool(op.getRows()))})
    if (isThere)
      return op.emitOpError("expects no '")
             << name << "' with 'merge = cluster' in 'config'";
  return success();
}

LogicalResult AttentionOp::verify() {
  auto cache = cast<CacheTypeInterface>(getKeyCache().getType());
  if (failed(verifyRopeCache(*this, cache)) ||
      failed(verifyQueries(*this, cache)) ||
      failed(verifyOutputs(*this, cache)) || failed(verifySparseRows(*this)) ||
      failed(verifyMasks(*this)) || failed(verifyWorkspace(*this)) ||
      failed(verifyPartial(*this)) || failed(verifyClusterMerge(*this)))
    return failure();
  // (C4)
  if (std::optional<APFloat> cap = getSoftCap()) {
    double value = cap->convertToDouble();
    if (!(value >= 0x1p-16 && value <= 0x1p16))
      return emitOpError(
                 "expects 'soft_cap' to be between 2^-16 and 2^16, got ")
             << value;
  }
  // (C8), (C9)
  if (failed(verifyStaticScale(*this, "key_scale", getKeyScale(),
                               getKeyCache())) ||
      failed(verifyStaticScale(*this, "value_scale", getValueScale(),
                               getValueCache())) ||
      failed(verifyScaleOfRows(*this, "query_scale", getQueryScale(), "q",
                               getQ())) ||
      failed(verifyScaleOfRows(*this, "out_scale", getOutScale(), "out",
                               getOut())))
    return failure();
  if (failed(verifyNoEarlierAttributes(
          *this,
          {"split_tokens", "max_splits", "split_rows", "tile_rows",
           "scheduled_blocks", "swap_operands", "l2_hint"},
          "'split' and 'config'")))
    return failure();
  // (C10)
  AttentionConfig config = getFields();
  std::string obstacle = getTileObstacle();
  bool isOnTensorCores =
      config.rows || config.mma.value_or(MmaKind::None) != MmaKind::None;
  if (!obstacle.empty() && isOnTensorCores)
    return emitOpError("expects 'config' to have no 'rows', and no 'mma' but "
                       "'none', with ")
           << obstacle << ", got " << getConfigAttr();
  if (failed(verifyCommonSize(*this, "rows",
                              {{getQ(), 0},
                               {getQRope(), 0},
                               {getOut(), 0},
                               {getLse(), 0},
                               {getMaxLogits(), 0},
                               {getMask(), 0},
                               {getRows(), 0},
                               {getRanges(), 0}})))
    return failure();
  // (C12)
  if (failed(verifyApart(*this, {"out", getOut()},
                         {{"q", getQ()}, {"q_rope", getQRope()}})) ||
      failed(verifyApart(*this, {"lse", getLse()},
                         {{"max_logits", getMaxLogits()}})))
    return failure();
  // (C24)
  if (failed(verifyElementsApart(*this, {{"out", getOut()},
                                         {"lse", getLse()},
                                         {"max_logits", getMaxLogits()}})))
    return failure();
  // (C25)
  if (failed(verifyBatch(*this, "lengths", getLengths(), getRowOffsets())))
    return failure();
  return verifyResults(*this);
}
