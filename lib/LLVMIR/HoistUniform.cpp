//===- HoistUniform.cpp - Hoist uniform computations ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"
#include "kvcache/Support/FindOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/PostOrderIterator.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_HOISTUNIFORM
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Whether the op reads an id or a size that is uniform in a block.
bool isUniformRegister(Operation *op) {
  return isa<NVVM::BlockIdXOp, NVVM::BlockIdYOp, NVVM::BlockIdZOp,
             NVVM::BlockDimXOp, NVVM::BlockDimYOp, NVVM::BlockDimZOp,
             NVVM::GridDimXOp, NVVM::GridDimYOp, NVVM::GridDimZOp>(op);
}

/// Whether the op is a division that must not move before a guard, because its
/// divisor may be 0, or it may overflow. LLVM's ops are nevertheless marked
/// pure.
bool isGuardedDivision(Operation *op) {
  if (!isa<LLVM::SDivOp, LLVM::SRemOp, LLVM::UDivOp, LLVM::URemOp>(op))
    return false;
  APInt divisor;
  return !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) ||
         divisor.isZero() || divisor.isAllOnes();
}

struct HoistUniform : kvcache::impl::HoistUniformBase<HoistUniform> {
  void runOnOperation() override {
    for (auto function : findOps<LLVM::LLVMFuncOp>(getOperation()))
      if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()) &&
          !function.getBody().hasOneBlock() && !function.isExternal())
        remarkHoisted(function, hoistInKernel(function));
  }

private:
  void remarkHoisted(LLVM::LLVMFuncOp kernel, int64_t count) {
    numHoisted += count;
    if (count > 0)
      remark::passed(kernel.getLoc(), remark::RemarkOpts::name("uniform")
                                          .category("kvcache-hoist-uniform")
                                          .function(kernel.getName()))
          << "operations moved to the entry block"
          << remark::metric("Count", count);
  }

  /// Returns the number of operations moved.
  static int64_t hoistInKernel(LLVM::LLVMFuncOp kernel) {
    int64_t count = 0;
    Block &entry = kernel.getBody().front();
    DenseSet<Value> uniform(entry.args_begin(), entry.args_end());
    llvm::ReversePostOrderTraversal<Region *> blocks(&kernel.getBody());
    for (Block *block : blocks)
      for (Operation &op : llvm::make_early_inc_range(*block)) {
        bool pure = op.getNumRegions() == 0 && op.getNumResults() > 0 &&
                    !isGuardedDivision(&op) &&
                    (isPure(&op) || isUniformRegister(&op));
        bool shared = isUniformRegister(&op) ||
                      (!isa_and_present<NVVM::NVVMDialect>(op.getDialect()) &&
                       llvm::all_of(op.getOperands(), [&](Value operand) {
                         return uniform.contains(operand);
                       }));
        if (!pure || !shared)
          continue;
        uniform.insert(op.result_begin(), op.result_end());
        if (block == &entry)
          continue;
        op.moveBefore(entry.getTerminator());
        ++count;
      }
    return count;
  }
};

} // namespace
