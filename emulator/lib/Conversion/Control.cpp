//===- Control.cpp - Printing, assertions and traps as calls --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Control.h"
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

/// Lowers a call of a system function: PTX Writer's Guide to Interoperability,
/// "System Calls".
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

/// `isspacep.shared`: whether a pointer is into a space.
static bool lowerIsInSpace(LLVM::CallIntrinsicOp op, StringRef name,
                           EmulatorCalls &calls) {
  std::optional<uint32_t> space =
      llvm::StringSwitch<std::optional<uint32_t>>(name)
          .Case("global", KVCacheSpaceGlobal)
          .Case("shared", KVCacheSpaceShared)
          .Case("shared.cluster", KVCacheSpaceSharedCluster)
          .Case("local", KVCacheSpaceLocal)
          .Default(std::nullopt);
  if (!space || op.getArgs().size() != 1 ||
      !isa<LLVM::LLVMPointerType>(op.getArgs()[0].getType()))
    return false;
  OpBuilder builder(op);
  Value is = calls.call(op, "kvcacheEmulatorIsInSpace", calls.i32,
                        {op.getArgs()[0], calls.getI32(op, *space)});
  is = LLVM::ICmpOp::create(builder, op.getLoc(), LLVM::ICmpPredicate::ne, is,
                            calls.getI32(op, 0));
  op->getResult(0).replaceAllUsesWith(is);
  op->erase();
  return true;
}

/// Intrinsics that have an op, called by name, or have none.
static bool lowerIntrinsic(LLVM::CallIntrinsicOp op, EmulatorCalls &calls) {
  StringRef name = op.getIntrin();
  if (name.consume_front("llvm.nvvm.isspacep."))
    return lowerIsInSpace(op, name, calls);
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
