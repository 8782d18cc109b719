//===- SplitAddresses.cpp - Split addresses into shared terms -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds.h"
#include "Sums.h"
#include "kvcache/LLVMIR/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace mlir::kvcache {
#define GEN_PASS_DEF_SPLITADDRESSES
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

bool isThreadId(Value value) {
  return isa_and_present<NVVM::ThreadIdXOp, NVVM::ThreadIdYOp,
                         NVVM::ThreadIdZOp>(value.getDefiningOp());
}

bool hasFixedSize(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return hasFixedSize(array.getElementType());
  if (auto vector = dyn_cast<VectorType>(type))
    return !vector.isScalable();
  return type.isIntOrFloat();
}

/// Whether `op` computes an element address with a variable index in a 64-bit
/// address space.
bool isElementAddress(LLVM::GEPOp op) {
  auto pointer = dyn_cast<LLVM::LLVMPointerType>(op.getType());
  return pointer &&
         pointer.getAddressSpace() !=
             static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared) &&
         hasFixedSize(op.getElemType()) &&
         op.getRawConstantIndices().size() == 1 &&
         op.getDynamicIndices().size() == 1 &&
         op.getDynamicIndices().front().getType().isInteger(64);
}

/// The terms of a sum. The sum of the 32-bit terms is less than 2^31.
struct Parts {
  SmallVector<Term> wide, narrow;
};

/// Builds the address of a `getelementptr` from the terms of its index.
class AddressBuilder {
public:
  explicit AddressBuilder(LLVM::GEPOp op)
      : op(op), builder(op), loc(op.getLoc()), address(op.getBase()) {}

  /// Returns the address `sum` bytes after the base of the op.
  Value build(const Sum &sum) {
    Parts early, late;
    uint64_t bound = 0;
    for (const Term &term : sum.terms) {
      Parts &parts = isEarly(term) ? early : late;
      uint64_t with = llvm::SaturatingAdd(bound, term.getBound());
      if (with > llvm::maxIntN(32)) {
        addWide(parts.wide, term);
        continue;
      }
      bound = with;
      parts.narrow.push_back(term);
    }
    advance(early);
    advance(late);
    if (sum.constant != 0)
      advance(getConstant(builder.getI64Type(), sum.constant), /*factor=*/1);
    return address;
  }

private:
  /// Whether the value is known at the start of a thread.
  bool isKnown(Value value) { return value.getParentBlock() == getEntry(); }

  /// Whether the value depends only on values known at the start of a thread.
  bool isFixed(Value value, int depth = 0) {
    if (isKnown(value))
      return true;
    Operation *definition = value.getDefiningOp();
    return definition && depth < kMaxDepth && isPure(definition) &&
           llvm::all_of(
               definition->getOperands(),
               [&](Value operand) { return isFixed(operand, depth + 1); });
  }

  /// Whether to add a term before others. Fixed terms do not wait for page ids,
  /// and LLVM hoists them out of loops. A multiplication includes an addition
  /// to the preceding terms at no cost.
  bool isEarly(const Term &term) {
    return op->getBlock() != getEntry() && !term.other && isFixed(term.value);
  }

  /// Adds a 64-bit term. Adds terms of the same factor before the
  /// multiplication, as in the source, so that other addresses may share their
  /// sum.
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

  /// Returns the sum of narrow terms. Adds terms that the accesses of a thread
  /// share first.
  std::optional<Term> addNarrow(ArrayRef<Term> terms) {
    SmallVector<Term> threadTerms, others;
    for (const Term &term : terms)
      (isThreadId(term.value) ? threadTerms : others).push_back(term);
    llvm::sort(threadTerms, [](const Term &lhs, const Term &rhs) {
      return lhs.factor > rhs.factor;
    });
    std::optional<Term> sum;
    for (ArrayRef<Term> part : {ArrayRef<Term>(threadTerms), ArrayRef(others)})
      for (const Term &term : part)
        sum = sum ? add(*sum, term) : term;
    return sum;
  }

  /// Returns the sum of two narrow terms. The common factor of both remains a
  /// factor of the sum, for the extension to 64 bits.
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

  void advance(const Parts &parts) {
    for (const Term &term : parts.wide)
      advance(term);
    if (std::optional<Term> sum = addNarrow(parts.narrow))
      advance(*sum);
  }

