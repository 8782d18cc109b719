//===- Bounds.cpp - Bounds of integers ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

std::optional<uint64_t> kvcache::getUnsignedConstant(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) ||
      constant.getBitWidth() > 64)
    return std::nullopt;
  return constant.getZExtValue();
}

std::optional<uint64_t> kvcache::getConstantFactor(Operation *op) {
  if (!isa<LLVM::MulOp, LLVM::ShlOp>(op))
    return std::nullopt;
  std::optional<uint64_t> constant = getUnsignedConstant(op->getOperand(1));
  if (isa<LLVM::MulOp>(op) || !constant)
    return constant;
  if (*constant >= 32)
    return std::nullopt;
  return uint64_t{1} << *constant;
}

/// The bound of `op`, ignoring the range of its type.
static uint64_t getUnlimitedBound(Operation *op, int depth) {
  auto bound = [&](unsigned operand) {
    return getUnsignedBound(op->getOperand(operand), depth + 1);
  };
  if (auto range = op->getAttrOfType<LLVM::ConstantRangeAttr>("range"))
    return range.getUpper().getZExtValue() - 1;
  // CUDA C++ Programming Guide, Technical Specifications: fewer than 2^31
  // blocks along x, and fewer than 2^16 along y and z.
  if (isa<NVVM::BlockIdXOp>(op))
    return llvm::maxIntN(32);
  if (isa<NVVM::BlockIdYOp, NVVM::BlockIdZOp>(op))
    return llvm::maxUIntN(16);
  if (isa<LLVM::AddOp>(op))
    return llvm::SaturatingAdd(bound(0), bound(1));
  if (std::optional<uint64_t> factor = getConstantFactor(op))
    return llvm::SaturatingMultiply(bound(0), *factor);
  if (isa<LLVM::ZExtOp, LLVM::TruncOp>(op))
    return bound(0);
  if (isa<LLVM::SExtOp>(op) && bound(0) <= llvm::maxIntN(32))
    return bound(0);
  if (isa<LLVM::AndOp>(op))
    return std::min(bound(0), bound(1));
  std::optional<uint64_t> divisor;
  if (isa<LLVM::UDivOp, LLVM::URemOp>(op))
    divisor = getUnsignedConstant(op->getOperand(1));
  if (divisor.value_or(0) == 0)
    return kUnbounded;
  return isa<LLVM::UDivOp>(op) ? bound(0) / *divisor
                               : std::min(bound(0), *divisor - 1);
}

uint64_t kvcache::getUnsignedBound(Value value, int depth) {
  if (std::optional<uint64_t> constant = getUnsignedConstant(value))
    return *constant;
  uint64_t most = llvm::maxUIntN(value.getType().getIntOrFloatBitWidth());
  Operation *op = value.getDefiningOp();
  if (!op || depth == kMaxDepth)
    return most;
  return std::min(most, getUnlimitedBound(op, depth));
}

bool kvcache::isExactIn32Bits(Operation *op) {
  auto flags = cast<LLVM::IntegerOverflowFlagsInterface>(op);
  return flags.hasNoUnsignedWrap() ||
         getUnlimitedBound(op, /*depth=*/0) <= llvm::maxUIntN(32);
}

/// Whether `branch` goes to `block` only if `value` is less than 2^32.
static bool impliesFit(LLVM::CondBrOp branch, Block *block, Value value) {
  if (branch.getTrueDest() != block || branch.getFalseDest() == block)
    return false;
  auto compare = branch.getCondition().getDefiningOp<LLVM::ICmpOp>();
  return compare && compare.getPredicate() == LLVM::ICmpPredicate::ult &&
         compare.getLhs() == value &&
         getUnsignedBound(compare.getRhs()) <= llvm::maxUIntN(32);
}

bool kvcache::fitsIn32Bits(Value value, Block *block) {
  if (getUnsignedBound(value) <= llvm::maxUIntN(32))
    return true;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    Block *before = block->getSinglePredecessor();
    if (!before)
      return false;
    auto branch = dyn_cast<LLVM::CondBrOp>(before->getTerminator());
    if (branch && impliesFit(branch, block, value))
      return true;
    block = before;
  }
  return false;
}
