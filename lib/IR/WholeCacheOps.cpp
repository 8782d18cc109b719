//===- WholeCacheOps.cpp - Ops on whole caches ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "OpSyntax.h"

#include "kvcache/IR/WholeCacheOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

ParseResult kvcache::parseAttentionOperands(
    OpAsmParser &parser, OpAsmParser::UnresolvedOperand &q,
    OpAsmParser::UnresolvedOperand &keys,
    std::optional<OpAsmParser::UnresolvedOperand> &values,
    OpAsmParser::UnresolvedOperand &rowOffsets,
    OpAsmParser::UnresolvedOperand &scale) {
  SmallVector<OpAsmParser::UnresolvedOperand> all;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(all))
    return failure();
  if (all.size() != 4 && all.size() != 5)
    return parser.emitError(loc)
           << "expects queries, keys, values unless the cache is latent, row "
              "offsets and a scale, got "
           << all.size() << " operands";
  q = all[0];
  keys = all[1];
  if (all.size() == 5)
    values = all[2];
  rowOffsets = all[all.size() - 2];
  scale = all.back();
  return success();
}
void kvcache::printAttentionOperands(OpAsmPrinter &p, Operation *, Value q,
                                     Value keys, Value values, Value rowOffsets,
                                     Value scale) {
  p << q << ", " << keys << ", ";
  if (values)
    p << values << ", ";
  p << rowOffsets << ", " << scale;
}

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// The effects of an op that reads dense memrefs, writes its `outs`, and reads
/// or writes caches. Those of caches are on the default resource: other ops
/// reach the same memory by other values.
static void addEffects(DestinationStyleOpInterface op, bool readsCache,
                       bool writesCache, Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
  if (readsCache)
    effects.emplace_back(MemoryEffects::Read::get());
  if (writesCache)
    effects.emplace_back(MemoryEffects::Write::get());
}

void AppendOp::getEffects(Effects &effects) {
  addEffects(*this, /*readsCache=*/false, /*writesCache=*/true, effects);
}
void GatherOp::getEffects(Effects &effects) {
  addEffects(*this, /*readsCache=*/true, /*writesCache=*/false, effects);
}
void CopyOp::getEffects(Effects &effects) {
  addEffects(*this, /*readsCache=*/true, /*writesCache=*/true, effects);
}
void CopyPagesOp::getEffects(Effects &effects) {
  addEffects(*this, /*readsCache=*/true, /*writesCache=*/true, effects);
}
void AttentionOp::getEffects(Effects &effects) {
  addEffects(*this, /*readsCache=*/true, /*writesCache=*/false, effects);
  if (Value workspace = getWorkspace())
    for (OpOperand &operand : getOperation()->getOpOperands())
      if (operand.get() == workspace)
        effects.emplace_back(MemoryEffects::Write::get(), &operand);
}
void MergeStatesOp::getEffects(Effects &effects) {
  addEffects(*this, /*readsCache=*/false, /*writesCache=*/false, effects);
}
void RemapRowsOp::getEffects(Effects &effects) {
  addEffects(*this, /*readsCache=*/false, /*writesCache=*/false, effects);
}

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

/// The types of those outputs that are tensors, which an op has results of; an
/// output may be null.
static SmallVector<Type> getTensorTypes(ValueRange outputs) {
  SmallVector<Type> types;
  for (Value output : outputs)
    if (output && isa<RankedTensorType>(output.getType()))
      types.push_back(output.getType());
  return types;
}

void AppendOp::build(OpBuilder &b, OperationState &state, Value keys,
                     Value values, Value keyCache, Value valueCache,
                     Value rowOffsets, Value queries) {
  build(b, state, TypeRange(getTensorTypes(queries)), keys, values,
        /*latent_rope=*/Value(), keyCache, valueCache, rowOffsets,
        /*slots=*/Value(), /*norm=*/Value(), /*query_norm=*/Value(),
        /*rope=*/Value(), /*positions=*/Value(), queries, /*key_scale=*/Value(),
        /*value_scale=*/Value(), FloatAttr(), IntegerAttr(), UnitAttr(),
        UnitAttr(), DenseI64ArrayAttr());
}

