//===- PoisonedValues.cpp - Follow values that nobody has written ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile that is read in vectors, or by ldmatrix, may end in rows that nobody
// has written and whose values the kernel discards. So a load of such bytes is
// no error: it gives a poisoned value, and the error is where that is used.
//
// Whether a value is discarded depends on what lengths and masks are when the
// kernel runs. Therefore each value that may be poisoned gets a shadow, which
// is computed beside it: its poisoned bits, and the origin of the poison. A
// flow of data leaves out the values that never are, such as all arithmetic on
// indices. Shadows go with values through the arguments of blocks and through
// variables of the thread; through shared memory they go with the bytes
// (Sanitizer), and from lane to lane with the instructions of a warp.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Matrices.h"
#include "Poison.h"
#include "kvcache/Emulator/Matrices.h"
#include "kvcache/Emulator/Poison.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Adds the shadows of one function's values.
class PoisonTracker {
public:
  PoisonTracker(LLVM::LLVMFuncOp function, EmulatorCalls &calls,
                llvm::DenseSet<Operation *> &loads)
      : function(function), calls(calls), loads(loads), maybe(function),
        layout(DataLayout::closest(function)) {}

  void run();

private:
  /// The shadow of a variable: its bytes, and one origin for all.
  struct VariableShadow {
    Value bytes, origin;
  };

  void addArguments(Block &block);
  void track(Operation *op);
  void trackLoad(LLVM::LoadOp op);
  void trackStore(LLVM::StoreOp op);
  void trackBranch(Operation *op);
  void trackMatrixLoad(NVVM::LdMatrixOp op);
  void trackMma(Operation *op);
  void trackExchange(Operation *op);
  void propagate(Operation *op);

  Shadow get(Value value) const {
    return checked.contains(value) ? Shadow() : shadows.lookup(value);
  }
  Shadow getAll(ShadowBuilder &b, ValueRange values) const;
  void use(Operation *op, Value value, uint32_t kind);
  void useOthers(Operation *op, Value except, uint32_t kind);

  Value getField(ShadowBuilder &b, size_t offset);
  void storeField(ShadowBuilder &b, Value value, size_t offset) {
    LLVM::StoreOp::create(b.builder, b.loc, value, getField(b, offset));
  }
  Shadow loadPoison(ShadowBuilder &b, Type type);
  void storeRegisters(ShadowBuilder &b, MatrixRegisters &registers,
                      ValueRange values, size_t count, size_t offset);
  VariableShadow &getVariableShadow(LLVM::AllocaOp variable);
  Value getShadowAddress(ShadowBuilder &b, Value address,
                         LLVM::AllocaOp variable);
  Value getStoreSlot(Type type);

  LLVM::LLVMFuncOp function;
  EmulatorCalls &calls;
  llvm::DenseSet<Operation *> &loads;
  MaybePoisoned maybe;
  DataLayout layout;
  llvm::DenseMap<Value, Shadow> shadows;
  /// Values that were used before in the block: they are not poisoned behind.
  llvm::DenseSet<Value> checked;
  llvm::DenseMap<Operation *, VariableShadow> variables;
  llvm::DenseMap<Type, Value> storeSlots;
  /// The arguments of each block that have shadows, which follow those that
  /// the block had.
  llvm::DenseMap<Block *, SmallVector<unsigned>> arguments;
};

} // namespace

