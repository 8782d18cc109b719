//===- Accesses.cpp - Accesses of memory, announced -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "kvcache/Emulator/ABI.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

uint32_t kvcache::getOrderFlags(LLVM::AtomicOrdering ordering,
                                std::optional<StringRef> scope) {
  uint32_t flags = 0;
  bool isBoth = ordering == LLVM::AtomicOrdering::acq_rel ||
                ordering == LLVM::AtomicOrdering::seq_cst;
  if (isBoth || ordering == LLVM::AtomicOrdering::acquire)
    flags |= KVCacheAccessAcquire;
  if (isBoth || ordering == LLVM::AtomicOrdering::release)
    flags |= KVCacheAccessRelease;
  if (scope == "block" || scope == "singlethread")
    return flags;
  return flags |
         (scope == "cluster" ? KVCacheAccessCluster : KVCacheAccessDevice);
}

/// The flags of a load or a store. PTX ISA, "ld.volatile": it is a relaxed one
/// of the whole system.
template <typename OpT> static uint32_t getAtomicFlags(OpT op) {
  if (op.getOrdering() != LLVM::AtomicOrdering::not_atomic)
    return KVCacheAccessAtomic |
           kvcache::getOrderFlags(op.getOrdering(), op.getSyncscope());
  return op.getVolatile_() ? KVCacheAccessVolatile | KVCacheAccessDevice : 0;
}

