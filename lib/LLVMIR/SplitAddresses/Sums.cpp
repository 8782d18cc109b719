//===- Sums.cpp - Addresses as sums ---------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sums.h"
#include "Bounds.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Returns the 32-bit value that `op` extends.
static Value getNarrowOperand(Operation *op) {
  if (!isa_and_present<LLVM::ZExtOp, LLVM::SExtOp>(op) ||
      !op->getOperand(0).getType().isInteger(32))
    return {};
  return op->getOperand(0);
}

Value kvcache::getExtended(Value value) {
  Operation *op = value.getDefiningOp();
  Value narrow = getNarrowOperand(op);
  bool isUnsigned = narrow && (isa<LLVM::ZExtOp>(op) ||
                               getUnsignedBound(narrow) <= llvm::maxIntN(32));
  return isUnsigned ? narrow : Value();
}

/// Returns the 64-bit value that `op` truncates.
static Value getTruncated(Operation *op) {
  if (!isa_and_present<LLVM::TruncOp>(op) ||
      !op->getOperand(0).getType().isInteger(64))
    return {};
  return op->getOperand(0);
}

/// Returns the value of which `value` is a constant multiple, and multiplies
/// `factor` by the constant.
static Value dropFactor(Value value, uint64_t &factor) {
  Operation *op = value.getDefiningOp();
  while (op && getConstantFactor(op)) {
    factor *= *getConstantFactor(op);
    value = op->getOperand(0);
    op = value.getDefiningOp();
  }
  return value;
}

//===----------------------------------------------------------------------===//
// Sum
//===----------------------------------------------------------------------===//

uint64_t Term::getBound() const {
  if (!isNarrow())
    return kUnbounded;
  return llvm::SaturatingMultiply(getUnsignedBound(value), factor);
}

uint64_t Sum::getBound() const {
  uint64_t bound = constant;
  for (const Term &term : terms)
    bound = llvm::SaturatingAdd(bound, term.getBound());
  return bound;
}

/// Returns the op to split, unless the limit is reached.
Operation *Sum::takeOp(Value value) {
  constexpr int most = 64;
  return ++numOps < most ? value.getDefiningOp() : nullptr;
}

void Sum::addTerm(Value value, Value other, uint64_t factor) {
  if (factor != 0)
    terms.push_back({value, other, factor});
}

void Sum::add(Value value, uint64_t factor, Block *block) {
  Operation *op = takeOp(value);
  if (std::optional<uint64_t> number = getUnsignedConstant(value)) {
    constant += *number * factor;
  } else if (isa_and_present<LLVM::AddOp>(op)) {
    add(op->getOperand(0), factor, block);
    add(op->getOperand(1), factor, block);
  } else if (op && getConstantFactor(op)) {
    add(op->getOperand(0), factor * *getConstantFactor(op), block);
  } else if (isa_and_present<LLVM::MulOp>(op)) {
    Value lhs = dropFactor(op->getOperand(0), factor);
    Value rhs = dropFactor(op->getOperand(1), factor);
    addTerm(lhs, rhs, factor);
  } else if (Value narrow = getExtended(value)) {
    addNarrow(narrow, factor, block);
  } else {
    addTerm(value, {}, factor);
  }
}

/// Adds an unsigned 32-bit value.
void Sum::addNarrow(Value value, uint64_t factor, Block *block) {
  Operation *op = takeOp(value);
  Value truncated = getTruncated(op);
  if (std::optional<uint64_t> number = getUnsignedConstant(value)) {
    constant += *number * factor;
  } else if (isa_and_present<LLVM::AddOp>(op) && isExactIn32Bits(op)) {
    addNarrow(op->getOperand(0), factor, block);
    addNarrow(op->getOperand(1), factor, block);
  } else if (op && getConstantFactor(op) && isExactIn32Bits(op)) {
    addNarrow(op->getOperand(0), factor * *getConstantFactor(op), block);
  } else if (truncated && getNarrowOperand(truncated.getDefiningOp())) {
    addNarrow(truncated.getDefiningOp()->getOperand(0), factor, block);
  } else if (truncated && fitsIn32Bits(truncated, block)) {
    add(truncated, factor, block);
  } else if (!addQuotient(op, factor, block)) {
    addTerm(value, {}, factor);
  }
}

/// Adds the quotient or remainder of a sum if `op` is `x div c` or `x mod c`,
/// and the terms of x are multiples of c, except for some whose sum is less
/// than c.
bool Sum::addQuotient(Operation *op, uint64_t factor, Block *block) {
  if (!isa_and_present<LLVM::UDivOp, LLVM::URemOp>(op))
    return false;
  bool isRemainder = isa<LLVM::URemOp>(op);
  uint64_t divisor = getUnsignedConstant(op->getOperand(1)).value_or(0);
  if (divisor == 0)
    return false;
  // An overflow changes the sum only by a multiple of a power of two.
  bool mayWrap = isRemainder && llvm::isPowerOf2_64(divisor);
  Value truncated = getTruncated(op->getOperand(0).getDefiningOp());
  Sum dividend, quotient, remainder;
  dividend.numOps = numOps;
  if (mayWrap && truncated)
    dividend.add(truncated, 1, block);
  else
    dividend.addNarrow(op->getOperand(0), 1, block);
  numOps = dividend.numOps;

  quotient.constant = dividend.constant / divisor;
  remainder.constant = dividend.constant % divisor;
  for (const Term &term : dividend.terms)
    if (term.factor % divisor == 0)
      quotient.addTerm(term.value, term.other, term.factor / divisor);
    else
      remainder.terms.push_back(term);
  if (remainder.getBound() >= divisor ||
      (dividend.getBound() == kUnbounded && !mayWrap))
    return false;
  const Sum &result = isRemainder ? remainder : quotient;
  for (const Term &term : result.terms)
    addTerm(term.value, term.other, term.factor * factor);
  constant += result.constant * factor;
  return true;
}

void Sum::reunite(Block *block) {
  while (reuniteOnce(block))
    ;
}

bool Sum::reuniteOnce(Block *block) {
  for (Term &quotient : terms) {
    auto division = quotient.value.getDefiningOp<LLVM::UDivOp>();
    if (!division || !quotient.isNarrow())
      continue;
    for (Term &rest : terms) {
      auto remainder = rest.value.getDefiningOp<LLVM::URemOp>();
      if (!remainder || remainder.getOperands() != division.getOperands() ||
          quotient.factor !=
              rest.factor * getUnsignedConstant(division.getRhs()).value_or(0))
        continue;
      uint64_t factor = rest.factor;
      llvm::erase_if(terms, [&](const Term &term) {
        return &term == &quotient || &term == &rest;
      });
      addNarrow(division.getLhs(), factor, block);
      return true;
    }
  }
  return false;
}