/// Builds shadows after an op, with its location.
static ShadowBuilder behind(Operation *op) {
  ShadowBuilder b(op);
  b.builder.setInsertionPointAfter(op);
  return b;
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

void PoisonTracker::use(Operation *op, Value value, uint32_t kind) {
  Shadow shadow = get(value);
  if (!shadow)
    return;
  ShadowBuilder b(op);
  calls.call(op, "kvcacheEmulatorUse", Type(),
             {b.getOriginIfAny(shadow), calls.getI32(op, kind)});
  checked.insert(value);
}

void PoisonTracker::useOthers(Operation *op, Value except, uint32_t kind) {
  for (Value operand : op->getOperands())
    if (operand != except)
      use(op, operand,
          isa<LLVM::LLVMPointerType>(operand.getType())
              ? uint32_t{KVCacheUseAddress}
              : kind);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value PoisonTracker::getField(ShadowBuilder &b, size_t offset) {
  return b.create<LLVM::GEPOp>(
      calls.pointerType, calls.i8, function.getArgument(0),
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

/// Whether a value is in memory just the bytes of its shadow, which are few.
static bool hasPlainBytes(Type type, const DataLayout &layout) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector && !isa<IntegerType>(type))
    return false;
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  return width >= 8 && llvm::isPowerOf2_32(width) &&
         layout.getTypeSize(type) <= KVCachePoisonBytes;
}

/// The shadow of what the last access has read.
Shadow PoisonTracker::loadPoison(ShadowBuilder &b, Type type) {
  constexpr unsigned unaligned = 1;
  Value origin = b.create<LLVM::LoadOp>(
      calls.i32, getField(b, offsetof(KVCacheThread, origin)));
  if (!hasPlainBytes(type, layout))
    return {b.fill(type, b.isNotZero(origin)), origin};
  Value bytes = b.create<LLVM::LoadOp>(
      calls.pointerType, getField(b, offsetof(KVCacheThread, poison)));
  return {b.create<LLVM::LoadOp>(type, bytes, unaligned), origin};
}

PoisonTracker::VariableShadow &
PoisonTracker::getVariableShadow(LLVM::AllocaOp variable) {
  VariableShadow &shadow = variables[variable];
  if (shadow.bytes)
    return shadow;
  constexpr unsigned alignment = 16;
  APInt count;
  matchPattern(variable.getArraySize(), m_ConstantInt(&count));
  uint64_t bytes =
      count.getZExtValue() * layout.getTypeSize(variable.getElemType());
  ShadowBuilder b = behind(variable);
  auto constant = [&](uint64_t value) {
    return b.create<LLVM::ConstantOp>(calls.i64, static_cast<int64_t>(value));
  };
  shadow.bytes = b.create<LLVM::AllocaOp>(calls.pointerType, calls.i8,
                                          constant(bytes), alignment);
  shadow.origin = b.create<LLVM::AllocaOp>(calls.pointerType, calls.i32,
                                           constant(1), alignment);
  LLVM::MemsetOp::create(b.builder, b.loc, shadow.bytes, b.zero(calls.i8),
                         constant(bytes), /*isVolatile=*/false);
  LLVM::StoreOp::create(b.builder, b.loc, b.zero(calls.i32), shadow.origin);
  return shadow;
}

Value PoisonTracker::getShadowAddress(ShadowBuilder &b, Value address,
                                      LLVM::AllocaOp variable) {
  Value offset = b.create<LLVM::SubOp>(
      b.create<LLVM::PtrToIntOp>(calls.i64, address),
      b.create<LLVM::PtrToIntOp>(calls.i64, variable.getResult()));
  return b.create<LLVM::GEPOp>(calls.pointerType, calls.i8,
                               getVariableShadow(variable).bytes, offset);
}

void PoisonTracker::trackLoad(LLVM::LoadOp op) {
  use(op, op.getAddr(), KVCacheUseAddress);
  if (!maybe.contains(op.getResult()))
    return;
  ShadowBuilder b = behind(op);
  Type type = ShadowBuilder::getType(op.getType());
  if (LLVM::AllocaOp variable = maybe.findVariable(op.getAddr())) {
    constexpr unsigned unaligned = 1;
    VariableShadow &shadow = getVariableShadow(variable);
    Value address = getShadowAddress(b, op.getAddr(), variable);
    shadows[op.getResult()] = {
        b.create<LLVM::LoadOp>(type, address, unaligned),
        b.create<LLVM::LoadOp>(calls.i32, shadow.origin)};
    return;
  }
  loads.insert(op);
  shadows[op.getResult()] = loadPoison(b, type);
}

/// Memory for the shadow of a value of a type, where functions look at it.
Value PoisonTracker::getStoreSlot(Type type) {
  Value &slot = storeSlots[type];
  if (!slot)
    slot = calls.createSlot(&function.front().front(), type);
  return slot;
}

void PoisonTracker::trackStore(LLVM::StoreOp op) {
  use(op, op.getAddr(), KVCacheUseAddress);
  Shadow shadow = get(op.getValue());
  ShadowBuilder b = behind(op);
  if (LLVM::AllocaOp variable = maybe.findVariable(op.getAddr())) {
    if (!maybe.isInVariable(variable))
      return;
    constexpr unsigned unaligned = 1;
    VariableShadow &stored = getVariableShadow(variable);
    Value bits = shadow
                     ? shadow.bits
                     : b.zero(ShadowBuilder::getType(op.getValue().getType()));
    LLVM::StoreOp::create(b.builder, b.loc, bits,
                          getShadowAddress(b, op.getAddr(), variable),
                          unaligned);
    if (!shadow)
      return;
    Value old = b.create<LLVM::LoadOp>(calls.i32, stored.origin);
    Value origin = b.create<LLVM::SelectOp>(b.any(bits), shadow.origin, old);
    LLVM::StoreOp::create(b.builder, b.loc, origin, stored.origin);
    return;
  }
  if (!shadow)
    return;
  Value slot = getStoreSlot(shadow.bits.getType());
  constexpr unsigned unaligned = 1;
  LLVM::StoreOp::create(b.builder, b.loc, shadow.bits, slot, unaligned);
  Value bytes = b.create<LLVM::ConstantOp>(
      calls.i64,
      static_cast<int64_t>(layout.getTypeSize(shadow.bits.getType())));
  calls.call(b.builder, op, "kvcacheEmulatorStorePoison", Type(),
             {op.getAddr(), bytes, slot, b.getOriginIfAny(shadow)});
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void PoisonTracker::addArguments(Block &block) {
  SmallVector<unsigned> &poisoned = arguments[&block];
  for (BlockArgument argument : block.getArguments())
    if (!block.isEntryBlock() && maybe.contains(argument))
      poisoned.push_back(argument.getArgNumber());
  for (unsigned number : poisoned) {
    BlockArgument argument = block.getArgument(number);
    Value bits = block.addArgument(ShadowBuilder::getType(argument.getType()),
                                   argument.getLoc());
    shadows[argument] = {bits, block.addArgument(calls.i32, argument.getLoc())};
  }
}

void PoisonTracker::trackBranch(Operation *op) {
  auto branch = cast<BranchOpInterface>(op);
  llvm::DenseSet<Value> forwarded;
  ShadowBuilder b(op);
  for (auto [index, successor] : llvm::enumerate(op->getSuccessors())) {
    for (Value operand :
         branch.getSuccessorOperands(index).getForwardedOperands())
      forwarded.insert(operand);
    for (unsigned number : arguments[successor]) {
      Value operand = branch.getSuccessorOperands(index)[number];
      Shadow shadow = operand ? get(operand) : Shadow();
      Type type =
          ShadowBuilder::getType(successor->getArgument(number).getType());
      branch.getSuccessorOperands(index).append(
          {shadow ? shadow.bits : b.zero(type),
           shadow ? shadow.origin : b.zero(calls.i32)});
    }
  }
  // Operands that are not passed on choose the successor. A condition may be
  // both.
  if (auto condition = dyn_cast<LLVM::CondBrOp>(op))
    return use(op, condition.getCondition(), KVCacheUseBranch);
  for (Value operand : SmallVector<Value>(op->getOperands()))
    if (!forwarded.contains(operand))
      use(op, operand, KVCacheUseBranch);
}

//===----------------------------------------------------------------------===//
// Instructions of a warp
//===----------------------------------------------------------------------===//

/// Whether any of some values is poisoned, and from where.
Shadow PoisonTracker::getAll(ShadowBuilder &b, ValueRange values) const {
  Shadow all;
  for (Value value : values)
    if (Shadow shadow = get(value)) {
      Value isAny = b.any(shadow.bits);
      Value origin = b.mixOrigins(all, {isAny, shadow.origin});
      all = {all ? b.create<LLVM::OrOp>(all.bits, isAny) : isAny, origin};
    }
  return all;
}

void PoisonTracker::storeRegisters(ShadowBuilder &b, MatrixRegisters &registers,
                                   ValueRange values, size_t count,
                                   size_t offset) {
  SmallVector<Value> bits;
  for (Value value : values) {
    Shadow shadow = get(value);
    bits.push_back(shadow ? b.toInteger(shadow.bits) : b.zero(calls.i32));
  }
  // Others than those of this instruction may hold those of another one.
  bits.resize(count, b.zero(calls.i32));
  registers.store(bits, offset);
}

void PoisonTracker::trackMatrixLoad(NVVM::LdMatrixOp op) {
  use(op, op.getPtr(), KVCacheUseAddress);
  if (!maybe.contains(op.getRes()))
    return;
  MatrixRegisters registers(op, calls);
  ShadowBuilder b = behind(op);
  shadows[op.getRes()] = {
      registers.load(b.builder, ShadowBuilder::getType(op.getType()),
                     offsetof(KVCacheMatrixRegisters, poisonD)),
      registers.load(b.builder, calls.i32,
                     offsetof(KVCacheMatrixRegisters, origin))};
}

/// stmatrix, whose operands are A, or mma.
void PoisonTracker::trackMma(Operation *op) {
  MmaOperands operands;
  if (auto store = dyn_cast<NVVM::StMatrixOp>(op)) {
    use(op, store.getPtr(), KVCacheUseAddress);
    operands.a = store.getSources();
  } else {
    operands = *getMmaOperands(op);
  }
  MatrixRegisters registers(op, calls);
  ShadowBuilder b(op);
  SmallVector<Value> all(operands.a);
  llvm::append_range(all, operands.b);
  llvm::append_range(all, operands.c);
  Shadow any = getAll(b, all);
  registers.store(any ? b.getOriginIfAny(any) : b.zero(calls.i32),
                  offsetof(KVCacheMatrixRegisters, origin));
  if (!any)
    return;
  storeRegisters(b, registers, operands.a,
                 std::size(KVCacheMatrixRegisters().poisonA),
                 offsetof(KVCacheMatrixRegisters, poisonA));
  storeRegisters(b, registers, operands.b,
                 std::size(KVCacheMatrixRegisters().poisonB),
                 offsetof(KVCacheMatrixRegisters, poisonB));
  storeRegisters(b, registers, operands.c,
                 std::size(KVCacheMatrixRegisters().poisonC),
                 offsetof(KVCacheMatrixRegisters, poisonC));
  if (op->getNumResults() == 0)
    return;
  ShadowBuilder after = behind(op);
  Type type = ShadowBuilder::getType(op->getResult(0).getType());
  shadows[op->getResult(0)] = {
      registers.load(after.builder, type,
                     offsetof(KVCacheMatrixRegisters, poisonD)),
      registers.load(after.builder, calls.i32,
                     offsetof(KVCacheMatrixRegisters, origin))};
}

void PoisonTracker::trackExchange(Operation *op) {
  Value value = op->getOperand(getExchangedOperand(op));
  useOthers(op, value, KVCacheUseOperand);
  ShadowBuilder b(op);
  Shadow shadow = get(value);
  Value bits = b.zero(calls.i32), origin = b.zero(calls.i32);
  if (shadow) {
    bits = b.toInteger(shadow.bits);
    if (bits.getType() != calls.i32)
      bits = b.fill(calls.i32, b.any(bits));
    origin = b.getOriginIfAny(shadow);
  }
  storeField(b, bits, offsetof(KVCacheThread, exchangedPoison));
  storeField(b, origin, offsetof(KVCacheThread, origin));
  if (!shadow)
    return;
  ShadowBuilder after = behind(op);
  auto load = [&](size_t field) {
    return after.create<LLVM::LoadOp>(calls.i32, getField(after, field));
  };
  bits = load(offsetof(KVCacheThread, exchangedPoison));
  Type type = ShadowBuilder::getType(op->getResult(0).getType());
  // Whether the lane to read from is in range is known.
  if (auto pair = dyn_cast<LLVM::LLVMStructType>(type);
      pair && isa<NVVM::ShflOp>(op))
    bits = after.create<LLVM::InsertValueOp>(
        after.zero(type), after.bitcast(pair.getBody()[0], bits), int64_t{0});
  else if (isa<NVVM::ShflOp>(op))
    bits = after.bitcast(type, bits);
  else
    bits = after.fill(type, after.isNotZero(bits));
  shadows[op->getResult(0)] = {bits, load(offsetof(KVCacheThread, origin))};
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void PoisonTracker::propagate(Operation *op) {
  SmallVector<Shadow> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand));
  if (llvm::any_of(operands, [](const Shadow &shadow) { return bool(shadow); }))
    shadows[op->getResult(0)] = computeShadow(op, operands);
}

void PoisonTracker::track(Operation *op) {
  switch (getPoisonRule(op)) {
  case PoisonRule::Propagate:
    return propagate(op);
  case PoisonRule::Use:
    return useOthers(op, Value(), KVCacheUseOperand);
  case PoisonRule::Call:
    return useOthers(op, Value(), KVCacheUseCall);
  case PoisonRule::Branch:
    return trackBranch(op);
  case PoisonRule::Load:
    return trackLoad(cast<LLVM::LoadOp>(op));
  case PoisonRule::Store:
    return trackStore(cast<LLVM::StoreOp>(op));
  case PoisonRule::LoadMatrix:
    return trackMatrixLoad(cast<NVVM::LdMatrixOp>(op));
  case PoisonRule::StoreMatrix:
  case PoisonRule::Mma:
    return trackMma(op);
  case PoisonRule::Exchange:
    return trackExchange(op);
  }
}

void PoisonTracker::run() {
  SetVector<Block *> blocks = getBlocksSortedByDominance(function.getBody());
  for (Block *block : blocks)
    addArguments(*block);
  for (Block *block : blocks) {
    checked.clear();
    SmallVector<Operation *> ops;
    for (Operation &op : *block)
      ops.push_back(&op);
    for (Operation *op : ops)
      track(op);
  }
}

llvm::DenseSet<Operation *> kvcache::trackPoison(gpu::GPUModuleOp module,
                                                 EmulatorCalls &calls) {
  llvm::DenseSet<Operation *> loads;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      PoisonTracker(function, calls, loads).run();
  return loads;
}
