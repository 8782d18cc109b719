//===- FragmentRegions.cpp - Ops on fragments with regions --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionRules.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/FragmentLayout.h"
#include "kvcache/IR/FragmentOps.h"
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
    bool fits = each.hasColumns() ? each.getLayout() == type.getLayout() &&
                                        each.getShape() == type.getShape()
                                  : LayoutDigits::haveSameRows(each, type);
    if (!fits)
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
  if (op.getLaneColumns() && !op.getColumn())
    return op.emitOpError("expects a column in 'at' for 'lane_columns'");
  SmallVector<Type> types;
  for (Value fragment : op.getFragments())
    types.push_back(cast<FragmentType>(fragment.getType()).getElementType());
  Type index = IndexType::get(op.getContext());
  types.append((op.getRow() ? 1 : 0) + (op.getColumn() ? 1 : 0) +
                   (op.getLaneColumns() ? 1 : 0),
               index);
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
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    if (llvm::any_of(types, llvm::IsaPred<FragmentType, InFlightType>))
      return refuseInRegion(op, parent) << "which has no fragments";
  return verifyReader(op, parent);
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
// store_rows
//===----------------------------------------------------------------------===//

/// Verifies the argument of a region that computes where rows are stored, and
/// that it yields `indices` of them.
static LogicalResult verifyPlaces(Operation *op, Region &region,
                                  int64_t indices) {
  Block &body = region.front();
  Type index = IndexType::get(op->getContext());
  if (!llvm::equal(body.getArgumentTypes(), ArrayRef(index)))
    return op->emitOpError("expects the argument of the region to be an "
                           "index, got ")
           << body.getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield)
    return op->emitOpError("expects the region to end with 'kvcache.yield'");
  SmallVector<Type> types(indices, index);
  types.push_back(IntegerType::get(op->getContext(), 1));
  if (!llvm::equal(yield.getOperandTypes(), types))
    return op->emitOpError("expects the region to yield ")
           << types << ", got " << yield.getOperandTypes();
  return success();
}

static LogicalResult verifyAlignment(Operation *op,
                                     std::optional<uint64_t> alignment,
                                     FragmentType type, Type element) {
  if (!alignment)
    return success();
  uint64_t run = type.hasColumns() ? LayoutDigits::get(type).countRun() : 1;
  uint64_t most = run * element.getIntOrFloatBitWidth() / 8;
  if (llvm::isPowerOf2_64(*alignment) && *alignment <= most)
    return success();
  return op->emitOpError("expects 'alignment' to be a power of two of at most "
                         "the bytes stored at once (")
         << most << "), got " << *alignment;
}

/// Verifies the ops of a region that computes where rows are stored.
static LogicalResult verifyPlaceOps(Operation *op, Region &region) {
  WalkResult result = region.walk([&](Operation *each) {
    return WalkResult(isa<CheckOp>(each) ? success() : verifyMapped(each, op));
  });
  return failure(result.wasInterrupted());
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
  bool isRounded =
      from.isF32() && isa<BFloat16Type, Float16Type, Float8E4M3FNType,
                          Float8E5M2Type, Float8E8M0FNUType>(to);
  if ((from != to && !isRounded) || !to.isIntOrFloat() ||
      to.getIntOrFloatBitWidth() % 8)
    return emitOpError("expects elements of whole bytes, the same in the "
                       "fragment and the memref, or f32 that are rounded, got ")
           << from << " and " << to;
  // (C5)
  if (type.hasColumns() && !memref.isLastDimUnitStride())
    return emitOpError("expects the elements of the last dimension of 'memref' "
                       "to be side by side, got ")
           << memref;
  // (C6)
  if (failed(verifyAlignment(*this, getAlignment(), type, to)))
    return failure();
  // (C2)
  if (memref.getRank() < type.hasColumns())
    return emitOpError("expects 'memref' to have a dimension of columns, got ")
           << memref;
  return verifyPlaces(*this, getBody(), memref.getRank() - type.hasColumns());
}

// (C3)
LogicalResult StoreRowsOp::verifyRegions() {
  return verifyPlaceOps(*this, getBody());
}

//===----------------------------------------------------------------------===//
// store_split
//===----------------------------------------------------------------------===//

/// (C2)
static LogicalResult verifySplitMemory(StoreSplitOp op) {
  Type element = op.getAcc().getType().getElementType();
  auto accs = cast<MemRefType>(op.getAccs().getType()),
       states = cast<MemRefType>(op.getStates().getType());
  for (auto [name, type] : {std::pair("accs", accs), {"states", states}}) {
    if (type.getElementType() != element || !element.isIntOrFloat() ||
        element.getIntOrFloatBitWidth() % 8)
      return op.emitOpError("expects '")
             << name << "' to have the element type of 'acc', of whole bytes, "
             << element << ", got " << type;
    if (type.getRank() == 0 || !type.isLastDimUnitStride())
      return op.emitOpError("expects the elements of the last dimension of '")
             << name << "' to be side by side, got " << type;
  }
  if (states.getRank() != accs.getRank() || states.getShape().back() != 2)
    return op.emitOpError("expects 'states' to have the rank of 'accs', and 2 "
                          "elements in the last dimension, got ")
           << states;
  return success();
}

LogicalResult StoreSplitOp::verify() {
  FragmentType acc = getAcc().getType(), row = getMax().getType();
  // (C1)
  if (!acc.hasColumns())
    return emitOpError("expects 'acc' to have two dimensions, got ") << acc;
  if (!LayoutDigits::get(acc).isAccumulator())
    return emitOpError("expects 'acc' to have the layout of an accumulator, "
                       "got ")
           << acc;
  if (row.hasColumns() || row.getPartial() ||
      row.getElementType() != acc.getElementType() ||
      !LayoutDigits::haveSameRows(row, acc))
    return emitOpError("expects 'max' and 'sum' to be ")
           << acc.getRowType() << ", or to have its rows, got " << row;
  if (failed(verifySplitMemory(*this)) ||
      failed(verifyAlignment(*this, getAlignment(), acc,
                             acc.getElementType()))) // (C5)
    return failure();
  // (C3)
  return verifyPlaces(*this, getBody(),
                      cast<MemRefType>(getAccs().getType()).getRank() - 1);
}

// (C4)
LogicalResult StoreSplitOp::verifyRegions() {
  return verifyPlaceOps(*this, getBody());
}
