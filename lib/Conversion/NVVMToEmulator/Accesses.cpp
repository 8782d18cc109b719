//===- Accesses.cpp - Accesses of memory, announced -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "kvcache/Emulator/ABI.h"

#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

/// What an instruction reads or writes of a value in memory.
static int64_t getStoreBytes(Type type, const DataLayout &layout) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return layout.getTypeSize(type);
  int64_t bits = layout.getTypeSizeInBits(vector.getElementType());
  return llvm::divideCeil(vector.getNumElements() * bits, 8);
}

/// Without a mark, LLVM takes an address to be aligned as the type asks.
static int64_t getAlignment(std::optional<uint64_t> marked, Type type,
                            const DataLayout &layout) {
  if (marked && *marked > 0)
    return *marked;
  if (isa<VectorType>(type))
    return llvm::PowerOf2Ceil(getStoreBytes(type, layout));
  return layout.getTypeABIAlignment(type);
}

/// What a pointer has been computed from.
static Value getBase(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    if (!isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(op))
      break;
    pointer = op->getOperand(0);
  }
  return pointer;
}

/// The frame of a thread, and parameters in memory, are nobody else's.
static bool isPrivate(Value pointer) {
  Value base = getBase(pointer);
  if (base.getDefiningOp<LLVM::AllocaOp>())
    return true;
  auto argument = dyn_cast<BlockArgument>(base);
  auto function =
      argument ? dyn_cast<LLVM::LLVMFuncOp>(argument.getOwner()->getParentOp())
               : LLVM::LLVMFuncOp();
  return function && argument.getOwner()->isEntryBlock() &&
         function.getArgAttr(argument.getArgNumber(),
                             LLVM::LLVMDialect::getByValAttrName());
}

/// Whether NVPTX loads through the read-only path: marked so, or from a
/// parameter that nobody writes.
static bool isInvariant(LLVM::LoadOp load) {
  if (load.getInvariant())
    return true;
  auto argument = dyn_cast<BlockArgument>(getBase(load.getAddr()));
  auto function =
      argument ? dyn_cast<LLVM::LLVMFuncOp>(argument.getOwner()->getParentOp())
               : LLVM::LLVMFuncOp();
  if (!function || !argument.getOwner()->isEntryBlock())
    return false;
  unsigned number = argument.getArgNumber();
  return function.getArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName()) &&
         function.getArgAttr(number, LLVM::LLVMDialect::getReadonlyAttrName());
}

namespace {

class Announcer {
public:
  Announcer(gpu::GPUModuleOp module, EmulatorCalls &calls)
      : layout(module), calls(calls) {}

  void announceLoad(LLVM::LoadOp op) {
    uint32_t flags = KVCacheAccessRead;
    if (op.getOrdering() != LLVM::AtomicOrdering::not_atomic)
      flags |= KVCacheAccessAtomic;
    if (isInvariant(op))
      flags |= KVCacheAccessInvariant;
    announceValue(op, op.getAddr(), op.getType(), op.getAlignment(), flags);
    op.setAlignment(1);
  }

  void announceStore(LLVM::StoreOp op) {
    uint32_t flags = KVCacheAccessWrite;
    if (op.getOrdering() != LLVM::AtomicOrdering::not_atomic)
      flags |= KVCacheAccessAtomic;
    announceValue(op, op.getAddr(), op.getValue().getType(), op.getAlignment(),
                  flags);
    op.setAlignment(1);
  }

  void announceAtomic(Operation *op, Value pointer, Type type) {
    announceValue(op, pointer, type, std::nullopt,
                  KVCacheAccessRead | KVCacheAccessWrite | KVCacheAccessAtomic);
  }

  /// A copy or fill of any number of bytes, by single ones.
  void announceBytes(Operation *op, Value pointer, Value bytes,
                     uint32_t flags) {
    if (isPrivate(pointer))
      return;
    if (bytes.getType() != calls.i64) {
      OpBuilder builder(op);
      bytes = LLVM::ZExtOp::create(builder, op->getLoc(), calls.i64, bytes);
    }
    announce(op, pointer, bytes, 1, flags);
  }

