//===- FragmentOps.cpp - Matrices in registers ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/PipeOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Syntax of map
//===----------------------------------------------------------------------===//

/// Whether an attribute says what an op without it does, too.
static bool isDefault(NamedAttribute attribute) {
  if (auto flags = dyn_cast<arith::FastMathFlagsAttr>(attribute.getValue()))
    return flags.getValue() == arith::FastMathFlags::none;
  auto flags = dyn_cast<arith::IntegerOverflowFlagsAttr>(attribute.getValue());
  return flags && flags.getValue() == arith::IntegerOverflowFlags::none;
}

/// The op of a region that is written by its name: the only one, on the
/// arguments in order, whose result is the element. Null if there is none.
static Operation *findNamedOp(MapOp op) {
  Block &body = op.getBody().front();
  if (op.getRow() || !llvm::hasNItems(body, 2))
    return nullptr;
  Operation &named = body.front();
  Operation *yield = body.getTerminator();
  bool isPlain = named.getNumRegions() == 0 && named.getNumResults() == 1 &&
                 llvm::equal(named.getOperands(), body.getArguments()) &&
                 llvm::equal(yield->getOperands(), named.getResults()) &&
                 named.getResult(0).getType() == op.getType().getElementType();
  return isPlain && llvm::all_of(named.getAttrs(), isDefault) ? &named
                                                              : nullptr;
}

static void buildNamedOp(OperationState &result, OperationName name,
                         ArrayRef<Type> types, FragmentType type) {
  Region &body = *result.addRegion();
  Block &block = body.emplaceBlock();
  auto elements = llvm::map_to_vector(types, [](Type each) -> Type {
    return cast<FragmentType>(each).getElementType();
  });
  block.addArguments(elements,
                     SmallVector<Location>(elements.size(), result.location));
  OpBuilder builder(result.getContext());
  builder.setInsertionPointToStart(&block);
  OperationState named(result.location, name, block.getArguments(),
                       type.getElementType(), {});
  Operation *op = builder.create(named);
  YieldOp::create(builder, result.location, op->getResults());
}

static ParseResult parseSegments(OpAsmParser &parser, OperationState &result,
                                 size_t operands, size_t row, size_t column) {
  auto &properties = result.getOrAddProperties<MapOp::Properties>();
  llvm::copy(ArrayRef<int32_t>{static_cast<int32_t>(operands),
                               static_cast<int32_t>(row),
                               static_cast<int32_t>(column)},
             properties.operandSegmentSizes.begin());
  return parser.parseOptionalAttrDict(result.attributes);
}

ParseResult MapOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands, indices;
  FailureOr<OperationName> named = failure();
  SMLoc nameLoc = parser.getCurrentLocation();
  std::string name;
  if (succeeded(parser.parseOptionalKeywordOrString(&name))) {
    named = OperationName(name, parser.getContext());
    if (!named->isRegistered())
      return parser.emitError(nameLoc, "expects the name of an op, got '")
             << name << "'";
    if (parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren))
      return failure();
  } else if (parser.parseOperandList(operands)) {
    return failure();
  } else if (succeeded(parser.parseOptionalKeyword("at"))) {
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseOperandList(indices, OpAsmParser::Delimiter::Paren))
      return failure();
    if (indices.empty() || indices.size() > 2)
      return parser.emitError(loc, "expects a row, and at most a column");
  }
  SmallVector<Type> types;
  FragmentType type;
  SMLoc typeLoc;
  if (parseSegments(parser, result, operands.size(), !indices.empty(),
                    indices.size() == 2) ||
      parser.parseColon() || parser.getCurrentLocation(&typeLoc) ||
      parser.parseTypeList(types) || parser.parseArrow() ||
      parser.parseType(type) ||
      parser.resolveOperands(operands, types, typeLoc, result.operands) ||
      parser.resolveOperands(indices, parser.getBuilder().getIndexType(),
                             result.operands))
    return failure();
  result.addTypes(type);
  if (failed(named))
    return parser.parseRegion(*result.addRegion());
  if (!llvm::all_of(types, llvm::IsaPred<FragmentType>))
    return parser.emitError(typeLoc, "expects fragments");
  buildNamedOp(result, *named, types, type);
  return success();
}

