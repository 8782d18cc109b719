//===- Warps.cpp - What the lanes of a warp do together -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Warps.h"
#include "Families.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Builds what surrounds the call that takes the place of an op.
class WarpLowering {
public:
  WarpLowering(Operation *op, EmulatorCalls &calls)
      : op(op), calls(calls), builder(op) {}

  Value call(StringRef function, ValueRange operands) {
    return calls.call(op, function, calls.i32, operands);
  }

  Value toI32(Value value) {
    if (value.getType() == calls.i32)
      return value;
    if (isa<IntegerType>(value.getType()))
      return LLVM::ZExtOp::create(builder, op->getLoc(), calls.i32, value);
    return LLVM::BitcastOp::create(builder, op->getLoc(), calls.i32, value);
  }

  /// An i32 as an i1, or as a type of 32 bits.
  Value fromI32(Value value, Type type) {
    if (type == calls.i32)
      return value;
    if (type == calls.i1)
      return LLVM::ICmpOp::create(builder, op->getLoc(),
                                  LLVM::ICmpPredicate::ne, value,
                                  calls.getI32(op, 0));
    return LLVM::BitcastOp::create(builder, op->getLoc(), type, value);
  }

  /// The op's result, a structure of a value and an i1.
  void replaceByPair(Value value, Value isTrue) {
    auto type = cast<LLVM::LLVMStructType>(op->getResult(0).getType());
    Value pair = LLVM::UndefOp::create(builder, op->getLoc(), type);
    pair = LLVM::InsertValueOp::create(builder, op->getLoc(), pair,
                                       fromI32(value, type.getBody()[0]),
                                       ArrayRef<int64_t>{0});
    pair = LLVM::InsertValueOp::create(builder, op->getLoc(), pair,
                                       fromI32(isTrue, type.getBody()[1]),
                                       ArrayRef<int64_t>{1});
    replace(pair);
  }

  void replaceBy(Value value) {
    replace(fromI32(value, op->getResult(0).getType()));
  }

  OpBuilder &getBuilder() { return builder; }

private:
  void replace(Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }

  Operation *op;
  EmulatorCalls &calls;
  OpBuilder builder;
};

} // namespace

static uint32_t getKind(NVVM::ShflKind kind) {
  switch (kind) {
  case NVVM::ShflKind::bfly:
    return KVCacheShuffleBfly;
  case NVVM::ShflKind::up:
    return KVCacheShuffleUp;
  case NVVM::ShflKind::down:
    return KVCacheShuffleDown;
  case NVVM::ShflKind::idx:
    return KVCacheShuffleIdx;
  }
  return KVCacheShuffleIdx;
}

static void lowerShuffle(NVVM::ShflOp op, EmulatorCalls &calls) {
  WarpLowering lowering(op, calls);
  OpBuilder &builder = lowering.getBuilder();
  bool isPair = op.getReturnValueAndIsValid().value_or(false);
  Value slot =
      isPair ? calls.createSlot(op, calls.i32)
             : LLVM::ZeroOp::create(builder, op.getLoc(), calls.pointerType)
                   .getResult();
  Value value = lowering.call("kvcacheEmulatorShuffle",
                              {op.getThreadMask(), lowering.toI32(op.getVal()),
                               op.getOffset(), op.getMaskAndClamp(),
                               calls.getI32(op, getKind(op.getKind())), slot});
  if (isPair)
    return lowering.replaceByPair(
        value, LLVM::LoadOp::create(builder, op.getLoc(), calls.i32, slot));
  lowering.replaceBy(value);
}

static uint32_t getKind(NVVM::VoteSyncKind kind) {
  switch (kind) {
  case NVVM::VoteSyncKind::any:
    return KVCacheVoteAny;
  case NVVM::VoteSyncKind::all:
    return KVCacheVoteAll;
  case NVVM::VoteSyncKind::ballot:
    return KVCacheVoteBallot;
  case NVVM::VoteSyncKind::uni:
    return KVCacheVoteUni;
  }
  return KVCacheVoteBallot;
}

