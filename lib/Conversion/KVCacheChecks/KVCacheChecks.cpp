//===- KVCacheChecks.cpp - Lower run-time checks --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/KVCache.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CONVERTKVCACHECHECKS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The source position behind a location, however it is wrapped.
FileLineColLoc findFileLoc(Location loc) {
  FileLineColLoc found;
  loc->walk([&](Location nested) {
    found = dyn_cast<FileLineColLoc>(nested);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

/// `file:line:col: error: what`, or without a position where there is none.
std::string getMessage(Location loc, StringRef what) {
  std::string message;
  llvm::raw_string_ostream os(message);
  if (FileLineColLoc position = findFileLoc(loc))
    os << position.getFilename().getValue() << ":" << position.getLine() << ":"
       << position.getColumn() << ": ";
  os << "error: " << what;
  // The message is a printf format.
  std::string escaped;
  for (char c : message)
    escaped.append(c == '%' ? 2 : 1, c);
  return escaped;
}

/// Makes the strings and the declaration that checks on the CPU need.
class HostChecks {
public:
  explicit HostChecks(ModuleOp module) : module(module), symbols(module) {}

  /// Calls `kvcacheCheckFailed(format, value, bound)`.
  void createCall(OpBuilder &builder, Location loc, StringRef format,
                  Value value, Value bound) {
    Value string = getString(builder, loc, format);
    LLVM::CallOp::create(builder, loc, getFunction(loc),
                         ValueRange{string, value, bound});
  }

private:
  static constexpr StringLiteral kFunction{"kvcacheCheckFailed"};

  LLVM::LLVMFuncOp getFunction(Location loc) {
    if (auto function = symbols.lookup<LLVM::LLVMFuncOp>(kFunction))
      return function;
    MLIRContext *context = module.getContext();
    Type pointer = LLVM::LLVMPointerType::get(context);
    Type i64 = IntegerType::get(context, 64);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                            {pointer, i64, i64});
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto function =
        LLVM::LLVMFuncOp::create(builder, module.getLoc(), kFunction, type);
    symbols.insert(function);
    return function;
  }

  Value getString(OpBuilder &builder, Location loc, StringRef text) {
    LLVM::GlobalOp &global = strings[text];
    if (!global) {
      OpBuilder atStart = OpBuilder::atBlockBegin(module.getBody());
      std::string bytes = (text + Twine('\0')).str();
      auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size());
      global = LLVM::GlobalOp::create(
          atStart, module.getLoc(), type, /*isConstant=*/true,
          LLVM::Linkage::Internal, "kvcache_message",
          builder.getStringAttr(bytes));
      symbols.insert(global);
    }
    return LLVM::AddressOfOp::create(builder, loc, global);
  }

  ModuleOp module;
  SymbolTable symbols;
  llvm::StringMap<LLVM::GlobalOp> strings;
};

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
    module.walk([&](ModuleOp nested) {
      HostChecks host(nested);
      auto isOurs = [&](Operation *op) {
        return op->getParentOfType<ModuleOp>() == nested;
      };
      nested.walk([&](CheckOp op) {
        if (isOurs(op))
          lowerCheck(op, host);
      });
      nested.walk([&](cf::AssertOp op) {
        if (isOurs(op) && !isInGPUCode(op))
          lowerAssert(op, host);
      });
    });
  }

private:
  static void lowerCheck(CheckOp op, HostChecks &host) {
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
        host.createCall(builder, loc, format, value, bound);
    }
    if (isInGPUCode(op)) {
      // The assertion's own message has a position only for a plain location.
      FileLineColLoc position = findFileLoc(loc);
      cf::AssertOp::create(builder, position ? Location(position) : loc, holds,
                           (op.getWhat() + " is out of range").str());
    }
    op.erase();
  }

  static void lowerAssert(cf::AssertOp op, HostChecks &host) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    enterFailure(builder, loc, op.getArg());
    Value zero = arith::ConstantIntOp::create(builder, loc, 0, 64);
    host.createCall(builder, loc, getMessage(loc, op.getMsg()), zero, zero);
    op.erase();
  }
};

} // namespace
