//===- FailureRecorder.cpp - Kernels say why they trap --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailureRecorder.h"

#include "kvcache/Runtime/FailureRecord.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"

#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

static_assert(offsetof(FailureRecord, isComplete) == 0 &&
              offsetof(FailureRecord, line) == 4 &&
              offsetof(FailureRecord, message) == 8 &&
              offsetof(FailureRecord, file) == 1032 &&
              FailureRecord::kTextBytes == 1024);

/// The variable is weak, so that modules can be linked. One thread writes the
/// record; others that fail wait for it, because the trap of the first one ends
/// the kernel. They don't wait for ever: the one that writes may have ended
/// with another error.
static constexpr StringLiteral kRecorder = R"mlir(
llvm.mlir.global weak @kvcache_failure_record(0 : i64) {addr_space = 1 : i32} : i64
llvm.mlir.global internal @kvcache_failure_claimed(0 : i32) {addr_space = 1 : i32} : i32

llvm.func internal @kvcache_copy_text(%to: !llvm.ptr, %from: !llvm.ptr) attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %last = llvm.mlir.constant(1023 : i64) : i64
  %end = llvm.mlir.constant(0 : i8) : i8
  llvm.br ^copy(%zero : i64)
^copy(%i: i64):
  %source = llvm.getelementptr %from[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %target = llvm.getelementptr %to[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %is_last = llvm.icmp "eq" %i, %last : i64
  llvm.cond_br %is_last, ^done, ^read
^read:
  %byte = llvm.load %source : !llvm.ptr -> i8
  %is_end = llvm.icmp "eq" %byte, %end : i8
  llvm.cond_br %is_end, ^done, ^write
^write:
  llvm.store %byte, %target : i8, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^copy(%next : i64)
^done:
  llvm.store %end, %target : i8, !llvm.ptr
  llvm.return
}

llvm.func internal @kvcache_record_failure(%message: !llvm.ptr, %file: !llvm.ptr, %line: i32) attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %polls = llvm.mlir.constant(1048576 : i32) : i32
  %none = llvm.mlir.constant(0 : i64) : i64
  %variable = llvm.mlir.addressof @kvcache_failure_record : !llvm.ptr<1>
  %address = llvm.load %variable : !llvm.ptr<1> -> i64
  %has_none = llvm.icmp "eq" %address, %none : i64
  llvm.cond_br %has_none, ^done, ^claim
^claim:
  %record = llvm.inttoptr %address : i64 to !llvm.ptr
  %claimed = llvm.mlir.addressof @kvcache_failure_claimed : !llvm.ptr<1>
  %before = llvm.atomicrmw xchg %claimed, %one syncscope("device") monotonic : !llvm.ptr<1>, i32
  %is_first = llvm.icmp "eq" %before, %zero : i32
  llvm.cond_br %is_first, ^write, ^wait(%zero : i32)
^write:
  %line_field = llvm.getelementptr %record[4] : (!llvm.ptr) -> !llvm.ptr, i8
  %message_field = llvm.getelementptr %record[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %file_field = llvm.getelementptr %record[1032] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %line, %line_field : i32, !llvm.ptr
  llvm.call @kvcache_copy_text(%message_field, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.call @kvcache_copy_text(%file_field, %file) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.store %one, %record atomic release {alignment = 4 : i64} : i32, !llvm.ptr
  llvm.br ^done
^wait(%poll: i32):
  %state = llvm.load %record atomic acquire {alignment = 4 : i64} : !llvm.ptr -> i32
  %next = llvm.add %poll, %one : i32
  %is_complete = llvm.icmp "ne" %state, %zero : i32
  %is_late = llvm.icmp "uge" %next, %polls : i32
  %ends = llvm.or %is_complete, %is_late : i1
  llvm.cond_br %ends, ^done, ^wait(%next : i32)
^done:
  llvm.return
}
)mlir";

FailureOr<LLVM::LLVMFuncOp>
kvcache::createFailureRecorder(gpu::GPUModuleOp module, SymbolTable &symbols) {
  constexpr StringLiteral recorder = "kvcache_record_failure";
  if (auto known = symbols.lookup<LLVM::LLVMFuncOp>(recorder))
    return known;
  OwningOpRef<ModuleOp> parsed =
      parseSourceString<ModuleOp>(kRecorder, module.getContext());
  assert(parsed && "the text is right");
  for (Operation &op : llvm::make_early_inc_range(*parsed->getBody())) {
    StringAttr name = SymbolTable::getSymbolName(&op);
    if (Operation *known = symbols.lookup(name)) {
      auto variable = dyn_cast<LLVM::GlobalOp>(known);
      if (variable && name == kFailureRecordVariable &&
          variable.getGlobalType().isInteger(64) &&
          variable.getAddrSpace() == 1)
        continue;
      return known->emitError("the name @")
             << name.getValue() << " is taken: kernels with checks use it";
    }
    op.remove();
    op.walk([&](Operation *nested) { nested->setLoc(module.getLoc()); });
    symbols.insert(&op);
  }
  return symbols.lookup<LLVM::LLVMFuncOp>(recorder);
}