void MapOp::print(OpAsmPrinter &p) {
  Operation *named = findNamedOp(*this);
  p << ' ';
  if (named)
    p << named->getName() << '(' << getFragments() << ')';
  else
    p << getFragments();
  if (getRow()) {
    p << " at(" << getRow();
    if (getColumn())
      p << ", " << getColumn();
    p << ')';
  }
  p.printOptionalAttrDict((*this)->getAttrs(), {"operandSegmentSizes"});
  p << " : " << getFragments().getTypes() << " -> " << getType();
  if (named)
    return;
  p << ' ';
  p.printRegion(getBody());
}

//===----------------------------------------------------------------------===//
// map
//===----------------------------------------------------------------------===//

/// (C1)
static LogicalResult verifyShapes(MapOp op) {
  FragmentType type = op.getType();
  if (op.getFragments().empty())
    return op.emitOpError("expects a fragment");
  bool hasColumns = false;
  for (Value fragment : op.getFragments()) {
    auto each = cast<FragmentType>(fragment.getType());
    hasColumns |= each.hasColumns();
    if (each.getLayout() != type.getLayout() ||
        each.getRows() != type.getRows() ||
        (each.hasColumns() && each.getShape() != type.getShape()))
      return op.emitOpError("expects the shape and layout of the result, ")
             << type << ", got " << each;
  }
  if (hasColumns != type.hasColumns())
    return op.emitOpError("expects the result to have columns if a fragment "
                          "has, and only then, got ")
           << type;
  return success();
}

/// (C2) and (C3)
static LogicalResult verifyArguments(MapOp op) {
  FragmentType type = op.getType();
  if (op.getColumn() ? !type.hasColumns() : op.getRow() && type.hasColumns())
    return op.emitOpError("expects 'at' to have a row, and a column if the "
                          "result has columns");
  SmallVector<Type> types;
  for (Value fragment : op.getFragments())
    types.push_back(cast<FragmentType>(fragment.getType()).getElementType());
  Type index = IndexType::get(op.getContext());
  types.append((op.getRow() ? 1 : 0) + (op.getColumn() ? 1 : 0), index);
  Block &body = op.getBody().front();
  if (!llvm::equal(body.getArgumentTypes(), types))
    return op.emitOpError("expects the arguments of the region to be ")
           << types << ", got " << body.getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield)
    return op.emitOpError("expects the region to end with 'kvcache.yield'");
  TypeRange yielded = yield.getOperandTypes();
  if (!llvm::equal(yielded, ArrayRef(type.getElementType())))
    return op.emitOpError("expects the region to yield ")
           << type.getElementType() << ", got " << yielded;
  return success();
}

/// (C5)
static LogicalResult verifyPartial(MapOp op) {
  SmallVector<unsigned> partial;
  for (auto [i, fragment] : llvm::enumerate(op.getFragments()))
    if (cast<FragmentType>(fragment.getType()).getPartial())
      partial.push_back(i);
  if (op.getType().getPartial() != !partial.empty())
    return op.emitOpError("expects a partial result for a partial fragment, "
                          "and only then, got ")
           << op.getType();
  if (partial.empty())
    return success();
  Block &body = op.getBody().front();
  Value share = body.getArgument(partial.front());
  auto product = dyn_cast<arith::MulFOp>(body.front());
  if (partial.size() == 1 && product && llvm::hasNItems(body, 2) &&
      llvm::count(product->getOperands(), share) == 1 &&
      body.getTerminator()->getOperand(0) == product)
    return success();
  return op.emitOpError("expects the region to be one 'arith.mulf' of the "
                        "element of the only partial fragment and another "
                        "value");
}

LogicalResult MapOp::verify() {
  return failure(failed(verifyShapes(*this)) || failed(verifyArguments(*this)));
}

/// Verifies an op in a region of `map` or `store_rows`.
static LogicalResult verifyMapped(Operation *op, Operation *parent) {
  auto refuse = [&]() {
    return op->emitOpError("is not allowed in a region of '")
           << parent->getName() << "', ";
  };
  if (isa<CallOpInterface>(op))
    return refuse() << "which contains no calls";
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    if (llvm::any_of(types, llvm::IsaPred<FragmentType, InFlightType>))
      return refuse() << "which has no fragments";
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  bool isRead = effects ? effects.hasNoEffect() ||
                              effects.onlyHasEffect<MemoryEffects::Read>()
                        : op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
  return isRead ? success() : refuse() << "whose ops at most read memory";
}

