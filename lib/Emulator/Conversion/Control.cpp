//===- Control.cpp - Printing, assertions and traps as calls --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Fails for operands other than a function of the device has, as `expected`
/// says. Pointers may be of any space.
static LogicalResult checkOperands(LLVM::CallOp op, ArrayRef<Type> types,
                                   StringRef expected) {
  auto isLike = [](Type given, Type wanted) {
    return given == wanted || (isa<LLVM::LLVMPointerType>(given) &&
                               isa<LLVM::LLVMPointerType>(wanted));
  };
  if (llvm::equal(op.getCalleeOperands().getTypes(), types, isLike))
    return success();
  return op.emitOpError("of @") << *op.getCallee() << " expects the operands ("
                                << expected << ") of the device's function";
}

/// What every kernel can call: PTX Writer's Guide to Interoperability, "System
/// Calls".
static FailureOr<bool> lowerSystemCall(LLVM::CallOp op, EmulatorCalls &calls) {
  Type pointer = calls.pointerType;
  std::optional<StringRef> callee = op.getCallee();
  OperandRange operands = op.getCalleeOperands();
  if (callee == "vprintf") {
    if (failed(checkOperands(op, {pointer, pointer}, "ptr, ptr")))
      return failure();
    calls.replaceByCall(op, "kvcacheEmulatorPrint", operands);
    return true;
  }
  if (callee == "__assertfail") {
    if (failed(checkOperands(op,
                             {pointer, pointer, calls.i32, pointer, calls.i64},
                             "ptr, ptr, i32, ptr, i64")))
      return failure();
    calls.replaceByCall(op, "kvcacheEmulatorAssertFail", operands.drop_back());
    return true;
  }
  return false;
}

/// Intrinsics that have an op, called by name.
static bool lowerIntrinsic(LLVM::CallIntrinsicOp op, EmulatorCalls &calls) {
  StringRef name = op.getIntrin();
  if (op->getNumResults() != 0)
    return false;
  if (name == "llvm.trap" || name == "llvm.debugtrap")
    calls.replaceByCall(op, "kvcacheEmulatorTrap", {});
  else if (name == "llvm.nvvm.exit")
    calls.replaceByCall(op, "kvcacheEmulatorExit", {});
  else if (name == "llvm.nvvm.nanosleep" &&
           llvm::equal(op.getArgs().getTypes(), ArrayRef<Type>{calls.i32}))
    calls.replaceByCall(op, "kvcacheEmulatorSleep", op.getArgs());
  else if (name.consume_front("llvm.nvvm.setmaxnreg.") &&
           llvm::equal(op.getArgs().getTypes(), ArrayRef<Type>{calls.i32}))
    calls.replaceByCall(
        op, "kvcacheEmulatorSetMaxRegisters",
        {op.getArgs().front(), calls.getI32(op, name.starts_with("inc."))});
  else
    return false;
  return true;
}

FailureOr<bool> kvcache::lowerControlOp(Operation *op, EmulatorCalls &calls) {
  using Result = FailureOr<bool>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](LLVM::CallOp op) { return lowerSystemCall(op, calls); })
      .Case([&](LLVM::CallIntrinsicOp op) { return lowerIntrinsic(op, calls); })
      .Case<LLVM::Trap, LLVM::DebugTrap, NVVM::Breakpoint>([&](Operation *op) {
        calls.replaceByCall(op, "kvcacheEmulatorTrap", {});
        return true;
      })
      .Case([&](NVVM::Exit op) {
        calls.replaceByCall(op, "kvcacheEmulatorExit", {});
        return true;
      })
      .Case([&](NVVM::NanosleepOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorSleep", op.getDuration());
        return true;
      })
      .Case([&](NVVM::SetMaxRegisterOp op) {
        bool isIncrease =
            op.getAction() == NVVM::SetMaxRegisterAction::increase;
        calls.replaceByCall(
            op, "kvcacheEmulatorSetMaxRegisters",
            {calls.getI32(op, op.getRegCount()), calls.getI32(op, isIncrease)});
        return true;
      })
      .Case([](NVVM::PMEventOp op) {
        op->erase();
        return true;
      })
      .Default(Result(false));
}
