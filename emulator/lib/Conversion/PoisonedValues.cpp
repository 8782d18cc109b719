//===- PoisonedValues.cpp - Follow uninitialized values -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile that is read in vectors, or by ldmatrix, may end in uninitialized
// rows whose values the kernel discards. So a load of such bytes is
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
#include "TensorMemory.h"
#include "VariableShadows.h"
#include "Warpgroups.h"
#include "kvcache/Emulator/Poison.h"
#include "kvcache/Emulator/TensorMemory.h"
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
  PoisonTracker(LLVM::LLVMFuncOp function, MatrixPrograms &programs,
                EmulatorCalls &calls, TrackedPoison &tracked)
      : function(function), programs(programs), calls(calls), tracked(tracked),
        maybe(function), layout(DataLayout::closest(function)),
        variables(maybe, calls, layout) {}

  void run();

private:
  void addArguments(Block &block);
  void track(Operation *op);
  void trackLoad(LLVM::LoadOp op);
  void trackStore(LLVM::StoreOp op);
  void trackBranch(Operation *op);
  void trackMatrices(Operation *op);
  void trackTensorLoad(NVVM::Tcgen05LdOp op);
  void trackTensorStore(NVVM::Tcgen05StOp op);
  void storeFragment(WgmmaRegisters &registers, Operation *op,
                     ValueRange values, size_t poison, size_t origin);
  void trackWgmma(Operation *op);
  void trackExchange(Operation *op);
  void propagate(Operation *op);

  Shadow get(Value value) const {
    return checked.contains(value) ? Shadow() : shadows.lookup(value);
  }
  void use(Operation *op, Value value, uint32_t kind) {
    use(op, value, kind, op->getLoc(), op->getName().getStringRef());
  }
  void use(Operation *op, Value value, uint32_t kind, Location loc,
           StringRef name);
  void useOthers(Operation *op, Value except, uint32_t kind);

  Value getField(ShadowBuilder &b, size_t offset);
  void storeField(ShadowBuilder &b, Value value, size_t offset) {
    LLVM::StoreOp::create(b.builder, b.loc, value, getField(b, offset));
  }
  Shadow loadPoison(ShadowBuilder &b, Type type);
  Value getStoreSlot(Type type);

  LLVM::LLVMFuncOp function;
  MatrixPrograms &programs;
  EmulatorCalls &calls;
  TrackedPoison &tracked;
  MaybePoisoned maybe;
  DataLayout layout;
  llvm::DenseMap<Value, Shadow> shadows;
  /// Values that were used before in the block: they are not poisoned
  /// afterwards.
  llvm::DenseSet<Value> checked;
  VariableShadows variables;
  llvm::DenseMap<Type, Value> storeSlots;
  /// The arguments of each block that have shadows, which follow those that
  /// the block had.
  llvm::DenseMap<Block *, SmallVector<unsigned>> arguments;
};

} // namespace

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

