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

/// The runtime counts enumerations of the dialect as the dialect does.
template <typename Enum>
static constexpr bool isEqual(Enum dialectValue, uint32_t runtimeValue) {
  return static_cast<uint32_t>(dialectValue) == runtimeValue;
}

using LdStShape = NVVM::Tcgen05LdStShape;
static_assert(isEqual(LdStShape::SHAPE_16X64B, KVCacheTmem16x64b) &&
              isEqual(LdStShape::SHAPE_16X128B, KVCacheTmem16x128b) &&
              isEqual(LdStShape::SHAPE_16X256B, KVCacheTmem16x256b) &&
              isEqual(LdStShape::SHAPE_32X32B, KVCacheTmem32x32b) &&
              isEqual(LdStShape::SHAPE_16X32BX2, KVCacheTmem16x32bx2));

/// The operands that a load and a store have in common.
static SmallVector<Value> getOperands(Operation *op, EmulatorCalls &calls,
                                      Value address, Value offset,
                                      LdStShape shape, Type type,
                                      bool isPacked) {
  auto vector = dyn_cast<VectorType>(type);
  if (!offset)
    offset = calls.getI64(op, 0);
  return {address, offset, calls.getI32(op, static_cast<uint32_t>(shape)),
          calls.getI32(op, vector ? vector.getNumElements() : 1),
          calls.getI32(op, isPacked)};
}

/// Ops that only name registers: they may precede the wait for a load.
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

using Kind = NVVM::Tcgen05MMAKind;
static_assert(isEqual(Kind::F16, KVCacheTmemF16) &&
              isEqual(Kind::TF32, KVCacheTmemTF32) &&
              isEqual(Kind::F8F6F4, KVCacheTmemF8F6F4) &&
              isEqual(Kind::I8, KVCacheTmemI8));

using ScaledKind = NVVM::MMABlockScaleKind;
static constexpr uint32_t kFirstScaledKind = KVCacheTmemMXF8F6F4;
static_assert(isEqual(ScaledKind::MXF8F6F4, 0) &&
              isEqual(ScaledKind::MXF4, KVCacheTmemMXF4 - kFirstScaledKind) &&
              isEqual(ScaledKind::MXF4NVF4,
                      KVCacheTmemMXF4NVF4 - kFirstScaledKind));

namespace {
/// Fills the operands of a product, and calls the runtime.
class ProductCall {
public:
  ProductCall(Operation *op, EmulatorCalls &calls)
      : op(op), calls(calls), builder(op),
        slot(op, calls, "tensor_product", sizeof(KVCacheTmemMma)) {}

  void set(size_t offset, Value value) { slot.store(builder, value, offset); }
  void set(size_t offset, uint32_t value) {
    set(offset, calls.getI32(op, value));
  }
  void setAddress(size_t offset, Value pointer) {
    set(offset,
        LLVM::PtrToIntOp::create(builder, op->getLoc(), calls.i32, pointer));
  }

  template <typename OpT> void setCommon(OpT product, uint32_t kind) {
    Value a = product.getMatrixA();
    bool isTensorA = isa<LLVM::LLVMPointerType>(a.getType());
    set(offsetof(KVCacheTmemMma, a), isTensorA ? calls.getI64(op, 0) : a);
    set(offsetof(KVCacheTmemMma, b), product.getMatrixB());
    set(offsetof(KVCacheTmemMma, instruction), product.getIdesc());
    set(offsetof(KVCacheTmemMma, kind), kind);
    set(offsetof(KVCacheTmemMma, isTensorA), isTensorA);
    set(offsetof(KVCacheTmemMma, isOfPair),
        product.getCtaGroup() == NVVM::CTAGroupKind::CTA_2);
    set(offsetof(KVCacheTmemMma, accumulates),
        LLVM::ZExtOp::create(builder, op->getLoc(), calls.i32,
                             product.getEnableInputD()));
  }

  template <typename OpT> void call(OpT product) {
    Value a = product.getMatrixA(), d = product.getMatrixD();
    bool isTensorA = isa<LLVM::LLVMPointerType>(a.getType());
    calls.replaceByCall(op, "kvcacheEmulatorTmemMma",
                        {d, isTensorA ? a : d, slot.get()});
  }

  OpBuilder &getBuilder() { return builder; }

private:
  Operation *op;
  EmulatorCalls &calls;
  OpBuilder builder;
  TensorSlot slot;
};
} // namespace

static FailureOr<bool> lowerProduct(NVVM::Tcgen05MMAOp op,
                                    EmulatorCalls &calls) {
  if (op.getAShift())
    return rejectTensorForm(op, "that shifts A");
  Value disabled = op.getDisableOutputLane();
  if (disabled && op.getCtaGroup() == NVVM::CTAGroupKind::CTA_2)
    return rejectTensorForm(op, "with a mask of lanes for a pair of blocks");
  ProductCall call(op, calls);
  OpBuilder &builder = call.getBuilder();
  Location loc = op.getLoc();
  if (!disabled)
    disabled =
        LLVM::ZeroOp::create(builder, loc, VectorType::get({4}, calls.i32));
  Value scale = calls.getI32(op, 0);
  if (Value given = op.getScaleInputD())
    scale = LLVM::TruncOp::create(builder, loc, calls.i32, given);
  call.setCommon(op, static_cast<uint32_t>(op.getKind()));
  call.set(offsetof(KVCacheTmemMma, scale), scale);
  call.set(offsetof(KVCacheTmemMma, disabledLanes), disabled);
  for (size_t offset :
       {offsetof(KVCacheTmemMma, blockSize), offsetof(KVCacheTmemMma, scaleA),
        offsetof(KVCacheTmemMma, scaleB)})
    call.set(offset, 0u);
  call.call(op);
  return true;
}