static void lowerVote(NVVM::VoteSyncOp op, EmulatorCalls &calls) {
  WarpLowering lowering(op, calls);
  lowering.replaceBy(lowering.call("kvcacheEmulatorVote",
                                   {op.getMask(), lowering.toI32(op.getPred()),
                                    calls.getI32(op, getKind(op.getKind()))}));
}

static void lowerMatch(NVVM::MatchSyncOp op, EmulatorCalls &calls) {
  WarpLowering lowering(op, calls);
  Value value = op.getVal();
  if (value.getType() != calls.i64)
    value = LLVM::ZExtOp::create(lowering.getBuilder(), op.getLoc(), calls.i64,
                                 value);
  if (op.getKind() == NVVM::MatchSyncKind::any)
    return lowering.replaceBy(
        lowering.call("kvcacheEmulatorMatchAny", {op.getThreadMask(), value}));
  Value lanes =
      lowering.call("kvcacheEmulatorMatchAll", {op.getThreadMask(), value});
  // No mask without the lane itself in it.
  lowering.replaceByPair(lanes, lanes);
}

/// The kind of a reduction of integers; none for those of floats.
static std::optional<uint32_t> getIntegerKind(NVVM::ReduxKind kind) {
  switch (kind) {
  case NVVM::ReduxKind::ADD:
    return KVCacheReduceAdd;
  case NVVM::ReduxKind::AND:
    return KVCacheReduceAnd;
  case NVVM::ReduxKind::OR:
    return KVCacheReduceOr;
  case NVVM::ReduxKind::XOR:
    return KVCacheReduceXor;
  case NVVM::ReduxKind::MIN:
    return KVCacheReduceMin;
  case NVVM::ReduxKind::MAX:
    return KVCacheReduceMax;
  case NVVM::ReduxKind::UMIN:
    return KVCacheReduceUMin;
  case NVVM::ReduxKind::UMAX:
    return KVCacheReduceUMax;
  default:
    return std::nullopt;
  }
}

static void lowerReduce(NVVM::ReduxOp op, EmulatorCalls &calls) {
  Value mask = op.getMaskAndClamp();
  if (std::optional<uint32_t> kind = getIntegerKind(op.getKind()))
    return calls.replaceByCall(op, "kvcacheEmulatorReduce",
                               {mask, op.getVal(), calls.getI32(op, *kind)});
  calls.replaceByCall(op, "kvcacheEmulatorReduceF32",
                      {mask, op.getVal(),
                       calls.getI32(op, op.getKind() == NVVM::ReduxKind::FMAX),
                       calls.getI32(op, op.getAbs()),
                       calls.getI32(op, op.getNan())});
}

static void lowerElect(NVVM::ElectSyncOp op, EmulatorCalls &calls) {
  constexpr int64_t all = 0xffffffff;
  WarpLowering lowering(op, calls);
  Value mask = op.getMembermask() ? op.getMembermask() : calls.getI32(op, all);
  lowering.replaceBy(lowering.call("kvcacheEmulatorElect", mask));
}

FailureOr<bool> kvcache::lowerWarpOp(Operation *op, EmulatorCalls &calls) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](NVVM::SyncWarpOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorSyncWarp", op.getMask());
        return true;
      })
      .Case([&](NVVM::ShflOp op) { return lowerShuffle(op, calls), true; })
      .Case([&](NVVM::VoteSyncOp op) { return lowerVote(op, calls), true; })
      .Case([&](NVVM::MatchSyncOp op) { return lowerMatch(op, calls), true; })
      .Case([&](NVVM::ReduxOp op) { return lowerReduce(op, calls), true; })
      .Case([&](NVVM::ElectSyncOp op) { return lowerElect(op, calls), true; })
      .Default(false);
}
