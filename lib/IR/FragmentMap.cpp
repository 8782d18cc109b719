//===- FragmentMap.cpp - Maps of the elements of fragments ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionRules.h"
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
  if (op.getRow() || op.getThread() || !llvm::hasNItems(body, 2))
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

/// Parses the indices of row 0 and column 0, if there are any.
static ParseResult
parseIndices(OpAsmParser &parser,
             SmallVectorImpl<OpAsmParser::UnresolvedOperand> &indices) {
  if (failed(parser.parseOptionalKeyword("at")))
    return success();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(indices, OpAsmParser::Delimiter::Paren))
    return failure();
  if (indices.empty() || indices.size() > 2)
    return parser.emitError(loc, "expects a row, and at most a column");
  return success();
}

/// Parses the thread's number, if it is there, as the last index.
static ParseResult
parseThread(OpAsmParser &parser,
            SmallVectorImpl<OpAsmParser::UnresolvedOperand> &indices) {
  if (failed(parser.parseOptionalKeyword("thread")))
    return success();
  return parser.parseOperand(indices.emplace_back());
}

static void setSegments(OperationState &result, ArrayRef<size_t> sizes) {
  auto &properties = result.getOrAddProperties<MapOp::Properties>();
  llvm::transform(sizes, properties.operandSegmentSizes.begin(),
                  [](size_t size) { return static_cast<int32_t>(size); });
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
  } else if (parser.parseOperandList(operands) ||
             parseIndices(parser, indices)) {
    return failure();
  }
  size_t places = indices.size();
  if (parseThread(parser, indices))
    return failure();
  setSegments(result, {operands.size(), places > 0, places == 2,
                       indices.size() - places});
  SmallVector<Type> types;
  FragmentType type;
  SMLoc typeLoc;
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.getCurrentLocation(&typeLoc) || parser.parseTypeList(types) ||
      parser.parseArrow() || parser.parseType(type) ||
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
  if (getThread())
    p << " thread " << getThread();
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
  if (op.getThread() && !op.getRow())
    return op.emitOpError("expects a row in 'at' for 'thread'");
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

// (C4)
LogicalResult MapOp::verifyRegions() {
  WalkResult result = getBody().walk([&](Operation *op) {
    return WalkResult(verifyFragmentRegion(op, *this));
  });
  if (result.wasInterrupted())
    return failure();
  return verifyPartial(*this);
}