void GatherOp::build(OpBuilder &b, OperationState &state, Value keyCache,
                     Value valueCache, Value keys, Value values) {
  build(b, state, getTensorTypes({keys, values}), keyCache, valueCache,
        /*row_offsets=*/Value(), /*begin=*/Value(), /*end=*/Value(), keys,
        values, /*output_offsets=*/Value(), /*key_scale=*/Value(),
        /*value_scale=*/Value());
}

void CopyOp::build(OpBuilder &b, OperationState &state, Value source,
                   Value target) {
  build(b, state, source, target, /*begin=*/Value(), /*end=*/Value(),
        /*source_scale=*/Value(), /*target_scale=*/Value(), IntegerAttr(),
        IntegerAttr(), IntegerAttr());
}

void AttentionOp::build(OpBuilder &b, OperationState &state, Value q,
                        Value keyCache, Value valueCache, Value rowOffsets,
                        Value scale, Value out, Value lse) {
  build(b, state, getTensorTypes({out, lse}), q, keyCache, valueCache,
        rowOffsets, scale, out, lse, /*workspace=*/Value(), /*sinks=*/Value(),
        /*mask=*/Value(), /*rows=*/Value(), /*lengths=*/Value(),
        /*key_scale=*/Value(), /*value_scale=*/Value(), /*query_scale=*/Value(),
        /*out_scale=*/Value(), UnitAttr(), IntegerAttr(), FloatAttr(),
        IntegerAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr(),
        IntegerAttr());
}

void MergeStatesOp::build(OpBuilder &b, OperationState &state, Value parts,
                          Value lses, Value out, Value lse) {
  build(b, state, getTensorTypes({out, lse}), parts, lses, out, lse);
}

void RemapRowsOp::build(OpBuilder &b, OperationState &state, Value tokens,
                        Value cache, Value rowOffsets, Value ids) {
  build(b, state, TypeRange(getTensorTypes(ids)), tokens, cache, rowOffsets,
        ids);
}

//===----------------------------------------------------------------------===//
// Common rules
//===----------------------------------------------------------------------===//

/// Checks that the last two sizes of `type` are static and those given.
static LogicalResult verifyHeads(Operation *op, StringRef name, Type type,
                                 int64_t heads, int64_t elements) {
  ArrayRef<int64_t> sizes = cast<ShapedType>(type).getShape().take_back(2);
  if (sizes[0] == heads && sizes[1] == elements)
    return success();
  auto print = [](int64_t size) {
    return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
  };
  return op->emitOpError() << "expects '" << name << "' to have " << heads
                           << " heads of " << elements << " elements, got "
                           << print(sizes[0]) << " of " << print(sizes[1]);
}

/// Checks that the last two sizes of a memref are packed.
static LogicalResult verifyPacked(Operation *op, StringRef name, Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.getRank() < 2)
    return success();
  SmallVector<int64_t> strides;
  int64_t offset, rank = memref.getRank();
  if (succeeded(memref.getStridesAndOffset(strides, offset)) &&
      strides[rank - 1] == 1 &&
      strides[rank - 2] == memref.getDimSize(rank - 1))
    return success();
  return op->emitOpError() << "expects the heads and elements of '" << name
                           << "' to be packed, got " << type;
}

static LogicalResult verifyDense(Operation *op, StringRef name, Type type,
                                 int64_t heads, int64_t elements) {
  return success(succeeded(verifyHeads(op, name, type, heads, elements)) &&
                 succeeded(verifyPacked(op, name, type)));
}

/// Checks that results are those of the inits that are tensors.
static LogicalResult verifyResults(DestinationStyleOpInterface op) {
  SmallVector<Type> expected = getTensorTypes(ValueRange(op.getDpsInits()));
  if (!expected.empty() &&
      static_cast<int64_t>(expected.size()) != op.getNumDpsInits())
    return op->emitOpError("expects 'outs' to be all tensors or all memrefs");
  if (llvm::equal(expected, op->getResultTypes()))
    return success();
  return op->emitOpError()
         << "expects a result for each of 'outs' that is a tensor";
}

