//===- SplitAddresses.cpp - Addresses from parts that accesses share ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace mlir::kvcache {
#define GEN_PASS_DEF_SPLITADDRESSES
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

/// The constant that `value` is, as an unsigned number.
std::optional<uint64_t> getConstant(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) ||
      constant.getBitWidth() > 64)
    return std::nullopt;
  return constant.getZExtValue();
}

bool isThreadId(Value value) {
  return isa_and_present<NVVM::ThreadIdXOp, NVVM::ThreadIdYOp,
                         NVVM::ThreadIdZOp>(value.getDefiningOp());
}

/// The constant by which `op` multiplies its first operand.
std::optional<uint64_t> getFactor(Operation *op) {
  if (!isa<LLVM::MulOp, LLVM::ShlOp>(op))
    return std::nullopt;
  std::optional<uint64_t> constant = getConstant(op->getOperand(1));
  if (isa<LLVM::MulOp>(op) || !constant)
    return constant;
  if (*constant >= 32)
    return std::nullopt;
  return uint64_t{1} << *constant;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// How far a value is followed to find its bound.
constexpr int kMaxDepth = 6;

uint64_t getBound(Value value, int depth = 0);

/// The bound of `op` without regard to what its type can hold.
uint64_t getUnlimitedBound(Operation *op, int depth) {
  constexpr uint64_t unknown = std::numeric_limits<uint64_t>::max();
  auto bound = [&](unsigned operand) {
    return getBound(op->getOperand(operand), depth + 1);
  };
  if (auto range = op->getAttrOfType<LLVM::ConstantRangeAttr>("range"))
    return range.getUpper().getZExtValue() - 1;
  // PTX ISA, "Special Registers": grids have less than 2^31 blocks along x.
  if (isa<NVVM::BlockIdXOp, NVVM::BlockIdYOp, NVVM::BlockIdZOp>(op))
    return llvm::maxIntN(32);
  if (isa<LLVM::AddOp>(op))
    return llvm::SaturatingAdd(bound(0), bound(1));
  if (std::optional<uint64_t> factor = getFactor(op))
    return llvm::SaturatingMultiply(bound(0), *factor);
  if (isa<LLVM::ZExtOp, LLVM::TruncOp>(op))
    return bound(0);
  if (isa<LLVM::SExtOp>(op) && bound(0) <= llvm::maxIntN(32))
    return bound(0);
  if (isa<LLVM::AndOp>(op))
    return std::min(bound(0), bound(1));
  std::optional<uint64_t> divisor;
  if (isa<LLVM::UDivOp, LLVM::URemOp>(op))
    divisor = getConstant(op->getOperand(1));
  if (divisor.value_or(0) == 0)
    return unknown;
  return isa<LLVM::UDivOp>(op) ? bound(0) / *divisor
                               : std::min(bound(0), *divisor - 1);
}

/// The largest unsigned number that `value` may be, as far as it is known.
uint64_t getBound(Value value, int depth) {
  if (std::optional<uint64_t> constant = getConstant(value))
    return *constant;
  uint64_t most = llvm::maxUIntN(value.getType().getIntOrFloatBitWidth());
  Operation *op = value.getDefiningOp();
  if (!op || depth == kMaxDepth)
    return most;
  return std::min(most, getUnlimitedBound(op, depth));
}

/// Whether an addition or multiplication of 32 bits is exact.
bool isExact(Operation *op) {
  auto flags = cast<LLVM::IntegerOverflowFlagsInterface>(op);
  return flags.hasNoUnsignedWrap() ||
         getUnlimitedBound(op, /*depth=*/0) <= llvm::maxUIntN(32);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// A value, or the product of two, times a constant.
struct Term {
  Value value, other;
  uint64_t factor;

  /// A value of 32 bits counts as an unsigned number.
  bool isNarrow() const { return value.getType().isInteger(32); }
  /// The largest number that a narrow term may be.
  uint64_t getBound() const {
    return llvm::SaturatingMultiply(::getBound(value), factor);
  }
};

/// An index as a sum of terms and a constant, modulo 2^64.
class Sum {
public:
  explicit Sum(Value index) {
    addWide(index, 1);
    while (reunite())
      ;
  }

  SmallVector<Term> terms;
  uint64_t constant = 0;

private:
  /// The op to take apart, unless many have been.
  Operation *getOp(Value value) {
    constexpr int most = 64;
    return ++numOps < most ? value.getDefiningOp() : nullptr;
  }

  void addTerm(Value value, Value other, uint64_t factor) {
    if (factor != 0)
      terms.push_back({value, other, factor});
  }

  /// Adds a value of 64 bits.
  void addWide(Value value, uint64_t factor) {
    Operation *op = getOp(value);
    if (std::optional<uint64_t> number = getConstant(value)) {
      constant += *number * factor;
    } else if (isa_and_present<LLVM::AddOp>(op)) {
      addWide(op->getOperand(0), factor);
      addWide(op->getOperand(1), factor);
    } else if (op && getFactor(op)) {
      addWide(op->getOperand(0), factor * *getFactor(op));
    } else if (isa_and_present<LLVM::MulOp>(op)) {
      Value lhs = dropFactor(op->getOperand(0), factor);
      Value rhs = dropFactor(op->getOperand(1), factor);
      addTerm(lhs, rhs, factor);
    } else if (Value narrow = getExtended(value)) {
      addNarrow(narrow, factor);
    } else {
      addTerm(value, {}, factor);
    }
  }

  /// Adds an unsigned value of 32 bits.
  void addNarrow(Value value, uint64_t factor) {
    Operation *op = getOp(value);
    if (std::optional<uint64_t> number = getConstant(value)) {
      constant += *number * factor;
    } else if (isa_and_present<LLVM::AddOp>(op) && isExact(op)) {
      addNarrow(op->getOperand(0), factor);
      addNarrow(op->getOperand(1), factor);
    } else if (op && getFactor(op) && isExact(op)) {
      addNarrow(op->getOperand(0), factor * *getFactor(op));
    } else if (Value narrow = getTruncated(op)) {
      addNarrow(narrow, factor);
    } else {
      addTerm(value, {}, factor);
    }
  }

  /// Replaces `x div c * c` and `x mod c` by x, which the author of a linear
  /// thread id took apart and the address puts together again.
  bool reunite() {
    for (Term &quotient : terms) {
      auto division = quotient.value.getDefiningOp<LLVM::UDivOp>();
      if (!division || !quotient.isNarrow())
        continue;
      for (Term &rest : terms) {
        auto remainder = rest.value.getDefiningOp<LLVM::URemOp>();
        if (!remainder || remainder.getOperands() != division.getOperands() ||
            quotient.factor !=
                rest.factor * getConstant(division.getRhs()).value_or(0))
          continue;
        uint64_t factor = rest.factor;
        llvm::erase_if(terms, [&](const Term &term) {
          return &term == &quotient || &term == &rest;
        });
        addNarrow(division.getLhs(), factor);
        return true;
      }
    }
    return false;
  }

  /// The value that `value` is a multiple of; multiplies `factor`.
  static Value dropFactor(Value value, uint64_t &factor) {
    Operation *op = value.getDefiningOp();
    while (op && getFactor(op)) {
      factor *= *getFactor(op);
      value = op->getOperand(0);
      op = value.getDefiningOp();
    }
    return value;
  }

  /// The unsigned number of 32 bits that `value` extends, if it does.
  static Value getExtended(Value value) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_present<LLVM::ZExtOp, LLVM::SExtOp>(op) ||
        !op->getOperand(0).getType().isInteger(32))
      return {};
    Value narrow = op->getOperand(0);
    bool isUnsigned =
        isa<LLVM::ZExtOp>(op) || getBound(narrow) <= llvm::maxIntN(32);
    return isUnsigned ? narrow : Value();
  }

  /// The value of 32 bits that `op` extended and now truncates.
  static Value getTruncated(Operation *op) {
    if (!isa_and_present<LLVM::TruncOp>(op))
      return {};
    Operation *extension = op->getOperand(0).getDefiningOp();
    if (!isa_and_present<LLVM::ZExtOp, LLVM::SExtOp>(extension) ||
        !extension->getOperand(0).getType().isInteger(32))
      return {};
    return extension->getOperand(0);
  }

  int numOps = 0;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Computes the address of a `getelementptr` part by part.
class AddressBuilder {
public:
  explicit AddressBuilder(LLVM::GEPOp op)
      : op(op), builder(op), loc(op.getLoc()), address(op.getBase()) {}

  Value build(ArrayRef<Term> terms, uint64_t constant) {
    SmallVector<Term> wide, ofThread, others;
    uint64_t bound = 0;
    for (const Term &term : terms) {
      uint64_t with = llvm::SaturatingAdd(bound, term.getBound());
      if (!term.isNarrow() || with > llvm::maxIntN(32)) {
        addWide(wide, term);
        continue;
      }
      bound = with;
      (isThreadId(term.value) ? ofThread : others).push_back(term);
    }
    for (const Term &term : wide)
      advance(term);
    if (std::optional<Term> sum = addNarrow(ofThread, others))
      advance(*sum);
    if (constant != 0)
      advance(getConstant(builder.getI64Type(), constant));
    return address;
  }

private:
  /// Adds a term to those of 64 bits. What had been added before it was
  /// multiplied is added again: others may have use for the sum.
  void addWide(SmallVectorImpl<Term> &terms, Term term) {
    term.value = widen(term.value);
    auto *same = llvm::find_if(terms, [&](const Term &other) {
      return other.factor == term.factor && !other.other && !term.other;
    });
    if (same == terms.end())
      terms.push_back(term);
    else
      same->value = create<LLVM::AddOp>(same->value, term.value);
  }

  /// The sum of narrow terms. What the accesses of a thread share comes first.
  std::optional<Term> addNarrow(SmallVectorImpl<Term> &ofThread,
                                ArrayRef<Term> others) {
    llvm::sort(ofThread, [](const Term &lhs, const Term &rhs) {
      return lhs.factor > rhs.factor;
    });
    std::optional<Term> sum;
    for (ArrayRef<Term> terms : {ArrayRef<Term>(ofThread), others})
      for (const Term &term : terms)
        sum = sum ? add(*sum, term) : term;
    return sum;
  }

  /// The sum of two narrow terms. What their factors have in common is left for
  /// after the extension to 64 bits.
  Term add(const Term &lhs, const Term &rhs) {
    uint64_t factor = std::gcd(lhs.factor, rhs.factor);
    return {create<LLVM::AddOp>(multiply(lhs.value, lhs.factor / factor),
                                multiply(rhs.value, rhs.factor / factor)),
            {},
            factor};
  }

  Value multiply(Value value, uint64_t factor) {
    if (factor == 1)
      return value;
    return create<LLVM::MulOp>(value, getConstant(value.getType(), factor));
  }

  Value getConstant(Type type, uint64_t number) {
    builder.setInsertionPointToStart(getEntry());
    return LLVM::ConstantOp::create(
        builder, loc, type,
        builder.getIntegerAttr(type, static_cast<int64_t>(number)));
  }

  /// Narrow arithmetic is exact.
  template <typename OpTy> Value create(Value lhs, Value rhs) {
    bool isNarrow = lhs.getType().isInteger(32);
    moveTo({lhs, rhs});
    return OpTy::create(builder, loc, lhs, rhs,
                        isNarrow ? LLVM::IntegerOverflowFlags::nsw |
                                       LLVM::IntegerOverflowFlags::nuw
                                 : LLVM::IntegerOverflowFlags::none);
  }

  Value widen(Value value) {
    if (!value.getType().isInteger(32))
      return value;
    moveTo(value);
    return LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), value);
  }

  void advance(const Term &term) {
    Value offset = widen(term.value);
    if (term.other)
      offset = create<LLVM::MulOp>(offset, term.other);
    advance(multiply(offset, term.factor));
  }

  void advance(Value offset) {
    builder.setInsertionPoint(op);
    address =
        LLVM::GEPOp::create(builder, loc, address.getType(), op.getElemType(),
                            address, ArrayRef<LLVM::GEPArg>{offset});
  }

  /// Whether a thread knows the value from the start.
  bool isKnown(Value value) { return value.getParentBlock() == getEntry(); }

  /// Arithmetic on what is known from the start goes there, for branches and
  /// loops to share.
  void moveTo(ValueRange operands) {
    Block *entry = getEntry();
    if (op->getBlock() != entry &&
        llvm::all_of(operands, [&](Value operand) { return isKnown(operand); }))
      builder.setInsertionPoint(entry->getTerminator());
    else
      builder.setInsertionPoint(op);
  }

  Block *getEntry() { return &op->getParentRegion()->front(); }

  LLVM::GEPOp op;
  OpBuilder builder;
  Location loc;
  Value address;
};

struct SplitAddresses : kvcache::impl::SplitAddressesBase<SplitAddresses> {
  void runOnOperation() override {
    getOperation()->walk([](LLVM::GEPOp op) {
      if (!isElementAddress(op))
        return;
      Sum sum(op.getDynamicIndices().front());
      if (sum.terms.size() == 1 && sum.constant == 0)
        return;
      op.replaceAllUsesWith(AddressBuilder(op).build(sum.terms, sum.constant));
      op.erase();
    });
  }

private:
  /// Whether an address is that of an element a variable distance away, in
  /// memory that takes 64 bits to address.
  static bool isElementAddress(LLVM::GEPOp op) {
    auto pointer = dyn_cast<LLVM::LLVMPointerType>(op.getType());
    return pointer &&
           pointer.getAddressSpace() !=
               static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared) &&
           op.getRawConstantIndices().size() == 1 &&
           op.getDynamicIndices().size() == 1 &&
           op.getDynamicIndices().front().getType().isInteger(64);
  }
};

} // namespace