int64_t kvcache::getStoreBytes(Type type, const DataLayout &layout) {
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

/// The argument of a function that is a structure in memory of its own.
static TypeAttr getByValue(Value base) {
  auto argument = dyn_cast<BlockArgument>(base);
  auto function =
      argument ? dyn_cast<LLVM::LLVMFuncOp>(argument.getOwner()->getParentOp())
               : LLVM::LLVMFuncOp();
  if (!function || !argument.getOwner()->isEntryBlock())
    return {};
  return function.getArgAttrOfType<TypeAttr>(
      argument.getArgNumber(), LLVM::LLVMDialect::getByValAttrName());
}

bool kvcache::isPrivate(Value base) {
  return base.getDefiningOp<LLVM::AllocaOp>() || getByValue(base);
}

/// Whether an op may write through a pointer, and no call announces it.
static bool isUnknownWrite(Operation *op) {
  if (!isa_and_present<LLVM::LLVMDialect>(op->getDialect()) ||
      isa<LLVM::LoadOp, LLVM::StoreOp, LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp,
          LLVM::MemcpyOp, LLVM::MemmoveOp, LLVM::MemsetOp, LLVM::MaskedLoadOp,
          LLVM::MaskedStoreOp, LLVM::masked_gather, LLVM::masked_scatter,
          LLVM::CallOp, LLVM::LifetimeStartOp, LLVM::LifetimeEndOp,
          LLVM::Prefetch>(op) ||
      op->hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(op))
    return false;
  return llvm::any_of(op->getOperandTypes(),
                      llvm::IsaPred<LLVM::LLVMPointerType>);
}

namespace {

class Announcer {
public:
  Announcer(gpu::GPUModuleOp module, MatrixPrograms &programs,
            EmulatorCalls &calls)
      : layout(module), calls(calls) {
    if (!calls.isSanitized)
      return;
    hasUnknownWrites = module
                           .walk([](Operation *op) {
                             return isUnknownWrite(op) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
                           })
                           .wasInterrupted();
    tracked = trackPoison(module, programs, calls);
  }

  void announceLoad(LLVM::LoadOp op) {
    uint32_t flags = KVCacheAccessRead | getAtomicFlags(op);
    if (isInvariant(op))
      flags |= KVCacheAccessInvariant;
    if (tracked.loads.contains(op))
      flags |= KVCacheAccessPoisons;
    announceAligned(op, op.getAddr(), op.getType(), flags);
  }

  void announceStore(LLVM::StoreOp op) {
    uint32_t flags = KVCacheAccessWrite | getAtomicFlags(op);
    announceAligned(op, op.getAddr(), op.getValue().getType(), flags);
  }

  void announceAtomic(Operation *op, Value pointer, Type type,
                      uint32_t orderFlags) {
    announceValue(op, pointer, type, std::nullopt,
                  KVCacheAccessRead | KVCacheAccessWrite | KVCacheAccessAtomic |
                      orderFlags);
  }

  /// A fill of any number of bytes, by single ones.
  void announceBytes(Operation *op, Value pointer, Value bytes,
                     uint32_t flags) {
    announce(op, pointer, toI64(op, bytes), 1, flags);
  }

  /// A copy, which may copy uninitialized bytes.
  void announceCopy(Operation *op, Value to, Value from, Value bytes) {
    announceBytes(op, from, bytes, KVCacheAccessRead | KVCacheAccessCopied);
    announceBytes(op, to, bytes, KVCacheAccessWrite | KVCacheAccessCopied);
    if (calls.isSanitized)
      calls.call(op, "kvcacheEmulatorCopyVariable", Type(),
                 {to, from, toI64(op, bytes)});
  }

  /// Announces the results that the math library writes through pointers.
  void announceResults(LLVM::CallOp op) {
    if (!op.getCallee() || !op.getCallee()->starts_with("__nv_"))
      return;
    for (Value operand : op.getCalleeOperands())
      if (isa<LLVM::LLVMPointerType>(operand.getType()))
        announceValue(op, operand, op.getCalleeOperands().front().getType(),
                      std::nullopt, KVCacheAccessWrite);
  }

  /// A variable or a parameter whose accesses are not all known.
  void declare(Value base, Operation *before) {
    Operation *variable = base.getDefiningOp();
    if (!calls.isSanitized || tracked.followed.contains(variable))
      return;
    bool isWritten = !variable || hasUnknownWrites;
    calls.call(before, "kvcacheEmulatorDeclareVariable", Type(),
               {base, getSize(base, before), calls.getI32(before, isWritten)});
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
      Value isOn = LLVM::ExtractElementOp::create(builder, loc, mask, number);
      Value size = LLVM::SelectOp::create(
          builder, loc, isOn, calls.getI64(op, bytes), calls.getI64(op, 0));
      announce(op, pointer, size, std::min<int64_t>(alignment, bytes), flags);
    }
  }

private:
  /// A load or a store. Where the address isn't aligned, that is an error, or
  /// is not checked. An atomic one must be aligned for a host as well.
  template <typename OpT>
  void announceAligned(OpT op, Value pointer, Type type, uint32_t flags) {
    std::optional<uint64_t> alignment = op.getAlignment();
    if (flags & KVCacheAccessAtomic)
      alignment = llvm::PowerOf2Ceil(getStoreBytes(type, layout));
    announceValue(op, pointer, type, alignment, flags);
    op.setAlignment(flags & KVCacheAccessAtomic ? *alignment : 1);
    // A host would write it without the order that it gives other stores.
    op.setNontemporal(false);
  }

  void announceValue(Operation *op, Value pointer, Type type,
                     std::optional<uint64_t> alignment, uint32_t flags) {
    int64_t bytes = getStoreBytes(type, layout);
    if (!isInBounds(pointer, bytes) || isDeclared(getBasePointer(pointer)))
      announce(op, pointer, calls.getI64(op, bytes),
               getAlignment(alignment, type, layout), flags);
  }

  Value toI64(Operation *op, Value number) {
    OpBuilder builder(op);
    unsigned width = number.getType().getIntOrFloatBitWidth();
    if (width < 64)
      return LLVM::ZExtOp::create(builder, op->getLoc(), calls.i64, number);
    if (width > 64)
      return LLVM::TruncOp::create(builder, op->getLoc(), calls.i64, number);
    return number;
  }

  /// The bytes of what is private, if that is known, or -1.
  int64_t getKnownSize(Value base) {
    if (TypeAttr type = getByValue(base))
      return layout.getTypeSize(type.getValue());
    auto variable = base.getDefiningOp<LLVM::AllocaOp>();
    APInt count;
    if (!matchPattern(variable.getArraySize(), m_ConstantInt(&count)))
      return -1;
    return count.getZExtValue() * layout.getTypeSize(variable.getElemType());
  }

  Value getSize(Value base, Operation *op) {
    int64_t bytes = getKnownSize(base);
    if (bytes >= 0)
      return calls.getI64(op, bytes);
    auto variable = base.getDefiningOp<LLVM::AllocaOp>();
    OpBuilder builder(op);
    return LLVM::MulOp::create(
        builder, op->getLoc(), toI64(op, variable.getArraySize()),
        calls.getI64(op, layout.getTypeSize(variable.getElemType())));
  }

  /// Whether an access is known to be in a variable, however it goes.
  bool isInBounds(Value pointer, int64_t bytes) {
    Value base = getBasePointer(pointer);
    return isPrivate(base) && pointer == base && bytes <= getKnownSize(base);
  }

  bool isDeclared(Value base) {
    return calls.isSanitized &&
           !tracked.followed.contains(base.getDefiningOp());
  }

  void announce(Operation *op, Value pointer, Value bytes, int64_t alignment,
                uint32_t flags) {
    if (Value base = getBasePointer(pointer); isPrivate(base)) {
      if (isDeclared(base))
        flags |= KVCacheAccessDeclared;
      if (calls.isSanitized)
        calls.call(
            op, "kvcacheEmulatorAccessVariable", Type(),
            {pointer, bytes, base, getSize(base, op), calls.getI32(op, flags)});
      return;
    }
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
  TrackedPoison tracked;
  bool hasUnknownWrites = false;
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
        announcer.announceAtomic(
            op, op.getPtr(), op.getVal().getType(),
            getOrderFlags(op.getOrdering(), op.getSyncscope()));
        return success();
      })
      .Case([&](LLVM::AtomicCmpXchgOp op) {
        announcer.announceAtomic(
            op, op.getPtr(), op.getVal().getType(),
            getOrderFlags(op.getSuccessOrdering(), op.getSyncscope()));
        return success();
      })
      .Case<LLVM::MemcpyOp, LLVM::MemmoveOp>([&](auto op) {
        announcer.announceCopy(op, op.getDst(), op.getSrc(), op.getLen());
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
      .Case([&](LLVM::CallOp op) {
        announcer.announceResults(op);
        return success();
      })
      .Case<LLVM::LifetimeStartOp, LLVM::LifetimeEndOp>([&](auto op) {
        if (auto variable =
                op.getPtr().template getDefiningOp<LLVM::AllocaOp>())
          announcer.declare(variable, op);
        return success();
      })
      .Case<LLVM::MemcpyInlineOp, LLVM::MemsetInlineOp, LLVM::masked_expandload,
            LLVM::masked_compressstore>([](auto op) {
        return op.emitOpError("has no lowering for the emulator");
      })
      .Default(success());
}

static void declareParameters(LLVM::LLVMFuncOp function, Announcer &announcer) {
  if (function.isExternal())
    return;
  for (BlockArgument argument : function.getArguments())
    if (getByValue(argument))
      announcer.declare(argument, &function.front().front());
}

LogicalResult kvcache::announceAccesses(gpu::GPUModuleOp module,
                                        MatrixPrograms &programs,
                                        EmulatorCalls &calls) {
  SmallVector<Operation *> ops;
  module.walk([&](LLVM::LLVMFuncOp function) {
    function.walk([&](Operation *op) { ops.push_back(op); });
  });
  // Shadows are in memory that needs no checks.
  Announcer announcer(module, programs, calls);
  for (Operation *op : ops) {
    if (auto variable = dyn_cast<LLVM::AllocaOp>(op))
      announcer.declare(variable, op->getNextNode());
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
      declareParameters(function, announcer);
    if (failed(announceOp(op, announcer)))
      return failure();
    // The host has no blocks and clusters.
    llvm::TypeSwitch<Operation *>(op)
        .Case<LLVM::LoadOp, LLVM::StoreOp, LLVM::AtomicRMWOp,
              LLVM::AtomicCmpXchgOp>([](auto op) { op.removeSyncscopeAttr(); });
  }
  return success();
}