/// Checks that a static scale suits its cache.
static LogicalResult verifyStaticScale(Operation *op, StringRef name,
                                       Value scale, Value cache) {
  if (!scale)
    return success();
  if (!cache)
    return op->emitOpError() << "expects values for '" << name << "'";
  auto type = cast<CacheTypeInterface>(cache.getType());
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (type.isQuantized() ? type.hasZeroPoints()
                         : !element || element.getWidth() != 8)
    return op->emitOpError() << "expects '" << name << "' only for a cache "
                             << "with scales and no zero points, or of fp8";
  auto perHead = dyn_cast<ShapedType>(scale.getType());
  if (perHead && perHead.getDimSize(0) != type.getNumHeads())
    return op->emitOpError() << "expects '" << name << "' to have the "
                             << type.getNumHeads() << " heads of its cache";
  return success();
}

//===----------------------------------------------------------------------===//
// append
//===----------------------------------------------------------------------===//

/// (C4), (C5), (C7).
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

/// (C2).
static LogicalResult verifyAppendedValues(AppendOp op) {
  if (!op.getValues() != !op.getValueCache())
    return op.emitOpError("expects 'values' and 'value_cache' together");
  if (!op.getValues())
    return success();
  auto cache = cast<CacheTypeInterface>(op.getValueCache().getType());
  if (cache.isMLA())
    return op.emitOpError("expects no values for a latent cache");
  return verifyDense(op, "values", op.getValues().getType(),
                     cache.getNumHeads(), cache.getHeadSize());
}

LogicalResult AppendOp::verify() {
  auto cache = cast<CacheTypeInterface>(getKeyCache().getType());
  int64_t heads = cache.getNumHeads(), elements = cache.getHeadSize();
  int64_t own = elements;
  if (getLatentRope()) {
    if (!cache.isMLA())
      return emitOpError("expects 'latent_rope' only for a latent cache");
    int64_t size = cast<ShapedType>(getLatentRope().getType()).getDimSize(2);
    if (ShapedType::isDynamic(size) || size >= elements)
      return emitOpError("expects 'latent_rope' to have a static size below "
                         "that of a row");
    if (failed(verifyDense(*this, "latent_rope", getLatentRope().getType(),
                           heads, size)))
      return failure();
    own = elements - size;
  }
  if (failed(verifyDense(*this, "keys", getKeys().getType(), heads, own)) ||
      failed(verifyAppendedValues(*this)) ||
      failed(verifyRope(*this, elements)) ||
      failed(verifyNorm(*this, "norm", getNorm(), own)))
    return failure();
  if (getSlots() && !cache.isPaged())
    return emitOpError("expects a paged cache for 'slots'");
  if (getQueryNorm() && !getQueries())
    return emitOpError("expects 'queries' for 'query_norm'");
  if (getQueries()) {
    auto queries = cast<ShapedType>(getQueries().getType());
    int64_t size = queries.getDimSize(2);
    if (ShapedType::isDynamic(queries.getDimSize(1)) ||
        (!cache.isMLA() && size != elements))
      return emitOpError() << "expects 'queries' to have a static number of "
                           << "heads of " << elements << " elements";
    if (ShapedType::isDynamic(size) ||
        (getRope() &&
         getRopeBegin() + cast<ShapedType>(getRope().getType()).getDimSize(1) >
             size))
      return emitOpError("expects 'rope' to be in a head of 'queries'");
    if (failed(verifyPacked(*this, "queries", queries)) ||
        failed(verifyNorm(*this, "query_norm", getQueryNorm(), size)))
      return failure();
  }
  // (C8)
  if (getPowerOfTwo())
    for (Value of : {getKeyCache(), getValueCache()})
      if (of && failed(verifyPowerOfTwo(
                    *this, cast<CacheTypeInterface>(of.getType()))))
        return failure();
  // (C9)
  for (Value of : {getKeyCache(), getValueCache()})
    if (of && cast<CacheTypeInterface>(of.getType()).getTokenGranularity() != 1)
      return emitOpError("expects tokens with scales of their own, because "
                         "groups of tokens are not full at every row, got ")
             << of.getType() << "; 'kvcache.copy' writes whole groups";
  // (C10)
  if (failed(verifyStaticScale(*this, "key_scale", getKeyScale(),
                               getKeyCache())) ||
      failed(verifyStaticScale(*this, "value_scale", getValueScale(),
                               getValueCache())))
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
  if (!getValues() != !getValueCache())
    return emitOpError("expects 'values' and 'value_cache' together");
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
  return verifyResults(*this);
}