/// The elements of K with a scale of their own. The verifier checks which kinds
/// have which (PTX ISA, "Valid combinations of scale_vectorsize with types and
/// MMA-Kind").
static uint32_t getBlockSize(NVVM::Tcgen05MMABlockScaleOp op) {
  constexpr uint32_t small = 16, large = 32;
  return op.getBlockScale() == NVVM::Tcgen05MMABlockScale::BLOCK16 ? small
                                                                   : large;
}

static void lowerScaledProduct(NVVM::Tcgen05MMABlockScaleOp op,
                               EmulatorCalls &calls) {
  ProductCall call(op, calls);
  call.setCommon(op, kFirstScaledKind + static_cast<uint32_t>(op.getKind()));
  call.set(offsetof(KVCacheTmemMma, scale), 0u);
  call.set(offsetof(KVCacheTmemMma, disabledLanes),
           LLVM::ZeroOp::create(call.getBuilder(), op.getLoc(),
                                VectorType::get({4}, calls.i32)));
  call.set(offsetof(KVCacheTmemMma, blockSize), getBlockSize(op));
  call.setAddress(offsetof(KVCacheTmemMma, scaleA), op.getScaleA());
  call.setAddress(offsetof(KVCacheTmemMma, scaleB), op.getScaleB());
  call.call(op);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The shape with what its rows become; the verifier checks that both fit.
static std::optional<uint32_t> getCopyShape(NVVM::Tcgen05CpOp op) {
  using Multicast = NVVM::Tcgen05CpMulticast;
  switch (op.getShape()) {
  case NVVM::Tcgen05CpShape::SHAPE_128x256b:
    return KVCacheTmemCopy128x256b;
  case NVVM::Tcgen05CpShape::SHAPE_4x256b:
    return KVCacheTmemCopy4x256b;
  case NVVM::Tcgen05CpShape::SHAPE_128x128b:
    return KVCacheTmemCopy128x128b;
  case NVVM::Tcgen05CpShape::SHAPE_64x128b:
    return op.getMulticast() == Multicast::WARPX2_02_13
               ? KVCacheTmemCopy64x128bWarps02And13
               : KVCacheTmemCopy64x128bWarps01And23;
  case NVVM::Tcgen05CpShape::SHAPE_32x128b:
    return KVCacheTmemCopy32x128b;
  }
  return std::nullopt;
}

/// Where the bits of decompressed elements are in their bytes is in a figure of
/// the PTX ISA only.
static FailureOr<bool> lowerCopy(NVVM::Tcgen05CpOp op, EmulatorCalls &calls) {
  if (op.getSrcFormat())
    return rejectTensorForm(
        op, "from " + stringifyTcgen05CpSrcFormat(*op.getSrcFormat()));
  std::optional<uint32_t> shape = getCopyShape(op);
  if (!shape)
    return rejectTensorForm(op, "of this shape");
  bool isOfPair = op.getGroup() == NVVM::CTAGroupKind::CTA_2;
  calls.replaceByCall(op, "kvcacheEmulatorTmemCopy",
                      {op.getTaddr(), op.getSmemDesc(),
                       calls.getI32(op, *shape), calls.getI32(op, isOfPair)});
  return true;
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

template <typename OpT> static Value isOfPair(OpT op, EmulatorCalls &calls) {
  return calls.getI32(op, op.getGroup() == NVVM::CTAGroupKind::CTA_2);
}

/// The blocks whose barriers the commit arrives at: -1 for the one of the given
/// barrier.
static Value getMask(NVVM::Tcgen05CommitOp op, EmulatorCalls &calls) {
  OpBuilder builder(op);
  Value mask = op.getMulticastMask();
  if (!mask)
    return calls.getI32(op, -1);
  return LLVM::ZExtOp::create(builder, op.getLoc(), calls.i32, mask);
}

FailureOr<bool> kvcache::lowerTensorMemoryOp(Operation *op,
                                             EmulatorCalls &calls) {
  return llvm::TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](NVVM::Tcgen05AllocOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorTmemAlloc",
                            {op.getAddr(), op.getNCols(), isOfPair(op, calls)});
        return true;
      })
      .Case([&](NVVM::Tcgen05DeallocOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorTmemDealloc",
                            {op.getTaddr(), op.getNCols()});
        return true;
      })
      .Case([&](NVVM::Tcgen05RelinquishAllocPermitOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorTmemRelinquish", {});
        return true;
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
      .Case([&](NVVM::Tcgen05CommitOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorTmemCommit",
                            {op.getAddr(), getMask(op, calls)});
        return true;
      })
      .Case([&](NVVM::Tcgen05MMAOp op) { return lowerProduct(op, calls); })
      .Case([&](NVVM::Tcgen05MMABlockScaleOp op) {
        lowerScaledProduct(op, calls);
        return true;
      })
      .Case([&](NVVM::Tcgen05CpOp op) { return lowerCopy(op, calls); })
      .Case([&](NVVM::Tcgen05ShiftOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorTmemShift",
                            {op.getTaddr(), isOfPair(op, calls)});
        return true;
      })
      .Default([](Operation *) { return FailureOr<bool>(false); });
}
