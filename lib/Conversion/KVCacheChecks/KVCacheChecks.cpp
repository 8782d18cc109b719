//===- KVCacheChecks.cpp - Lower run-time checks --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../RuntimeCalls/RuntimeCalls.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/KVCache.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CONVERTKVCACHECHECKS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// `file:line:col: error: what` as a printf format.
std::string getMessage(Location loc, StringRef what) {
  std::string escaped;
  for (char c : addPosition(loc, "error: " + what))
    escaped.append(c == '%' ? 2 : 1, c);
  return escaped;
}

/// Calls `kvcacheCheckFailed(format, value, bound)`.
void createCall(RuntimeCalls &host, OpBuilder &builder, Location loc,
                StringRef format, Value value, Value bound) {
  Value string = host.getString(builder, loc, format);
  host.call(builder, loc, "kvcacheCheckFailed", /*resultType=*/{},
            {string, value, bound});
}

Value asI64(OpBuilder &builder, Location loc, Value index) {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
}

/// Opens `scf.if` for the case that a check fails, and moves into it.
void enterFailure(OpBuilder &builder, Location loc, Value holds) {
  Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value fails = arith::XOrIOp::create(builder, loc, holds, yes);
  auto branch = scf::IfOp::create(builder, loc, fails);
  builder.setInsertionPointToStart(branch.thenBlock());
}

struct ConvertKVCacheChecks
    : kvcache::impl::ConvertKVCacheChecksBase<ConvertKVCacheChecks> {
  void runOnOperation() override {
    auto module = dyn_cast<ModuleOp>(getOperation());
    if (!module) {
      getOperation()->emitOpError("expects 'convert-kvcache-checks' to run on "
                                  "a builtin.module");
      return signalPassFailure();
    }
    // Modules may nest, and each needs strings and a declaration of its own.
    llvm::MapVector<ModuleOp, SmallVector<Operation *>> checksOf;
    module.walk([&](Operation *op) {
      if (isa<CheckOp>(op) || (isa<cf::AssertOp>(op) && !isInGPUCode(op)))
        checksOf[op->getParentOfType<ModuleOp>()].push_back(op);
    });
    for (auto &[nested, checks] : checksOf) {
      RuntimeCalls host(nested);
      for (Operation *op : checks) {
        if (auto check = dyn_cast<CheckOp>(op))
          lowerCheck(check, host);
        else
          lowerAssert(cast<cf::AssertOp>(op), host);
      }
    }
  }

private:
  static void lowerCheck(CheckOp op, RuntimeCalls &host) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Value holds = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                        op.getValue(), op.getBound());
    std::string format =
        getMessage(loc, (op.getWhat() + " is out of range: ").str());
    format += "%lld is not in [0, %lld)";
    {
      OpBuilder::InsertionGuard guard(builder);
      enterFailure(builder, loc, holds);
      Value value = asI64(builder, loc, op.getValue());
      Value bound = asI64(builder, loc, op.getBound());
      if (isInGPUCode(op))
        gpu::PrintfOp::create(builder, loc, format + "\n",
                              ValueRange{value, bound});
      else
        createCall(host, builder, loc, format, value, bound);
    }
    if (isInGPUCode(op)) {
      // The assertion's own message has a position only for a plain location.
      FileLineColLoc position = findFileLoc(loc);
      cf::AssertOp::create(builder, position ? Location(position) : loc, holds,
                           (op.getWhat() + " is out of range").str());
    }
    op.erase();
  }

  static void lowerAssert(cf::AssertOp op, RuntimeCalls &host) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    enterFailure(builder, loc, op.getArg());
    Value zero = arith::ConstantIntOp::create(builder, loc, 0, 64);
    createCall(host, builder, loc, getMessage(loc, op.getMsg()), zero, zero);
    op.erase();
  }
};

} // namespace
