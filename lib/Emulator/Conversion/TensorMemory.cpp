//===- TensorMemory.cpp - tcgen05 as calls --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMemory.h"
#include "Families.h"
#include "kvcache/Emulator/TensorMemory.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

TensorSlot::TensorSlot(Operation *op, EmulatorCalls &calls, StringRef mark,
                       int64_t bytes)
    : op(op), calls(calls), slot(findSlot(mark, bytes)) {}

TensorRegisters::TensorRegisters(Operation *op, EmulatorCalls &calls)
    : TensorSlot(op, calls, "tensor_registers", sizeof(KVCacheTmemRegisters)) {}

Value TensorSlot::getAddress(OpBuilder &builder, size_t offset) {
  return LLVM::GEPOp::create(
      builder, op->getLoc(), calls.pointerType, calls.i8, slot,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

void TensorSlot::store(OpBuilder &builder, Value value, size_t offset) {
  LLVM::StoreOp::create(builder, op->getLoc(), value,
                        getAddress(builder, offset),
                        /*alignment=*/sizeof(uint32_t));
}

Value TensorSlot::load(OpBuilder &builder, Type type, size_t offset) {
  return LLVM::LoadOp::create(builder, op->getLoc(), type,
                              getAddress(builder, offset),
                              /*alignment=*/sizeof(uint32_t));
}

Value TensorSlot::findSlot(StringRef mark, int64_t bytes) {
  Block &entry = op->getParentOfType<FunctionOpInterface>().front();
  for (auto other : entry.getOps<LLVM::AllocaOp>())
    if (other->hasAttr(mark))
      return other;
  Value made = calls.createSlot(op, LLVM::LLVMArrayType::get(calls.i8, bytes));
  made.getDefiningOp()->setAttr(mark, UnitAttr::get(op->getContext()));
  return made;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

static uint32_t getShape(NVVM::Tcgen05LdStShape shape) {
  switch (shape) {
  case NVVM::Tcgen05LdStShape::SHAPE_16X64B:
    return KVCacheTmem16x64b;
  case NVVM::Tcgen05LdStShape::SHAPE_16X128B:
    return KVCacheTmem16x128b;
  case NVVM::Tcgen05LdStShape::SHAPE_16X256B:
    return KVCacheTmem16x256b;
  case NVVM::Tcgen05LdStShape::SHAPE_32X32B:
    return KVCacheTmem32x32b;
  case NVVM::Tcgen05LdStShape::SHAPE_16X32BX2:
    return KVCacheTmem16x32bx2;
  }
  llvm_unreachable("a shape that the verifier does not know");
}

/// The operands that a load and a store have in common.
static SmallVector<Value> getOperands(Operation *op, EmulatorCalls &calls,
                                      Value address, Value offset,
                                      NVVM::Tcgen05LdStShape shape, Type type,
                                      bool isPacked) {
  auto vector = dyn_cast<VectorType>(type);
  if (!offset)
    offset = calls.getI64(op, 0);
  return {address, offset, calls.getI32(op, getShape(shape)),
          calls.getI32(op, vector ? vector.getNumElements() : 1),
          calls.getI32(op, isPacked)};
}

/// Ops that only name registers: they may come before the wait for a load.
static bool isRename(Operation *op) {
  return isa<LLVM::ExtractElementOp, LLVM::InsertElementOp,
             LLVM::ExtractValueOp, LLVM::InsertValueOp, LLVM::ShuffleVectorOp,
             LLVM::BitcastOp>(op);
}

/// The first op of each block that uses a value, or what it is renamed to.
static void findUses(Value value, llvm::MapVector<Block *, Operation *> &uses) {
  for (Operation *user : value.getUsers()) {
    if (isRename(user)) {
      findUses(user->getResult(0), uses);
      continue;
    }
    Operation *&first = uses[user->getBlock()];
    if (!first || user->isBeforeInBlock(first))
      first = user;
  }
}

static void lowerLoad(NVVM::Tcgen05LdOp op, EmulatorCalls &calls) {
  TensorRegisters registers(op, calls);
  SmallVector<Value> operands =
      getOperands(op, calls, op.getTmemAddr(), op.getOffset(), op.getShape(),
                  op.getType(), op.getPack());
  operands.push_back(registers.get());
  Value number = calls.call(op, "kvcacheEmulatorTmemLoad", calls.i32, operands);
  if (calls.isSanitized) {
    llvm::MapVector<Block *, Operation *> uses;
    findUses(op.getResult(), uses);
    for (auto &[block, user] : uses)
      calls.call(user, "kvcacheEmulatorTmemUse", Type(), number);
  }
  OpBuilder builder(op);
  op.getResult().replaceAllUsesWith(registers.load(
      builder, op.getType(), offsetof(KVCacheTmemRegisters, values)));
  op.erase();
}

static void lowerStore(NVVM::Tcgen05StOp op, EmulatorCalls &calls) {
  TensorRegisters registers(op, calls);
  OpBuilder builder(op);
  registers.store(builder, op.getVal(), offsetof(KVCacheTmemRegisters, values));
  SmallVector<Value> operands =
      getOperands(op, calls, op.getTmemAddr(), op.getOffset(), op.getShape(),
                  op.getVal().getType(), op.getUnpack());
  operands.push_back(registers.get());
  calls.replaceByCall(op, "kvcacheEmulatorTmemStore", operands);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static FailureOr<bool> rejectTensorForm(Operation *op, const Twine &form) {
  return op->emitOpError(form) << " has no lowering for the emulator";
}

static uint32_t getKind(NVVM::Tcgen05MMAKind kind) {
  switch (kind) {
  case NVVM::Tcgen05MMAKind::F16:
    return KVCacheTmemF16;
  case NVVM::Tcgen05MMAKind::TF32:
    return KVCacheTmemTF32;
  case NVVM::Tcgen05MMAKind::F8F6F4:
    return KVCacheTmemF8F6F4;
  case NVVM::Tcgen05MMAKind::I8:
    return KVCacheTmemI8;
  }
  llvm_unreachable("a kind that the verifier does not know");
}

static FailureOr<bool> lowerProduct(NVVM::Tcgen05MMAOp op,
                                    EmulatorCalls &calls) {
  if (op.getCtaGroup() == NVVM::CTAGroupKind::CTA_2)
    return rejectTensorForm(op, "for a pair of blocks");
  if (op.getAShift())
    return rejectTensorForm(op, "that shifts A");
  TensorSlot slot(op, calls, "tensor_product", sizeof(KVCacheTmemMma));
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value a = op.getMatrixA();
  bool isTensorA = isa<LLVM::LLVMPointerType>(a.getType());
  Value accumulates =
      LLVM::ZExtOp::create(builder, loc, calls.i32, op.getEnableInputD());
  Value scale = calls.getI32(op, 0);
  if (Value given = op.getScaleInputD())
    scale = LLVM::TruncOp::create(builder, loc, calls.i32, given);
  Value disabled = op.getDisableOutputLane();
  if (!disabled)
    disabled =
        LLVM::ZeroOp::create(builder, loc, VectorType::get({4}, calls.i32));
  slot.store(builder, isTensorA ? calls.getI64(op, 0) : a,
             offsetof(KVCacheTmemMma, a));
  slot.store(builder, op.getMatrixB(), offsetof(KVCacheTmemMma, b));
  slot.store(builder, op.getIdesc(), offsetof(KVCacheTmemMma, instruction));
  slot.store(builder, calls.getI32(op, getKind(op.getKind())),
             offsetof(KVCacheTmemMma, kind));
  slot.store(builder, calls.getI32(op, isTensorA),
             offsetof(KVCacheTmemMma, isTensorA));
  slot.store(builder, accumulates, offsetof(KVCacheTmemMma, accumulates));
  slot.store(builder, scale, offsetof(KVCacheTmemMma, scale));
  slot.store(builder, disabled, offsetof(KVCacheTmemMma, disabledLanes));
  calls.replaceByCall(
      op, "kvcacheEmulatorTmemMma",
      {op.getMatrixD(), isTensorA ? a : op.getMatrixD(), slot.get()});
  return true;
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

/// Pairs of blocks need clusters.
template <typename OpT> static bool isOfPair(OpT op) {
  return op.getGroup() == NVVM::CTAGroupKind::CTA_2;
}

/// Ops with a group of blocks: `function` gets `operands`.
template <typename OpT>
static FailureOr<bool> lowerOfGroup(OpT op, EmulatorCalls &calls,
                                    StringRef function, ValueRange operands) {
  if (isOfPair(op))
    return rejectTensorForm(op, "for a pair of blocks");
  calls.replaceByCall(op, function, operands);
  return true;
}

static FailureOr<bool> lowerCommit(NVVM::Tcgen05CommitOp op,
                                   EmulatorCalls &calls) {
  if (op.getMulticastMask())
    return rejectTensorForm(op, "with a multicast mask");
  return lowerOfGroup(op, calls, "kvcacheEmulatorTmemCommit", op.getAddr());
}

FailureOr<bool> kvcache::lowerTensorMemoryOp(Operation *op,
                                             EmulatorCalls &calls) {
  return llvm::TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](NVVM::Tcgen05AllocOp op) {
        return lowerOfGroup(op, calls, "kvcacheEmulatorTmemAlloc",
                            {op.getAddr(), op.getNCols()});
      })
      .Case([&](NVVM::Tcgen05DeallocOp op) {
        return lowerOfGroup(op, calls, "kvcacheEmulatorTmemDealloc",
                            {op.getTaddr(), op.getNCols()});
      })
      .Case([&](NVVM::Tcgen05RelinquishAllocPermitOp op) {
        return lowerOfGroup(op, calls, "kvcacheEmulatorTmemRelinquish", {});
      })
      .Case([&](NVVM::Tcgen05LdOp op) {
        lowerLoad(op, calls);
        return true;
      })
      .Case([&](NVVM::Tcgen05StOp op) {
        lowerStore(op, calls);
        return true;
      })
      .Case([&](NVVM::Tcgen05WaitOp op) {
        bool isStore = op.getKind() == NVVM::Tcgen05WaitKind::STORE;
        calls.replaceByCall(op, "kvcacheEmulatorTmemWait",
                            calls.getI32(op, isStore));
        return true;
      })
      .Case([&](NVVM::Tcgen05FenceOp op) {
        bool isAfter =
            op.getKind() == NVVM::Tcgen05FenceKind::AFTER_THREAD_SYNC;
        calls.replaceByCall(op, "kvcacheEmulatorTmemFence",
                            calls.getI32(op, isAfter));
        return true;
      })
      .Case<LLVM::LoadOp, LLVM::StoreOp>([&](auto op) -> FailureOr<bool> {
        if (op.getAddr().getType().getAddressSpace() !=
            static_cast<unsigned>(NVVM::NVVMMemorySpace::Tensor))
          return false;
        return rejectTensorForm(op, "of tensor memory");
      })
      .Case([&](NVVM::Tcgen05CommitOp op) { return lowerCommit(op, calls); })
      .Case([&](NVVM::Tcgen05MMAOp op) { return lowerProduct(op, calls); })
      .Case([&](NVVM::Tcgen05ShiftOp op) {
        return lowerOfGroup(op, calls, "kvcacheEmulatorTmemShift",
                            op.getTaddr());
      })
      .Default([](Operation *) { return FailureOr<bool>(false); });
}
