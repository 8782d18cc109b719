//===- Checks.cpp - Lower run-time checks ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/KVCacheToMemRef.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/Support/RuntimeCalls.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
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

/// The checks of host code in one module: calls of one function, because a
/// branch for each makes passes over long functions slow.
class HostChecks {
public:
  explicit HostChecks(ModuleOp module) : runtime(module) {}

  /// Stops with the message unless `value` is below `bound`, both i64.
  void create(OpBuilder &builder, Location loc, StringRef format, Value value,
              Value bound) {
    Value string = runtime.getString(builder, loc, format);
    if (!function)
      function = createFunction(string.getType(), value.getType());
    LLVM::CallOp::create(builder, loc, function, {string, value, bound});
  }

private:
  /// A function of a format, a value and a bound, which kvcache-inline-checks
  /// inlines. A check that fails calls `kvcacheCheckFailed`, which does not
  /// return.
  LLVM::LLVMFuncOp createFunction(Type pointer, Type number) {
    Location loc = runtime.getModule().getLoc();
    OpBuilder builder = OpBuilder::atBlockEnd(runtime.getModule().getBody());
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(builder.getContext()),
        {pointer, number, number});
    auto created = LLVM::LLVMFuncOp::create(builder, loc, "kvcache_check", type,
                                            LLVM::Linkage::Internal);
    created.setAlwaysInline(true);
    runtime.getSymbols().insert(created);
    Block *entry = created.addEntryBlock(builder);
    Block *failed = builder.createBlock(&created.getBody());
    Block *passed = builder.createBlock(&created.getBody());
    builder.setInsertionPointToStart(entry);
    Value holds =
        LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult,
                             entry->getArgument(1), entry->getArgument(2));
    LLVM::CondBrOp::create(builder, loc, holds, passed, failed);
    builder.setInsertionPointToStart(failed);
    runtime.call(builder, loc, "kvcacheCheckFailed", /*resultType=*/{},
                 entry->getArguments());
    LLVM::UnreachableOp::create(builder, loc);
    builder.setInsertionPointToStart(passed);
    LLVM::ReturnOp::create(builder, loc, ValueRange());
    return created;
  }

  RuntimeCalls runtime;
  LLVM::LLVMFuncOp function;
};

Value asI64(OpBuilder &builder, Location loc, Value index) {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
}

/// The checks that have been seen. After one that has passed, an equal one
/// passes as well.
class PassedChecks {
public:
  explicit PassedChecks(DominanceInfo &dominance) : dominance(dominance) {}

  /// Whether an equal check comes before `op` on every way; if not, adds `op`.
  bool contain(CheckOp op) {
    Operation *&known = last[{op.getValue(), op.getBound()}];
    if (known && dominance.properlyDominates(known, op))
      return true;
    known = op;
    return false;
  }

private:
  DominanceInfo &dominance;
  llvm::DenseMap<std::pair<Value, Value>, Operation *> last;
};

struct ConvertKVCacheChecks
    : kvcache::impl::ConvertKVCacheChecksBase<ConvertKVCacheChecks> {
  void runOnOperation() override {
    auto module = dyn_cast<ModuleOp>(getOperation());
    if (!module) {
      getOperation()->emitOpError("expects 'convert-kvcache-checks' to run on "
                                  "a builtin.module");
      return signalPassFailure();
    }
    // Checks are no ops for their regions.
    if (failed(checkFragmentsAreLowered(module)))
      return signalPassFailure();
    // Modules may nest, and each needs strings and a declaration of its own.
    llvm::MapVector<ModuleOp, SmallVector<Operation *>> checksOf;
    PassedChecks passed(getAnalysis<DominanceInfo>());
    module.walk([&](Operation *op) {
      if (auto check = dyn_cast<CheckOp>(op); check && passed.contain(check))
        check.erase();
      else if (check || (isa<cf::AssertOp>(op) && !isInGPUCode(op)))
        checksOf[op->getParentOfType<ModuleOp>()].push_back(op);
    });
    for (auto &[nested, checks] : checksOf) {
      HostChecks host(nested);
      for (Operation *op : checks) {
        OpBuilder builder(op);
        if (auto assertion = dyn_cast<cf::AssertOp>(op))
          lowerAssert(builder, assertion, host);
        else if (auto check = cast<CheckOp>(op); isInGPUCode(check))
          lowerOnGPU(builder, check);
        else
          lowerOnHost(builder, check, host);
        op->erase();
      }
    }
  }

private:
  static std::string getFormat(CheckOp op) {
    std::string what = (op.getWhat() + " is out of range: ").str();
    return getMessage(op.getLoc(), what) + "%lld is not in [0, %lld)";
  }

  static void lowerOnHost(OpBuilder &builder, CheckOp op, HostChecks &host) {
    Location loc = op.getLoc();
    Value value = asI64(builder, loc, op.getValue());
    Value bound = asI64(builder, loc, op.getBound());
    host.create(builder, loc, getFormat(op), value, bound);
  }

  /// Zero is below one.
  static void lowerAssert(OpBuilder &builder, cf::AssertOp op,
                          HostChecks &host) {
    Location loc = op.getLoc();
    Value one = arith::ConstantIntOp::create(builder, loc, 1, 64);
    Value holds =
        arith::ExtUIOp::create(builder, loc, one.getType(), op.getArg());
    Value fails = arith::SubIOp::create(builder, loc, one, holds);
    host.create(builder, loc, getMessage(loc, op.getMsg()), fails, one);
  }

  static void lowerOnGPU(OpBuilder &builder, CheckOp op) {
    Location loc = op.getLoc();
    Value holds = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                        op.getValue(), op.getBound());
    Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value fails = arith::XOrIOp::create(builder, loc, holds, yes);
    auto branch = scf::IfOp::create(builder, loc, fails);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(branch.thenBlock());
      Value value = asI64(builder, loc, op.getValue());
      Value bound = asI64(builder, loc, op.getBound());
      gpu::PrintfOp::create(builder, loc, getFormat(op) + "\n",
                            ValueRange{value, bound});
    }
    // The assertion's own message has a position only for a plain location.
    FileLineColLoc position = findFileLoc(loc);
    cf::AssertOp::create(builder, position ? Location(position) : loc, holds,
                         (op.getWhat() + " is out of range").str());
  }
};

} // namespace
