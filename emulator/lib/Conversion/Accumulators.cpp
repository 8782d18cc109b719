//===- Accumulators.cpp - Registers that wgmma has in flight --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// nvvm.wgmma.mma_async takes its accumulators as a value and returns them as a
// value, which is in the same registers: LLVM ties the operand of the inline
// assembly to its result. Until a wait_group, the registers are in flight, and
// no other instruction may read or write them. ptxas mends some of what breaks
// this rule and says so (C7510 to C7519), at the price of a serialization.
//
// So each value that may be in such registers gets a stamp, which is computed
// beside it. Structures, vectors and the arguments of blocks only rename
// registers: a stamp goes through them. Any other op is an instruction: it
// reads the registers, and the runtime says whether it may. What it computes is
// written then, and wgmma.fence must follow before a wgmma has it as
// accumulators. A constant is written wherever the compiler likes. The same
// holds for registers of A, but that a wgmma only reads them.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Matrices.h"
#include "Warpgroups.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The state of the registers of a value, as i32: the ticket of the wgmma that
/// writes them, or 0, and the fences that a thread must have executed before a
/// wgmma may access them.
struct Stamp {
  Value ticket, numFences;
};

/// Adds the stamps of one function's values.
class AccumulatorTracker {
public:
  AccumulatorTracker(LLVM::LLVMFuncOp function, const MatrixPrograms &programs,
                     EmulatorCalls &calls)
      : function(function), programs(programs), calls(calls) {}

  void run();

private:
  void findValues();
  void addArguments();
  void passArguments();
  void checkUses();
  void checkUse(OpOperand &operand, Value ticket);
  void passStamps();

  bool isArgument(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && !argument.getOwner()->isEntryBlock();
  }
  template <typename Visitor>
  void forEachIncoming(BlockArgument argument, Visitor visit);

  Stamp getStamp(Value value);
  Stamp getLatest(Operation *op, ValueRange values);
  Stamp makeStamp(Value value);
  Value getMost(OpBuilder &builder, Location loc, Value first, Value second);
  Value getLaterFences(Operation *op);

  LLVM::LLVMFuncOp function;
  const MatrixPrograms &programs;
  EmulatorCalls &calls;
  SmallVector<Operation *> ops;
  /// Values that may be in registers of accumulators, or of A.
  llvm::SetVector<Value> values;
  llvm::DenseMap<Value, Stamp> stamps;
  Stamp constant;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Whether an op only names registers otherwise.
static bool isRename(Operation *op) {
  if (auto extract = dyn_cast<LLVM::ExtractElementOp>(op))
    return matchPattern(extract.getPosition(), m_Constant());
  if (auto insert = dyn_cast<LLVM::InsertElementOp>(op))
    return matchPattern(insert.getPosition(), m_Constant());
  return isa<LLVM::ExtractValueOp, LLVM::InsertValueOp, LLVM::ShuffleVectorOp,
             LLVM::BitcastOp, LLVM::FreezeOp>(op);
}

/// The operands whose registers a value has.
static SmallVector<Value> getRenamed(Operation *op) {
  SmallVector<Value> operands(op->getOperands());
  if (isa<LLVM::ExtractElementOp, LLVM::InsertElementOp>(op))
    operands.pop_back();
  return operands;
}

/// Calls `visit` with what each branch passes to an argument.
template <typename Visitor>
void AccumulatorTracker::forEachIncoming(BlockArgument argument,
                                         Visitor visit) {
  Block *block = argument.getOwner();
  for (auto it = block->pred_begin(), end = block->pred_end(); it != end;
       ++it) {
    auto branch = cast<BranchOpInterface>((*it)->getTerminator());
    visit(branch, it.getSuccessorIndex(),
          branch.getSuccessorOperands(
              it.getSuccessorIndex())[argument.getArgNumber()]);
  }
}

/// From the operands and results of wgmma on, both ways.
void AccumulatorTracker::findValues() {
  function.walk([&](Operation *op) {
    if (!isWgmma(op))
      return;
    ops.push_back(op);
    WgmmaOperands operands(op);
    values.insert_range(operands.accumulators);
    values.insert_range(operands.registersA);
    values.insert(op->getResult(0));
  });
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    if (isArgument(value))
      forEachIncoming(cast<BlockArgument>(value),
                      [&](BranchOpInterface, unsigned, Value operand) {
                        if (operand)
                          values.insert(operand);
                      });
    Operation *op = value.getDefiningOp();
    if (op && isRename(op))
      for (Value operand : getRenamed(op))
        values.insert(operand);
    // What another instruction computes is in flight nowhere.
    if (op && !isRename(op) && !isWgmma(op))
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isRename(user))
        values.insert(user->getResult(0));
      if (auto branch = dyn_cast<BranchOpInterface>(user))
        if (std::optional<BlockArgument> argument =
                branch.getSuccessorBlockArgument(use.getOperandNumber()))
          values.insert(*argument);
    }
  }
}