  /// The lanes of a vector whose mask is set: `pointers` is one pointer to all,
  /// or one to each.
  void announceLanes(Operation *op, Value pointers, Value mask, VectorType type,
                     uint64_t alignment, uint32_t flags) {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    int64_t bytes = layout.getTypeSize(type.getElementType());
    for (int64_t lane = 0; lane < type.getNumElements(); ++lane) {
      Value number = calls.getI64(op, lane);
      Value pointer =
          isa<VectorType>(pointers.getType())
              ? LLVM::ExtractElementOp::create(builder, loc, pointers, number)
                    .getResult()
              : LLVM::GEPOp::create(builder, loc, pointers.getType(),
                                    type.getElementType(), pointers, number)
                    .getResult();
      if (isPrivate(pointer))
        return;
      Value isOn = LLVM::ExtractElementOp::create(builder, loc, mask, number);
      Value size = LLVM::SelectOp::create(
          builder, loc, isOn, calls.getI64(op, bytes), calls.getI64(op, 0));
      announce(op, pointer, size, std::min<int64_t>(alignment, bytes), flags);
    }
  }

private:
  void announceValue(Operation *op, Value pointer, Type type,
                     std::optional<uint64_t> alignment, uint32_t flags) {
    if (isPrivate(pointer))
      return;
    announce(op, pointer, calls.getI64(op, getStoreBytes(type, layout)),
             getAlignment(alignment, type, layout), flags);
  }

  void announce(Operation *op, Value pointer, Value bytes, int64_t alignment,
                uint32_t flags) {
    // A thread that spins on an atomic has to let others run.
    if (!calls.isSanitized && !calls.isMetered &&
        !(flags & KVCacheAccessAtomic))
      return;
    calls.call(
        op, "kvcacheEmulatorAccess", Type(),
        {pointer, bytes, calls.getI64(op, alignment), calls.getI32(op, flags)});
  }

  DataLayout layout;
  EmulatorCalls &calls;
};

} // namespace

/// Announces what one op does. Fails for what can't be.
static LogicalResult announceOp(Operation *op, Announcer &announcer) {
  constexpr uint32_t reads = KVCacheAccessRead, writes = KVCacheAccessWrite;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](LLVM::LoadOp op) {
        announcer.announceLoad(op);
        return success();
      })
      .Case([&](LLVM::StoreOp op) {
        announcer.announceStore(op);
        return success();
      })
      .Case([&](LLVM::AtomicRMWOp op) {
        announcer.announceAtomic(op, op.getPtr(), op.getVal().getType());
        return success();
      })
      .Case([&](LLVM::AtomicCmpXchgOp op) {
        announcer.announceAtomic(op, op.getPtr(), op.getVal().getType());
        return success();
      })
      .Case<LLVM::MemcpyOp, LLVM::MemmoveOp>([&](auto op) {
        announcer.announceBytes(op, op.getSrc(), op.getLen(), reads);
        announcer.announceBytes(op, op.getDst(), op.getLen(), writes);
        return success();
      })
      .Case([&](LLVM::MemsetOp op) {
        announcer.announceBytes(op, op.getDst(), op.getLen(), writes);
        return success();
      })
      .Case([&](LLVM::MaskedLoadOp op) {
        announcer.announceLanes(op, op.getData(), op.getMask(),
                                cast<VectorType>(op.getType()),
                                op.getAlignment(), reads);
        return success();
      })
      .Case([&](LLVM::MaskedStoreOp op) {
        announcer.announceLanes(op, op.getData(), op.getMask(),
                                cast<VectorType>(op.getValue().getType()),
                                op.getAlignment(), writes);
        return success();
      })
      .Case([&](LLVM::masked_gather op) {
        announcer.announceLanes(op, op.getPtrs(), op.getMask(),
                                cast<VectorType>(op.getType()),
                                op.getAlignment(), reads);
        return success();
      })
      .Case([&](LLVM::masked_scatter op) {
        announcer.announceLanes(op, op.getPtrs(), op.getMask(),
                                cast<VectorType>(op.getValue().getType()),
                                op.getAlignment(), writes);
        return success();
      })
      .Case<LLVM::MemcpyInlineOp, LLVM::MemsetInlineOp, LLVM::masked_expandload,
            LLVM::masked_compressstore>([](auto op) {
        return op.emitOpError("has no lowering for the emulator");
      })
      .Default(success());
}

LogicalResult kvcache::announceAccesses(gpu::GPUModuleOp module,
                                        EmulatorCalls &calls) {
  Announcer announcer(module, calls);
  SmallVector<Operation *> ops;
  module.walk([&](LLVM::LLVMFuncOp function) {
    function.walk([&](Operation *op) { ops.push_back(op); });
  });
  for (Operation *op : ops) {
    if (failed(announceOp(op, announcer)))
      return failure();
    // The host knows no blocks and clusters.
    llvm::TypeSwitch<Operation *>(op)
        .Case<LLVM::LoadOp, LLVM::StoreOp, LLVM::AtomicRMWOp,
              LLVM::AtomicCmpXchgOp, LLVM::FenceOp>(
            [](auto op) { op.removeSyncscopeAttr(); });
  }
  return success();
}
