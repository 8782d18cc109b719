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
#include "kvcache/Target/Wgmma.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <cstddef>
#include <cstring>

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

void WgmmaRegisters::storeAll(OpBuilder &builder, ValueRange values,
                              size_t offset) {
  for (auto [number, value] : llvm::enumerate(values))
    store(builder, value, offset + number * sizeof(uint32_t));
}

Value WgmmaRegisters::load(OpBuilder &builder, Type type, size_t offset) {
  return LLVM::LoadOp::create(builder, loc, type, getAddress(builder, offset),
                              /*alignment=*/sizeof(uint32_t));
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Inline assembly with A in registers: the operands are those, the descriptor
/// of B and the accumulators.
static std::optional<RegisterWgmma> getAssembly(Operation *op) {
  auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
  return assembly ? RegisterWgmma::get(assembly) : std::nullopt;
}

bool kvcache::isWgmma(Operation *op) {
  return isa<NVVM::WgmmaMmaAsyncOp>(op) || getAssembly(op);
}

WgmmaOperands::WgmmaOperands(Operation *wgmma)
    : accumulators(wgmma->getOperands()), registersA(accumulators) {
  if (auto op = dyn_cast<NVVM::WgmmaMmaAsyncOp>(wgmma)) {
    accumulators = accumulators.take_front();
    registersA = registersA.take_front(0);
    descriptorA = op.getDescriptorA();
    descriptorB = op.getDescriptorB();
    return;
  }
  constexpr size_t count = RegisterWgmma::kNumRegistersA;
  accumulators = accumulators.drop_front(count + 1);
  registersA = registersA.take_front(count);
  descriptorB = wgmma->getOperand(count);
}

static bool hasKnownAccumulators(NVVM::WgmmaMmaAsyncOp op) {
  auto structure = dyn_cast<LLVM::LLVMStructType>(op.getInouts().getType());
  if (!structure || structure.isOpaque())
    return false;
  size_t perRegister = op.getTypeD() == NVVM::WGMMATypes::f16 ? 2 : 1;
  return structure.getBody().size() * 2 * perRegister ==
             static_cast<size_t>(op.getShape().getN()) &&
         llvm::all_of(structure.getBody(), isMatrixRegister);
}

/// Sets the types of the elements; false for an unknown one.
static bool setTypes(KVCacheWgmma &form, NVVM::WGMMATypes a, NVVM::WGMMATypes b,
                     NVVM::WGMMATypes d) {
  auto set = [](uint32_t &kind, NVVM::WGMMATypes type) {
    const MatrixElement *element = findElement(NVVM::stringifyWGMMATypes(type));
    if (element)
      kind = element->kind;
    return element != nullptr;
  };
  return set(form.a, a) && set(form.b, b) && set(form.d, d);
}

std::optional<KVCacheWgmma> kvcache::getWgmmaForm(Operation *wgmma) {
  KVCacheWgmma form = {};
  if (std::optional<RegisterWgmma> assembly = getAssembly(wgmma)) {
    form.n = static_cast<uint32_t>(assembly->n);
    form.k = static_cast<uint32_t>(assembly->k);
    form.hasRegistersA = 1;
    form.isMNMajorB = assembly->isMNMajorB;
    form.accumulates = assembly->accumulates;
    bool isKnown =
        setTypes(form, assembly->typeA, assembly->typeB, assembly->typeD);
    return isKnown ? std::optional(form) : std::nullopt;
  }
  auto op = cast<NVVM::WgmmaMmaAsyncOp>(wgmma);
  form.n = static_cast<uint32_t>(op.getShape().getN());
  form.k = static_cast<uint32_t>(op.getShape().getK());
  form.isMNMajorA = op.getLayoutA() == NVVM::MMALayout::col;
  form.isMNMajorB = op.getLayoutB() == NVVM::MMALayout::row;
  form.negatesA = op.getScaleA() == NVVM::WGMMAScaleIn::neg;
  form.negatesB = op.getScaleB() == NVVM::WGMMAScaleIn::neg;
  form.accumulates = op.getScaleD() == NVVM::WGMMAScaleOut::one;
  form.isSaturated = op.getSatfinite() == NVVM::MMAIntOverflow::satfinite;
  bool isKnown = setTypes(form, op.getTypeA(), op.getTypeB(), op.getTypeD()) &&
                 hasKnownAccumulators(op);
  return isKnown ? std::optional(form) : std::nullopt;
}

static LogicalResult reportUnknown(Operation *wgmma) {
  auto op = cast<NVVM::WgmmaMmaAsyncOp>(wgmma);
  return op.emitOpError("on ")
         << NVVM::stringifyWGMMATypes(op.getTypeA()) << ", with accumulators "
         << op.getInouts().getType() << ", has no lowering for the emulator";
}

static LogicalResult lowerMma(Operation *op, EmulatorCalls &calls) {
  std::optional<KVCacheWgmma> known = getWgmmaForm(op);
  if (!known)
    return reportUnknown(op);
  constexpr size_t numFields = sizeof(KVCacheWgmma) / sizeof(uint32_t);
  uint32_t fields[numFields];
  std::memcpy(fields, &*known, sizeof(fields));
  SmallVector<Type> types(numFields, calls.i32);
  Location loc = op->getLoc();
  LLVM::GlobalOp form = calls.runtime.createStruct(
      loc, "kvcache_wgmma", types, [&](FieldBuilder &record, OpBuilder &) {
        for (auto [index, field] : llvm::enumerate(fields))
          record.set(field, calls.i32, static_cast<int64_t>(index));
      });
  OpBuilder builder(op);
  WgmmaRegisters registers(op, calls);
  WgmmaOperands operands(op);
  constexpr size_t place = offsetof(KVCacheWgmmaRegisters, d);
  registers.storeAll(builder, operands.accumulators, place);
  registers.storeAll(builder, operands.registersA,
                     offsetof(KVCacheWgmmaRegisters, a));
  Value address = LLVM::AddressOfOp::create(builder, loc, form);
  Value descriptorA =
      operands.descriptorA ? operands.descriptorA : calls.getI64(op, 0);
  calls.call(op, "kvcacheEmulatorWgmma", Type(),
             {address, descriptorA, operands.descriptorB, registers.get()});
  op->getResult(0).replaceAllUsesWith(
      registers.load(builder, op->getResult(0).getType(), place));
  op->erase();
  return success();
}

void kvcache::dissolveRegisterFences(gpu::GPUModuleOp module) {
  module.walk([](LLVM::InlineAsmOp op) {
    if (!isRegisterFence(op))
      return;
    OpBuilder builder(op);
    Value all = op.getOperand(0);
    if (op.getNumOperands() > 1) {
      all = LLVM::UndefOp::create(builder, op.getLoc(), op.getRes().getType());
      for (auto [number, value] : llvm::enumerate(op.getOperands()))
        all = LLVM::InsertValueOp::create(builder, op.getLoc(), all, value,
                                          static_cast<int64_t>(number));
    }
    op.getRes().replaceAllUsesWith(all);
    op.erase();
  });
}

FailureOr<bool> kvcache::lowerWarpgroupOp(Operation *op, EmulatorCalls &calls) {
  if (isWgmma(op)) {
    if (failed(lowerMma(op, calls)))
      return failure();
    return true;
  }
  return llvm::TypeSwitch<Operation *, FailureOr<bool>>(op)
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