//===----------------------------------------------------------------------===//
// Stamps
//===----------------------------------------------------------------------===//

void AccumulatorTracker::addArguments() {
  for (Value value : values) {
    if (!isArgument(value))
      continue;
    Block *block = cast<BlockArgument>(value).getOwner();
    Value ticket = block->addArgument(calls.i32, value.getLoc());
    stamps[value] = {ticket, block->addArgument(calls.i32, value.getLoc())};
  }
}

/// In the order of `addArguments`.
void AccumulatorTracker::passArguments() {
  for (Value value : values) {
    if (!isArgument(value))
      continue;
    forEachIncoming(
        cast<BlockArgument>(value),
        [&](BranchOpInterface branch, unsigned index, Value operand) {
          Stamp stamp = operand ? getStamp(operand) : constant;
          branch.getSuccessorOperands(index).append(
              ValueRange{stamp.ticket, stamp.numFences});
        });
  }
}

Value AccumulatorTracker::getMost(OpBuilder &builder, Location loc, Value first,
                                  Value second) {
  if (first == second)
    return first;
  return LLVM::UMaxOp::create(builder, loc, first, second);
}

/// One more than have been executed when an op is done.
Value AccumulatorTracker::getLaterFences(Operation *op) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Location loc = op->getLoc();
  constexpr int32_t offset = offsetof(KVCacheThread, numWgmmaFences);
  Value address = LLVM::GEPOp::create(builder, loc, calls.pointerType, calls.i8,
                                      function.getArgument(0),
                                      ArrayRef<LLVM::GEPArg>{offset});
  Value count = LLVM::LoadOp::create(builder, loc, calls.i32, address);
  Value one = LLVM::ConstantOp::create(builder, loc, calls.i32, 1);
  return LLVM::AddOp::create(builder, loc, count, one);
}

Stamp AccumulatorTracker::makeStamp(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->hasTrait<OpTrait::ConstantLike>() ||
      isa<LLVM::ZeroOp, LLVM::UndefOp, LLVM::PoisonOp>(op))
    return constant;
  if (isWgmma(op)) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value ticket = WgmmaRegisters(op, calls).load(
        builder, calls.i32, offsetof(KVCacheWgmmaRegisters, ticket));
    return {ticket, constant.ticket};
  }
  if (!isRename(op))
    return {constant.ticket, getLaterFences(op)};
  return getLatest(op, getRenamed(op));
}

/// The stamp of all of some values, computed before an op.
Stamp AccumulatorTracker::getLatest(Operation *op, ValueRange values) {
  Stamp all;
  OpBuilder builder(op);
  for (Value value : values) {
    Stamp stamp = getStamp(value);
    if (!all.ticket) {
      all = stamp;
      continue;
    }
    all = {getMost(builder, op->getLoc(), all.ticket, stamp.ticket),
           getMost(builder, op->getLoc(), all.numFences, stamp.numFences)};
  }
  return all;
}

