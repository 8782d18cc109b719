//===- OpMutator.cpp - Other modules --------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpMutator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::kvcache::fuzz;

namespace {

/// A module, and all that one change may use of it.
class Changer {
public:
  Changer(ModuleOp module, Random &random)
      : random(random), builder(module.getContext()) {
    module.walk([&](Operation *op) {
      if (op != module.getOperation())
        ops.push_back(op);
      types.append(op->result_type_begin(), op->result_type_end());
      for (NamedAttribute attribute : op->getAttrs())
        attributes.push_back(attribute);
    });
  }

  void change();

private:
  void erase(Operation *op);
  void repeat(Operation *op);
  void move(Operation *op);
  void changeOperand(Operation *op);
  void changeAttribute(Operation *op);
  void changeType(Operation *op);
  void nest(Operation *op);
  void changeArgument(Operation *op);

  Attribute makeOther(Attribute attribute);
  Type makeOther(Type type);
  int64_t makeNumber(int64_t number);
  /// A value that `op` may use: one of its function, mostly of its own type.
  Value findValue(Operation *op, Type type);

  Random &random;
  OpBuilder builder;
  SmallVector<Operation *> ops;
  SmallVector<Type> types;
  SmallVector<NamedAttribute> attributes;
};

} // namespace

int64_t Changer::makeNumber(int64_t number) {
  switch (below(random, 4)) {
  case 0:
    return static_cast<int64_t>(static_cast<uint64_t>(number) + 1);
  case 1:
    return static_cast<int64_t>(static_cast<uint64_t>(number) * 2);
  default:
    APInt value(80, pickNumber(random), 10);
    return value.trunc(64).getSExtValue();
  }
}

/// An attribute or type with one number of it changed.
template <typename T>
static T replaceNumbers(T value, llvm::function_ref<int64_t(int64_t)> change) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](IntegerAttr integer) -> Attribute {
    unsigned width = integer.getValue().getBitWidth();
    return IntegerAttr::get(
        integer.getType(),
        APInt(64, change(integer.getValue().trySExtValue().value_or(0)))
            .sextOrTrunc(width));
  });
  return cast<T>(replacer.replace(value));
}

Attribute Changer::makeOther(Attribute attribute) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute)) {
    unsigned width = integer.getValue().getBitWidth();
    APInt value(64, makeNumber(integer.getValue().trySExtValue().value_or(0)));
    return IntegerAttr::get(integer.getType(), value.sextOrTrunc(width));
  }
  if (auto type = dyn_cast<TypeAttr>(attribute))
    return TypeAttr::get(makeOther(type.getValue()));
  if (auto array = dyn_cast<ArrayAttr>(attribute)) {
    SmallVector<Attribute> elements(array.getValue());
    if (elements.empty())
      return array;
    size_t at = below(random, elements.size());
    if (below(random, 3) == 0)
      elements.erase(elements.begin() + at);
    else
      elements[at] = makeOther(elements[at]);
    return ArrayAttr::get(attribute.getContext(), elements);
  }
  if (auto array = dyn_cast<DenseI32ArrayAttr>(attribute)) {
    SmallVector<int32_t> elements(array.asArrayRef());
    if (!elements.empty())
      pick(random, elements) = static_cast<int32_t>(makeNumber(1));
    return DenseI32ArrayAttr::get(attribute.getContext(), elements);
  }
  if (auto array = dyn_cast<DenseI64ArrayAttr>(attribute)) {
    SmallVector<int64_t> elements(array.asArrayRef());
    if (!elements.empty())
      pick(random, elements) = makeNumber(1);
    return DenseI64ArrayAttr::get(attribute.getContext(), elements);
  }
  if (!attributes.empty() && below(random, 2) == 0)
    return pick(random, attributes).getValue();
  return replaceNumbers(attribute, [&](int64_t n) { return makeNumber(n); });
}

Type Changer::makeOther(Type type) {
  if (auto vector = dyn_cast<VectorType>(type);
      vector && vector.getRank() && below(random, 2) == 0) {
    SmallVector<int64_t> shape(vector.getShape());
    pick(random, shape) = 1 + static_cast<int64_t>(below(random, 70));
    return VectorType::get(shape, vector.getElementType());
  }
  if (auto memref = dyn_cast<MemRefType>(type);
      memref && memref.getRank() && below(random, 2) == 0) {
    SmallVector<int64_t> shape(memref.getShape());
    pick(random, shape) =
        below(random, 3) ? int64_t(below(random, 300)) : ShapedType::kDynamic;
    return MemRefType::get(shape, memref.getElementType(),
                           MemRefLayoutAttrInterface(),
                           memref.getMemorySpace());
  }
  return types.empty() ? type : pick(random, types);
}