int64_t CopyOp::getNumHeads() {
  return getHeads().value_or(
      cast<CacheTypeInterface>(getSource().getType()).getNumHeads());
}

LogicalResult CopyOp::verify() {
  auto source = cast<CacheTypeInterface>(getSource().getType());
  auto target = cast<CacheTypeInterface>(getTarget().getType());
  if (source.getHeadSize() != target.getHeadSize())
    return emitOpError() << "expects caches of one head size, got "
                         << source.getHeadSize() << " and "
                         << target.getHeadSize();
  // (C3)
  if (failed(verifyStaticScale(*this, "source_scale", getSourceScale(),
                               getSource())) ||
      failed(verifyStaticScale(*this, "target_scale", getTargetScale(),
                               getTarget())))
    return failure();
  if (source.getElementType() != target.getElementType() || getSourceScale() ||
      getTargetScale())
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
  return success(succeeded(verifyRange("source", getSourceHead(), source)) &&
                 succeeded(verifyRange("target", getTargetHead(), target)));
}

LogicalResult CopyPagesOp::verify() {
  int64_t columns = cast<ShapedType>(getPairs().getType()).getDimSize(1);
  if (columns != 2)
    return emitOpError("expects 'pairs' to have two columns");
  return success();
}

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

/// (C1).
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
  return verifyDense(op, "q", q, heads, cache.getHeadSize());
}

/// (C2), (C3).
static LogicalResult verifyOutputs(AttentionOp op, CacheTypeInterface cache) {
  if (!op.getValueCache() != cache.isMLA())
    return op.emitOpError(cache.isMLA()
                              ? "expects no values for a latent cache"
                              : "expects values, because the cache is not "
                                "latent");
  auto values = cast<CacheTypeInterface>(op.getValues().getType());
  if (values.getNumHeads() != cache.getNumHeads())
    return op.emitOpError() << "expects values of " << cache.getNumHeads()
                            << " heads, got " << values.getNumHeads();
  int64_t heads = cast<ShapedType>(op.getQ().getType()).getDimSize(1);
  auto out = cast<ShapedType>(op.getOut().getType());
  int64_t size = out.getDimSize(2);
  if (ShapedType::isDynamic(size) || size < 1 || size > values.getHeadSize())
    return op.emitOpError()
           << "expects 'out' to have a static number of at "
           << "most " << values.getHeadSize() << " elements of a head";
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
                 succeeded(verifySize("sinks", op.getSinks())));
}

/// (C5).
static LogicalResult verifySparseRows(AttentionOp op) {
  if (!op.getRows())
    return success();
  if (op.getCausal() || op.getWindow() || op.getChunk() || op.getMask() ||
      op.getLengths())
    return op.emitOpError("expects no 'causal', 'window', 'chunk', 'mask' or "
                          "'lengths' with 'rows', which say what is seen");
  auto keys = cast<CacheTypeInterface>(op.getKeyCache().getType());
  auto values = cast<CacheTypeInterface>(op.getValues().getType());
  if (!keys.isPaged() || !values.isPaged() ||
      keys.getPageSize() != values.getPageSize())
    return op.emitOpError("expects paged caches of one page size for 'rows'");
  return success();
}

/// The bytes of one sequence are a number of 64 bits.
template <typename OpTy>
static LogicalResult verifyWorkspaceBytes(OpTy op, uint64_t heads,
                                          uint64_t valueSize) {
  WorkspaceShape shape{static_cast<int64_t>(heads),
                       static_cast<int64_t>(valueSize),
                       static_cast<int64_t>(op.getMaxSplits()),
                       static_cast<int64_t>(op.getSplitRows())};
  if (llvm::isUInt<63>(shape.getBytes()))
    return success();
  return op.emitOpError("expects the workspace of a sequence to have less than "
                        "2^63 bytes");
}

LogicalResult WorkspaceSizeOp::verify() {
  return verifyWorkspaceBytes(*this, getQueryHeads(), getValueSize());
}