void PoisonTracker::use(Operation *op, Value value, uint32_t kind, Location loc,
                        StringRef name) {
  Shadow shadow = get(value);
  if (!shadow)
    return;
  ShadowBuilder b(op);
  calls.call(b.builder, op, loc, name, "kvcacheEmulatorUse", Type(),
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

/// The shadow of what the last access has read.
Shadow PoisonTracker::loadPoison(ShadowBuilder &b, Type type) {
  Value origin = b.create<LLVM::LoadOp>(
      calls.i32, getField(b, offsetof(KVCacheThread, origin)));
  if (!ShadowBuilder::hasPlainBytes(type, layout))
    return {b.fill(type, b.isNotZero(origin)), origin};
  Value bytes = b.create<LLVM::LoadOp>(
      calls.pointerType, getField(b, offsetof(KVCacheThread, poison)));
  return {b.create<LLVM::LoadOp>(type, bytes, /*alignment=*/1), origin};
}

void PoisonTracker::trackLoad(LLVM::LoadOp op) {
  use(op, op.getAddr(), KVCacheUseAddress);
  if (!maybe.contains(op.getResult()))
    return;
  if (LLVM::AllocaOp variable = maybe.findVariable(op.getAddr())) {
    shadows[op.getResult()] = variables.load(op, variable);
    return;
  }
  tracked.loads.insert(op);
  ShadowBuilder b = ShadowBuilder::after(op);
  shadows[op.getResult()] = loadPoison(b, ShadowBuilder::getType(op.getType()));
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
  if (LLVM::AllocaOp variable = maybe.findVariable(op.getAddr()))
    return variables.store(op, variable, get(op.getValue()));
  Shadow shadow = get(op.getValue());
  if (!shadow)
    return;
  ShadowBuilder b = ShadowBuilder::after(op);
  Value slot = getStoreSlot(shadow.bits.getType());
  LLVM::StoreOp::create(b.builder, b.loc, shadow.bits, slot, /*alignment=*/1);
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

/// The words of registers that an instruction takes have their poison beside
/// them, and so do those that it gives.
void PoisonTracker::trackMatrices(Operation *op) {
  using Plane = MatrixRegisters::Plane;
  MatrixProgram &program = programs[op];
  SmallVector<std::pair<uint32_t, Shadow>> poisonable;
  for (auto [operand, input] : llvm::zip(op->getOperands(), program.inputs)) {
    const MatrixProgram::Instruction &user = program.instructions[input.user];
    if (isa<LLVM::LLVMPointerType>(operand.getType()))
      use(op, operand, KVCacheUseAddress, user.loc, user.name);
    else if (Shadow shadow = get(operand))
      poisonable.emplace_back(input.number, shadow);
  }
  ShadowBuilder b(op), after = ShadowBuilder::after(op);
  MatrixRegisters registers(op, program, calls);
  for (auto &[number, shadow] : poisonable) {
    program.poisonable.push_back(number);
    registers.store(b.builder, shadow.bits, number, Plane::Poison);
    registers.store(b.builder, shadow.origin, number, Plane::Origin);
  }
  for (Operation *user : op->getUsers()) {
    auto part = cast<LLVM::ExtractValueOp>(user);
    uint32_t number = program.outputs[part.getPosition()[0]];
    Type type = ShadowBuilder::getType(part.getType());
    shadows[part] = {
        registers.load(after.builder, type, number, Plane::Poison),
        registers.load(after.builder, calls.i32, number, Plane::Origin)};
  }
}

void PoisonTracker::trackTensorLoad(NVVM::Tcgen05LdOp op) {
  useOthers(op, Value(), KVCacheUseOperand);
  if (!maybe.contains(op.getResult()))
    return;
  TensorRegisters registers(op, calls);
  ShadowBuilder b = ShadowBuilder::after(op);
  shadows[op.getResult()] = {
      registers.load(b.builder, ShadowBuilder::getType(op.getType()),
                     offsetof(KVCacheTmemRegisters, poison)),
      registers.load(b.builder, calls.i32,
                     offsetof(KVCacheTmemRegisters, origin))};
}

void PoisonTracker::trackTensorStore(NVVM::Tcgen05StOp op) {
  useOthers(op, op.getVal(), KVCacheUseOperand);
  TensorRegisters registers(op, calls);
  ShadowBuilder b(op);
  Shadow shadow = get(op.getVal());
  registers.store(b.builder,
                  shadow ? b.getOriginIfAny(shadow) : b.zero(calls.i32),
                  offsetof(KVCacheTmemRegisters, origin));
  if (shadow)
    registers.store(b.builder, shadow.bits,
                    offsetof(KVCacheTmemRegisters, poison));
}

/// The shadows of registers, or of a structure of them, for the runtime: bits
/// count where the origin is not 0.
void PoisonTracker::storeFragment(WgmmaRegisters &registers, Operation *op,
                                  ValueRange values, size_t poison,
                                  size_t origin) {
  ShadowBuilder b(op);
  bool hasShadow =
      llvm::any_of(values, [&](Value value) { return get(value); });
  Value first = b.zero(calls.i32);
  for (auto [number, value] : llvm::enumerate(values)) {
    Shadow shadow = get(value);
    if (shadow)
      first = b.create<LLVM::UMaxOp>(first, b.getOriginIfAny(shadow));
    if (hasShadow)
      registers.store(b.builder,
                      shadow ? shadow.bits
                             : b.zero(ShadowBuilder::getType(value.getType())),
                      poison + number * sizeof(uint32_t));
  }
  registers.store(b.builder, first, origin);
}

void PoisonTracker::trackWgmma(Operation *op) {
  WgmmaOperands operands(op);
  for (Value descriptor : {operands.descriptorA, operands.descriptorB})
    if (descriptor)
      use(op, descriptor, KVCacheUseOperand);
  constexpr size_t place = offsetof(KVCacheWgmmaRegisters, poison);
  constexpr size_t origin = offsetof(KVCacheWgmmaRegisters, origin);
  WgmmaRegisters registers(op, calls);
  storeFragment(registers, op, operands.accumulators, place, origin);
  if (!operands.registersA.empty())
    storeFragment(registers, op, operands.registersA,
                  offsetof(KVCacheWgmmaRegisters, poisonA),
                  offsetof(KVCacheWgmmaRegisters, originA));
  ShadowBuilder after = ShadowBuilder::after(op);
  Value result = op->getResult(0);
  Type type = ShadowBuilder::getType(result.getType());
  shadows[result] = {registers.load(after.builder, type, place),
                     registers.load(after.builder, calls.i32, origin)};
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
  ShadowBuilder after = ShadowBuilder::after(op);
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
  case PoisonRule::Lifetime:
    return variables.empty(op);
  case PoisonRule::Matrices:
    return trackMatrices(op);
  case PoisonRule::LoadTensorMemory:
    return trackTensorLoad(cast<NVVM::Tcgen05LdOp>(op));
  case PoisonRule::StoreTensorMemory:
    return trackTensorStore(cast<NVVM::Tcgen05StOp>(op));
  case PoisonRule::WarpgroupMma:
    return trackWgmma(op);
  case PoisonRule::Exchange:
    return trackExchange(op);
  }
}

void PoisonTracker::run() {
  tracked.followed.insert_range(maybe.getFollowed());
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

TrackedPoison kvcache::trackPoison(gpu::GPUModuleOp module,
                                   MatrixPrograms &programs,
                                   EmulatorCalls &calls) {
  TrackedPoison tracked;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      PoisonTracker(function, programs, calls, tracked).run();
  return tracked;
}