// (C4)
LogicalResult MapOp::verifyRegions() {
  WalkResult result = getBody().walk(
      [&](Operation *op) { return WalkResult(verifyMapped(op, *this)); });
  if (result.wasInterrupted())
    return failure();
  return verifyPartial(*this);
}

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

/// (C3)
static bool canCombine(Reduction kind, Type type) {
  switch (kind) {
  case Reduction::AddF:
  case Reduction::MaxNumF:
  case Reduction::MinNumF:
  case Reduction::MaximumF:
  case Reduction::MinimumF:
    return isa<FloatType>(type);
  case Reduction::AddI:
  case Reduction::MaxSI:
  case Reduction::MinSI:
    return type.isSignlessInteger();
  }
  llvm_unreachable("not a reduction");
}

LogicalResult ReduceOp::verify() {
  FragmentType source = getSource().getType(), result = getType();
  // (C1)
  if (!source.hasColumns() && !source.getPartial())
    return emitOpError(
               "expects 'source' to have columns or to be partial, got ")
           << source;
  if (source.getRowType(result.getPartial()) != result)
    return emitOpError("expects a number for each row of ")
           << source << ", got " << result;
  if (source.getPartial() && result.getPartial()) // (C2)
    return emitOpError("expects a result that is not partial, because 'source' "
                       "is");
  if (!canCombine(getKind(), source.getElementType())) // (C3)
    return emitOpError("expects 'kind' to combine elements of ")
           << source.getElementType() << ", got "
           << stringifyReduction(getKind());
  if (getInit() && !result.getPartial() && !isIdempotent()) // (C4)
    return emitOpError("expects no 'init', which each lane would add: '")
           << stringifyReduction(getKind())
           << "' has one only for a partial result";
  return success();
}

bool ReduceOp::isIdempotent() {
  return getKind() != Reduction::AddF && getKind() != Reduction::AddI;
}

//===----------------------------------------------------------------------===//
// to_operand
//===----------------------------------------------------------------------===//

LogicalResult ToOperandOp::verify() {
  FragmentType source = getSource().getType(), result = getType();
  // (C1)
  const auto &from = LayoutDigits::get(source.getLayout());
  const auto &to = LayoutDigits::get(result.getLayout());
  bool isSamePlace =
      source.hasColumns() && source.getShape() == result.getShape() &&
      from.isAccumulator() && !to.isAccumulator() && from.warps == to.warps &&
      from.lane == to.lane &&
      from.getPlaces(source.getColumns()) == to.getPlaces(source.getColumns());
  if (!isSamePlace)
    return emitOpError("expects an accumulator, and an operand whose threads "
                       "have the same elements, got ")
           << source << " and " << result;
  // (C2)
  Type given = source.getElementType(), rounded = result.getElementType();
  if (!isa<FloatType>(rounded) || (!given.isF32() && given != rounded))
    return emitOpError("expects floats, of the source f32 or those of the "
                       "result, got ")
           << given << " and " << rounded;
  return success();
}

//===----------------------------------------------------------------------===//
// fragment_load, fragment_store
//===----------------------------------------------------------------------===//

/// The part of a tile that is a fragment.
static MatrixPart getPart(TypedValue<TileType> tile, FragmentType fragment,
                          Value row, Value column) {
  constexpr int64_t rows = 8, bytes = 16;
  int64_t size = tile.getType().getLayout().elementBytes;
  return {"tile",
          tile,
          Major::K,
          row,
          column,
          rows,
          std::max<int64_t>(bytes / size, 1),
          fragment.getRows(),
          fragment.getColumns()};
}

MatrixPart FragmentLoadOp::getPart() {
  return ::getPart(getTile(), getType(), getTileRow(), getTileColumn());
}
MatrixPart FragmentStoreOp::getPart() {
  return ::getPart(getTile(), getValue().getType(), getTileRow(),
                   getTileColumn());
}