  void advance(const Term &term) {
    if (!term.other)
      return advance(widen(term.value), term.factor);
    // One instruction multiplies two 32-bit numbers and adds a 64-bit number.
    // An addition before it needs one more instruction, one after it two.
    for (auto [lhs, rhs] :
         {std::pair(term.value, term.other), std::pair(term.other, term.value)})
      if (Value narrow = getNarrowFactor(lhs, term.factor);
          narrow && getExtended(rhs))
        return advance(
            create<LLVM::MulOp>(widen(multiply(narrow, term.factor)), rhs),
            /*factor=*/1);
    advance(create<LLVM::MulOp>(term.value, term.other), term.factor);
  }

  /// Returns the 32-bit value that `value` extends, if its product with
  /// `factor` fits into 32 bits.
  static Value getNarrowFactor(Value value, uint64_t factor) {
    Value narrow = getExtended(value);
    bool fits = narrow && llvm::SaturatingMultiply(getUnsignedBound(narrow),
                                                   factor) <= llvm::maxIntN(32);
    return fits ? narrow : Value();
  }

  /// Adds a multiple of `factor` bytes. The factor becomes an element size,
  /// which LLVM does not combine with preceding arithmetic, so that the
  /// instruction that extends the offset also multiplies it.
  void advance(Value offset, uint64_t factor) {
    if (factor > llvm::maxIntN(32)) {
      offset = multiply(offset, factor);
      factor = 1;
    }
    Type element = builder.getI8Type();
    if (factor != 1)
      element = LLVM::LLVMArrayType::get(element, factor);
    moveTo({address, offset});
    address = LLVM::GEPOp::create(builder, loc, address.getType(), element,
                                  address, ArrayRef<LLVM::GEPArg>{offset});
  }

  /// Moves arithmetic on values known at the start of a thread there, so that
  /// branches and loops share it.
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

/// Truncates the operands of a sum of a value and a constant that only `op`
/// reads. LLVM does this as well, but visits all users of the value each time.
void truncateParts(LLVM::TruncOp op) {
  auto type = dyn_cast<IntegerType>(op.getType());
  auto sum = op.getArg().getDefiningOp<LLVM::AddOp>();
  if (!type || !sum || !sum->hasOneUse())
    return;
  std::optional<uint64_t> constant = getUnsignedConstant(sum.getRhs());
  if (!constant)
    return;
  OpBuilder builder(op);
  Value lhs = LLVM::TruncOp::create(builder, op.getLoc(), type, sum.getLhs());
  Value rhs = LLVM::ConstantOp::create(
      builder, op.getLoc(), type,
      builder.getIntegerAttr(type,
                             APInt(64, *constant).trunc(type.getWidth())));
  op.replaceAllUsesWith(
      LLVM::AddOp::create(builder, op.getLoc(), lhs, rhs).getResult());
  op.erase();
  sum.erase();
}

/// Erases the unused ops among `ops`, and then their unused operands.
void eraseUnused(SetVector<Operation *> ops) {
  while (!ops.empty()) {
    Operation *op = ops.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        ops.insert(definition);
    op->erase();
  }
}

struct SplitAddresses : kvcache::impl::SplitAddressesBase<SplitAddresses> {
  void runOnOperation() override {
    DataLayout layout = DataLayout::closest(getOperation());
    SetVector<Operation *> replaced;
    int64_t count = 0;
    getOperation()->walk([&](LLVM::GEPOp op) {
      if (!isElementAddress(op))
        return;
      Value index = op.getDynamicIndices().front();
      Sum sum;
      sum.add(index, layout.getTypeSize(op.getElemType()), op->getBlock());
      sum.reunite(op->getBlock());
      if (sum.terms.size() == 1 && sum.constant == 0)
        return;
      op.replaceAllUsesWith(AddressBuilder(op).build(sum));
      op.erase();
      ++count;
      if (Operation *definition = index.getDefiningOp())
        replaced.insert(definition);
    });
    numSplit += count;
    if (count > 0)
      remark::passed(getOperation()->getLoc(),
                     remark::RemarkOpts::name("address").category(
                         "kvcache-split-addresses"))
          << "addresses split" << remark::metric("Count", count);
    eraseUnused(std::move(replaced));
    getOperation()->walk(truncateParts);
  }
};

} // namespace