Stamp AccumulatorTracker::getStamp(Value value) {
  // A chain of hundreds of insertions must not need as many frames of a stack.
  SmallVector<Value> chain{value};
  while (!chain.empty()) {
    Value next = chain.back();
    Operation *op = next.getDefiningOp();
    size_t before = chain.size();
    if (!stamps.contains(next) && op && isRename(op))
      for (Value operand : getRenamed(op))
        if (!stamps.contains(operand))
          chain.push_back(operand);
    if (chain.size() > before)
      continue;
    if (!stamps.contains(next)) {
      Stamp stamp = makeStamp(next);
      stamps[next] = stamp;
    }
    chain.pop_back();
  }
  return stamps.lookup(value);
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

/// Checks a use of registers, and names the first instruction of a matrix
/// program that reads the operand.
void AccumulatorTracker::checkUse(OpOperand &operand, Value ticket) {
  Operation *op = operand.getOwner();
  Location loc = op->getLoc();
  StringRef name = op->getName().getStringRef();
  if (auto program = programs.find(op); program != programs.end()) {
    size_t user = program->second.inputs[operand.getOperandNumber()].user;
    const MatrixProgram::Instruction &instruction =
        program->second.instructions[user];
    loc = instruction.loc;
    name = instruction.name;
  }
  OpBuilder builder(op);
  calls.call(builder, op, loc, name, "kvcacheEmulatorUseAccumulators", Type(),
             ticket);
}

/// Where an instruction reads what may be in flight, once for each ticket until
/// the next op of wgmma.
void AccumulatorTracker::checkUses() {
  auto isPassedOn = [](OpOperand &operand) {
    Operation *op = operand.getOwner();
    if (isRename(op) || isWgmma(op))
      return true;
    auto branch = dyn_cast<BranchOpInterface>(op);
    return branch &&
           branch.getSuccessorBlockArgument(operand.getOperandNumber());
  };
  for (Block &block : function.getBody()) {
    llvm::DenseSet<Value> checked;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (op.getName().getStringRef().starts_with("nvvm.wgmma.") ||
          isWgmma(&op))
        checked.clear();
      for (OpOperand &operand : op.getOpOperands()) {
        if (!values.contains(operand.get()) || isPassedOn(operand))
          continue;
        Value ticket = getStamp(operand.get()).ticket;
        if (ticket != constant.ticket && checked.insert(ticket).second)
          checkUse(operand, ticket);
      }
    }
  }
}

void AccumulatorTracker::passStamps() {
  auto pass = [&](Operation *op, ValueRange of, size_t ticket,
                  size_t numFences) {
    Stamp stamp = getLatest(op, of);
    OpBuilder builder(op);
    WgmmaRegisters registers(op, calls);
    registers.store(builder, stamp.ticket, ticket);
    registers.store(builder, stamp.numFences, numFences);
  };
  for (Operation *op : ops) {
    WgmmaOperands operands(op);
    pass(op, operands.accumulators, offsetof(KVCacheWgmmaRegisters, ticket),
         offsetof(KVCacheWgmmaRegisters, numFences));
    if (!operands.registersA.empty())
      pass(op, operands.registersA, offsetof(KVCacheWgmmaRegisters, ticketA),
           offsetof(KVCacheWgmmaRegisters, numFencesA));
  }
}

void AccumulatorTracker::run() {
  findValues();
  if (ops.empty())
    return;
  Operation *first = &function.front().front();
  constant = {calls.getI32(first, 0), calls.getI32(first, 1)};
  addArguments();
  checkUses();
  passStamps();
  passArguments();
}

void kvcache::trackAccumulators(gpu::GPUModuleOp module,
                                const MatrixPrograms &programs,
                                EmulatorCalls &calls) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      AccumulatorTracker(function, programs, calls).run();
}