static LogicalResult verifyAccess(Operation *op, FragmentType fragment,
                                  TypedValue<TileType> tile) {
  // (C1)
  Type element = fragment.getElementType();
  if (!fragment.hasColumns() || element != tile.getType().getElementType() ||
      element.getIntOrFloatBitWidth() % 8 != 0)
    return op->emitOpError("expects a fragment of two dimensions with the "
                           "elements of the tile, whole bytes, got ")
           << fragment << " and " << tile.getType();
  return success();
}

LogicalResult FragmentLoadOp::verify() {
  if (failed(verifyAccess(*this, getType(), getTile())))
    return failure();
  return getPart().verifySize(*this); // (C2)
}
LogicalResult FragmentStoreOp::verify() {
  if (failed(verifyAccess(*this, getValue().getType(), getTile())))
    return failure();
  return getPart().verifySize(*this);
}

//===----------------------------------------------------------------------===//
// store_rows
//===----------------------------------------------------------------------===//

/// (C2)
static LogicalResult verifyPlaces(StoreRowsOp op) {
  Block &body = op.getBody().front();
  Type index = IndexType::get(op.getContext());
  if (!llvm::equal(body.getArgumentTypes(), ArrayRef(index)))
    return op.emitOpError("expects the argument of the region to be an index, "
                          "got ")
           << body.getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield)
    return op.emitOpError("expects the region to end with 'kvcache.yield'");
  bool hasColumns = op.getValue().getType().hasColumns();
  int64_t rank = cast<MemRefType>(op.getMemref().getType()).getRank();
  SmallVector<Type> types(std::max<int64_t>(rank - hasColumns, 0), index);
  types.push_back(IntegerType::get(op.getContext(), 1));
  if (rank < hasColumns || !llvm::equal(yield.getOperandTypes(), types))
    return op.emitOpError("expects the region to yield ")
           << types << ", got " << yield.getOperandTypes();
  return success();
}

LogicalResult StoreRowsOp::verify() {
  FragmentType type = getValue().getType();
  // (C1)
  if (type.getPartial())
    return emitOpError("expects a fragment that is not partial, got ") << type;
  if (type.hasColumns() != static_cast<bool>(getColumn()))
    return emitOpError("expects 'at' to have a row, and a column if the "
                       "fragment has columns");
  auto memref = cast<MemRefType>(getMemref().getType());
  // (C4)
  Type from = type.getElementType(), to = memref.getElementType();
  bool isRounded = from.isF32() && isa<FloatType>(to);
  if ((from != to && !isRounded) || !to.isIntOrFloat() ||
      to.getIntOrFloatBitWidth() % 8)
    return emitOpError("expects elements of whole bytes, of the fragment f32 "
                       "or those of the memref, got ")
           << from << " and " << to;
  // (C5)
  if (type.hasColumns() && !memref.isLastDimUnitStride())
    return emitOpError("expects the elements of the last dimension of 'memref' "
                       "to be side by side, got ")
           << memref;
  // (C6)
  if (getAlignment() && !llvm::isPowerOf2_64(*getAlignment()))
    return emitOpError("expects 'alignment' to be a power of two, got ")
           << *getAlignment();
  return verifyPlaces(*this);
}