/// (C9).
static LogicalResult verifyScaleOfRows(AttentionOp op, StringRef name,
                                       Value scale, StringRef ofName,
                                       Value rows) {
  if (!scale)
    return success();
  auto type = cast<ShapedType>(rows.getType());
  if (type.getElementTypeBitWidth() != 8)
    return op.emitOpError() << "expects '" << name << "' only for '" << ofName
                            << "' of fp8, got " << type;
  auto perHead = dyn_cast<ShapedType>(scale.getType());
  if (perHead && perHead.getDimSize(0) != type.getDimSize(1))
    return op.emitOpError()
           << "expects '" << name << "' to have the " << type.getDimSize(1)
           << " heads of '" << ofName << "', got " << perHead;
  return success();
}

/// (C7).
static LogicalResult verifyWorkspace(AttentionOp op) {
  if (!op.getWorkspace()) {
    AttentionOp::Properties defaults;
    AttentionOp::populateDefaultProperties(op->getName(), defaults);
    const AttentionOp::Properties &given = op.getProperties();
    for (auto [name, isGiven] :
         {std::pair(op.getSplitTokensAttrName(),
                    given.split_tokens != defaults.split_tokens),
          std::pair(op.getMaxSplitsAttrName(),
                    given.max_splits != defaults.max_splits),
          std::pair(op.getSplitRowsAttrName(),
                    given.split_rows != defaults.split_rows)})
      if (isGiven)
        return op.emitOpError()
               << "expects " << name << " only with 'workspace'";
    return success();
  }
  auto type = cast<MemRefType>(op.getWorkspace().getType());
  auto out = cast<ShapedType>(op.getOut().getType());
  if (type.getLayout().isIdentity())
    return verifyWorkspaceBytes(op, out.getDimSize(1), out.getDimSize(2));
  return op.emitOpError("expects 'workspace' to be contiguous, got ") << type;
}

LogicalResult AttentionOp::verify() {
  auto cache = cast<CacheTypeInterface>(getKeyCache().getType());
  if (failed(verifyQueries(*this, cache)) ||
      failed(verifyOutputs(*this, cache)) || failed(verifySparseRows(*this)) ||
      failed(verifyWorkspace(*this)))
    return failure();
  // (C4)
  if (std::optional<APFloat> cap = getSoftCap()) {
    double value = cap->convertToDouble();
    if (!(value >= 0x1p-16 && value <= 0x1p16))
      return emitOpError(
                 "expects 'soft_cap' to be between 2^-16 and 2^16, got ")
             << value;
  }
  // (C8)
  if (failed(verifyStaticScale(*this, "key_scale", getKeyScale(),
                               getKeyCache())) ||
      failed(verifyStaticScale(*this, "value_scale", getValueScale(),
                               getValueCache())) ||
      failed(verifyScaleOfRows(*this, "query_scale", getQueryScale(), "q",
                               getQ())) ||
      failed(verifyScaleOfRows(*this, "out_scale", getOutScale(), "out",
                               getOut())))
    return failure();
  // (C10)
  std::string obstacle = getTileObstacle();
  if (!obstacle.empty() && getTileRows().value_or(0) > 0)
    return emitOpError() << "expects 'tile_rows' to be 0 with " << obstacle
                         << ", got " << *getTileRows();
  return verifyResults(*this);
}

//===----------------------------------------------------------------------===//
// merge_states, remap_rows
//===----------------------------------------------------------------------===//

LogicalResult MergeStatesOp::verify() {
  auto out = cast<ShapedType>(getOut().getType());
  int64_t heads = out.getDimSize(1), elements = out.getDimSize(2);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(elements))
    return emitOpError("expects static sizes of heads and elements");
  if (failed(verifyDense(*this, "out", out, heads, elements)) ||
      failed(
          verifyDense(*this, "parts", getParts().getType(), heads, elements)))
    return failure();
  for (Value value : {getLses(), getLse()})
    if (cast<ShapedType>(value.getType()).getShape().back() != heads)
      return emitOpError() << "expects logarithms of " << heads << " heads";
  return verifyResults(*this);
}

LogicalResult RemapRowsOp::verify() {
  if (isa<ScalesType>(getCache().getType()))
    return emitOpError("expects 'cache' not to be a view of scales");
  auto tokens = cast<ShapedType>(getTokens().getType());
  auto ids = cast<ShapedType>(getIds().getType());
  if (tokens.getDimSize(1) != ids.getDimSize(1))
    return emitOpError("expects 'ids' to have the shape of 'tokens'");
  return verifyResults(*this);
}