Value Changer::findValue(Operation *op, Type type) {
  SmallVector<Value> same, all;
  auto add = [&](ValueRange values) {
    for (Value value : values) {
      all.push_back(value);
      if (value.getType() == type)
        same.push_back(value);
    }
  };
  for (Operation *scope = op; scope && scope->getBlock();
       scope = scope->getParentOp()) {
    add(scope->getBlock()->getArguments());
    for (Operation &before : *scope->getBlock()) {
      if (&before == scope)
        break;
      add(before.getResults());
    }
  }
  if (!same.empty() && below(random, 8) != 0)
    return pick(random, same);
  return all.empty() ? Value() : pick(random, all);
}

void Changer::erase(Operation *op) {
  for (OpResult result : op->getResults())
    for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
      Value other = findValue(op, result.getType());
      if (!other)
        return;
      use.set(other);
    }
  op->erase();
}

void Changer::repeat(Operation *op) {
  Operation *place = below(random, 2) ? op : pick(random, ops);
  if (op->hasTrait<OpTrait::IsTerminator>() || op->isAncestor(place) ||
      !place->getBlock())
    return;
  builder.setInsertionPoint(place);
  Operation *copy = builder.clone(*op);
  if (below(random, 2) == 0)
    for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
      if (!from.use_empty())
        from.getUses().begin()->set(to);
}

void Changer::move(Operation *op) {
  Operation *place = pick(random, ops);
  if (op->hasTrait<OpTrait::IsTerminator>() || op->isAncestor(place) ||
      !place->getBlock())
    return;
  op->moveBefore(place);
}

void Changer::changeOperand(Operation *op) {
  unsigned count = op->getNumOperands();
  if (count == 0)
    return;
  unsigned at = below(random, count);
  if (below(random, 10) == 0) {
    op->eraseOperand(at);
    return;
  }
  if (Value value = findValue(op, op->getOperand(at).getType()))
    op->setOperand(at, value);
}

void Changer::changeAttribute(Operation *op) {
  DictionaryAttr all = op->getAttrDictionary();
  if (all.empty() || below(random, 10) == 0) {
    if (!attributes.empty()) {
      NamedAttribute other = pick(random, attributes);
      op->setDiscardableAttr(other.getName(), other.getValue());
    }
    return;
  }
  NamedAttribute changed = pick(random, all.getValue());
  NamedAttrList list(all);
  if (below(random, 8) == 0)
    list.erase(changed.getName());
  else
    list.set(changed.getName(), makeOther(changed.getValue()));
  op->setAttrs(list.getDictionary(op->getContext()));
}

void Changer::changeType(Operation *op) {
  if (op->getNumResults() == 0)
    return;
  OpResult result = op->getResult(below(random, op->getNumResults()));
  result.setType(makeOther(result.getType()));
}

/// Changes the type of a block's argument, or adds or removes one.
void Changer::changeArgument(Operation *op) {
  Block *block = op->getBlock();
  if (block->getNumArguments() == 0 || below(random, 4) == 0) {
    if (!types.empty())
      block->addArgument(pick(random, types), op->getLoc());
    return;
  }
  BlockArgument argument =
      block->getArgument(below(random, block->getNumArguments()));
  if (argument.use_empty() && below(random, 2) == 0)
    block->eraseArgument(argument.getArgNumber());
  else
    argument.setType(makeOther(argument.getType()));
}

/// Puts an op without results that are used outside into a loop or an if.
void Changer::nest(Operation *op) {
  if (!op->use_empty() || op->hasTrait<OpTrait::IsTerminator>() ||
      isa<SymbolOpInterface>(op))
    return;
  Location loc = op->getLoc();
  builder.setInsertionPoint(op);
  Operation *outer;
  if (below(random, 2)) {
    Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
    outer = scf::IfOp::create(builder, loc, yes, /*withElseRegion=*/false);
  } else {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value count =
        arith::ConstantIndexOp::create(builder, loc, below(random, 5));
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    outer = scf::ForOp::create(builder, loc, zero, count, one);
  }
  op->moveBefore(outer->getRegion(0).front().getTerminator());
}

void Changer::change() {
  if (ops.empty())
    return;
  Operation *op = pick(random, ops);
  switch (below(random, 12)) {
  case 0:
    return erase(op);
  case 1:
    return repeat(op);
  case 2:
    return move(op);
  case 3:
  case 4:
  case 5:
    return changeOperand(op);
  case 6:
  case 7:
  case 8:
    return changeAttribute(op);
  case 9:
    return changeType(op);
  case 10:
    return changeArgument(op);
  default:
    return nest(op);
  }
}

void mlir::kvcache::fuzz::mutate(ModuleOp module, Random &random) {
  // Most of what is changed more than once is wrong at once.
  for (size_t count = 1 + below(random, 4) / 2; count; --count)
    Changer(module, random).change();
}