// (C3)
LogicalResult StoreRowsOp::verifyRegions() {
  WalkResult result = getBody().walk([&](Operation *op) {
    return WalkResult(isa<CheckOp>(op) ? success() : verifyMapped(op, *this));
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// fragment_mma
//===----------------------------------------------------------------------===//

TypedValue<TileType> FragmentMmaOp::getTileA() {
  return dyn_cast<TypedValue<TileType>>(getA());
}

int64_t FragmentMmaOp::getSizeK() {
  if (auto fragment = dyn_cast<FragmentType>(getA().getType()))
    return fragment.getColumns();
  return MmaOp::getSizeK(getTileA().getType(), getMajorA(), getK());
}

SmallVector<MatrixPart, 2> FragmentMmaOp::getParts() {
  SmallVector<MatrixPart, 2> parts{MatrixPart::get("b", getB(), getMajorB(),
                                                   getBRow(), getBColumn(),
                                                   getSizeN(), getSizeK())};
  if (!isWgmma())
    parts.front().columnUnit = kColumnUnit;
  if (TypedValue<TileType> tile = getTileA())
    parts.push_back(MatrixPart::get("a", tile, getMajorA(), getARow(),
                                    getAColumn(), getType().getRows(),
                                    getSizeK()));
  return parts;
}

/// (C1) and (C2)
static LogicalResult verifyA(FragmentMmaOp op) {
  auto fragment = dyn_cast<FragmentType>(op.getA().getType());
  if (bool(op.getARow()) == bool(fragment))
    return op.emitOpError("expects 'a_row' and 'a_column' if 'a' is a tile, "
                          "and only then");
  if (!fragment)
    return success();
  if (op.getK() || op.getMajorA() != Major::K)
    return op.emitOpError("expects no 'k' and no 'major_a', because 'a' is a "
                          "fragment");
  FragmentLayout layout = fragment.getLayout();
  bool isOperand = op.isWgmma() ? layout == FragmentLayout::WgmmaA16 ||
                                      layout == FragmentLayout::WgmmaA8
                                : layout == FragmentLayout::MmaA16;
  if (isOperand && fragment.hasColumns())
    return success();
  return op.emitOpError("expects 'a' to be ")
         << (op.isWgmma() ? "wgmma_a16 or wgmma_a8" : "mma_a16")
         << " of two dimensions, got " << fragment;
}

/// (C5)
static LogicalResult verifySync(FragmentMmaOp op) {
  auto a = dyn_cast<FragmentType>(op.getA().getType());
  if (!a)
    return op.emitOpError("expects 'a' to be a fragment: only wgmma reads A "
                          "from tiles");
  Type element = a.getElementType(), b = op.getB().getType().getElementType(),
       sum = op.getType().getElementType();
  if ((!element.isBF16() && !element.isF16()) || b != element || !sum.isF32())
    return op.emitOpError("expects bf16 or f16 twice, and f32, as element "
                          "types, got ")
           << element << ", " << b << " and " << sum;
  constexpr int64_t step = 16;
  if (op.getSizeN() % step == 0)
    return success();
  return op.emitOpError("expects the result to have a multiple of ")
         << step << " columns, got " << op.getSizeN();
}

LogicalResult FragmentMmaOp::verify() {
  // (C3)
  if (Value sum = getAccumulator(); sum && sum.getType() != getType() &&
                                    sum.getType() != getType().getComplete())
    return emitOpError("expects 'accumulator' to be ")
           << getType().getComplete() << " or " << getType() << ", got "
           << sum.getType();
  if (failed(verifyA(*this)))
    return failure();
  if (!isWgmma())
    return failure(failed(verifySync(*this)) ||
                   failed(getParts().front().verifySize(*this))); // (C6)
  // (C4)
  auto fragment = dyn_cast<FragmentType>(getA().getType());
  WgmmaProduct product{fragment ? fragment.getElementType()
                                : getTileA().getType().getElementType(),
                       getB().getType().getElementType(),
                       getType().getElementType(),
                       getSizeN(),
                       getSizeK(),
                       getMajorA(),
                       getMajorB()};
  return product.verify(*this, getParts());
}

//===----------------------------------------------------------------------===//
// fragment_wait
//===----------------------------------------------------------------------===//

LogicalResult FragmentWaitOp::inferReturnTypes(
    MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
    OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  for (Type type : operands.getTypes()) {
    auto product = dyn_cast<InFlightType>(type);
    if (!product)
      return failure();
    types.push_back(product.getComplete());
  }
  return success();
}

LogicalResult FragmentWaitOp::verify() {
  if (getProducts().empty())
    return emitOpError("expects a product");
  auto layouts = llvm::map_range(getProducts().getTypes(), [](Type type) {
    return cast<InFlightType>(type).getLayout();
  });
  if (!llvm::all_equal(layouts)) // (C1)
    return emitOpError("expects products of one instruction");
  if (getPending() && *layouts.begin() == FragmentLayout::MmaAcc) // (C2)
    return emitOpError("expects no 'pending' for products of mma.sync, got ")
           << getPending();
  return success();
}

LogicalResult ScheduleFenceOp::verify() {
  FragmentType type = getSums().getType();
  if (!type.hasColumns() && type.getElementType().isF32()) // (C1)
    return success();
  return emitOpError("expects one dimension and f32, got ") << type;
}
