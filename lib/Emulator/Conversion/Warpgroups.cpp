//===- Warpgroups.cpp - wgmma as calls ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warpgroups.h"
#include "Families.h"
#include "Matrices.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// Kernels have many such instructions, and small stacks.
WgmmaRegisters::WgmmaRegisters(Operation *op, EmulatorCalls &calls)
    : loc(op->getLoc()), calls(calls) {
  constexpr StringLiteral mark = "wgmma_registers";
  Block &entry = op->getParentOfType<FunctionOpInterface>().front();
  for (auto other : entry.getOps<LLVM::AllocaOp>())
    if (other->hasAttr(mark))
      slot = other;
  if (slot)
    return;
  slot = calls.createSlot(
      op, LLVM::LLVMArrayType::get(calls.i8, sizeof(KVCacheWgmmaRegisters)));
  slot.getDefiningOp()->setAttr(mark, UnitAttr::get(op->getContext()));
}

Value WgmmaRegisters::getAddress(OpBuilder &builder, size_t offset) {
  return LLVM::GEPOp::create(
      builder, loc, calls.pointerType, calls.i8, slot,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

void WgmmaRegisters::store(OpBuilder &builder, Value value, size_t offset) {
  LLVM::StoreOp::create(builder, loc, value, getAddress(builder, offset),
                        /*alignment=*/sizeof(uint32_t));
}

Value WgmmaRegisters::load(OpBuilder &builder, Type type, size_t offset) {
  return LLVM::LoadOp::create(builder, loc, type, getAddress(builder, offset),
                              /*alignment=*/sizeof(uint32_t));
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

bool kvcache::hasKnownAccumulators(Operation *wgmma) {
  auto op = cast<NVVM::WgmmaMmaAsyncOp>(wgmma);
  auto structure = dyn_cast<LLVM::LLVMStructType>(op.getInouts().getType());
  if (!structure || structure.isOpaque())
    return false;
  size_t perRegister = op.getTypeD() == NVVM::WGMMATypes::f16 ? 2 : 1;
  return structure.getBody().size() * 2 * perRegister ==
             static_cast<size_t>(op.getShape().getN()) &&
         llvm::all_of(structure.getBody(), isMatrixRegister);
}

static LogicalResult lowerMma(NVVM::WgmmaMmaAsyncOp op, EmulatorCalls &calls) {
  auto find = [](NVVM::WGMMATypes type) {
    return findElement(NVVM::stringifyWGMMATypes(type));
  };
  const MatrixElement *a = find(op.getTypeA()), *b = find(op.getTypeB()),
                      *d = find(op.getTypeD());
  if (!a || !b || !d || !hasKnownAccumulators(op))
    return op.emitOpError("on ")
           << NVVM::stringifyWGMMATypes(op.getTypeA()) << ", with accumulators "
           << op.getInouts().getType() << ", has no lowering for the emulator";
  bool isMNMajorA = op.getLayoutA() == NVVM::MMALayout::col;
  bool isMNMajorB = op.getLayoutB() == NVVM::MMALayout::row;
  const int64_t fields[] = {op.getShape().getN(),
                            op.getShape().getK(),
                            a->kind,
                            b->kind,
                            d->kind,
                            isMNMajorA,
                            isMNMajorB,
                            op.getScaleA() == NVVM::WGMMAScaleIn::neg,
                            op.getScaleB() == NVVM::WGMMAScaleIn::neg,
                            op.getScaleD() == NVVM::WGMMAScaleOut::one,
                            op.getSatfinite() ==
                                NVVM::MMAIntOverflow::satfinite};
  SmallVector<Type> types(std::size(fields), calls.i32);
  Location loc = op.getLoc();
  LLVM::GlobalOp form = calls.runtime.createStruct(
      loc, "kvcache_wgmma", types, [&](FieldBuilder &record, OpBuilder &) {
        for (auto [index, field] : llvm::enumerate(fields))
          record.set(field, calls.i32, static_cast<int64_t>(index));
      });
  OpBuilder builder(op);
  WgmmaRegisters registers(op, calls);
  constexpr size_t place = offsetof(KVCacheWgmmaRegisters, d);
  registers.store(builder, op.getInouts(), place);
  Value address = LLVM::AddressOfOp::create(builder, loc, form);
  calls.call(
      op, "kvcacheEmulatorWgmma", Type(),
      {address, op.getDescriptorA(), op.getDescriptorB(), registers.get()});
  op.getResults().replaceAllUsesWith(
      registers.load(builder, op.getResults().getType(), place));
  op.erase();
  return success();
}

FailureOr<bool> kvcache::lowerWarpgroupOp(Operation *op, EmulatorCalls &calls) {
  return llvm::TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](NVVM::WgmmaMmaAsyncOp op) -> FailureOr<bool> {
        if (failed(lowerMma(op, calls)))
          return failure();
        return true;
      })
      .Case([&](NVVM::WgmmaFenceAlignedOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorWgmmaFence", {});
        return true;
      })
      .Case([&](NVVM::WgmmaGroupSyncAlignedOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorWgmmaCommit", {});
        return true;
      })
      .Case([&](NVVM::WgmmaWaitGroupSyncOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorWgmmaWait",
                            calls.getI64(op, op.getGroup()));
        return true;
      })
      .Default([](Operation *) { return FailureOr<bool>(false); });
}
