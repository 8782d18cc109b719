//===- Translator.cpp - Inline PTX as ops of NVVM and LLVM ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Translator.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::ptx;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// The registers in an operand. Instructions write those of their first one;
/// to take a register for written that is not does no harm.
static void addRegisters(const Operand &operand,
                         llvm::SmallSetVector<unsigned, 8> &registers) {
  if (operand.kind == Operand::Kind::Register)
    registers.insert(operand.number);
  if (operand.kind != Operand::Kind::Address)
    for (const Operand &part : operand.parts)
      addRegisters(part, registers);
}

static SmallVector<unsigned> findWritten(const Program &program) {
  llvm::SmallSetVector<unsigned, 8> registers;
  for (const Statement &statement : program.statements)
    if (!statement.operands.empty())
      addRegisters(statement.operands.front(), registers);
  return registers.takeVector();
}

Translator::Translator(Operation *op, const Program &program, Registers values)
    : op(op), program(program), builder(op), values(std::move(values)),
      written(findWritten(program)), targets(program.numLabels) {}

/// The values that a block gets of the written registers, as integers.
SmallVector<Value> Translator::getWritten() {
  Location loc = op->getLoc();
  return llvm::map_to_vector(written, [&](unsigned number) -> Value {
    mlir::Type type = builder.getIntegerType(program.registers[number].bits);
    Value value = values[number];
    if (!value)
      return LLVM::UndefOp::create(builder, loc, type);
    if (isa<LLVM::LLVMPointerType>(value.getType()))
      return LLVM::PtrToIntOp::create(builder, loc, type, value);
    return value.getType() == type
               ? value
               : LLVM::BitcastOp::create(builder, loc, type, value);
  });
}

void Translator::setWritten(ValueRange arguments) {
  for (auto [number, argument] : llvm::zip_equal(written, arguments))
    values[number] = argument;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Block *Translator::createBlock(Block *before) {
  OpBuilder::InsertionGuard guard(builder);
  Region *region = op->getParentRegion();
  Block *block = builder.createBlock(region, before ? before->getIterator()
                                                    : region->end());
  for (unsigned number : written)
    block->addArgument(builder.getIntegerType(program.registers[number].bits),
                       op->getLoc());
  return block;
}

Block *Translator::getTarget(unsigned label) {
  Block *&target = targets[label];
  if (!target)
    target = createBlock(nullptr);
  return target;
}

Value Translator::getGuard(const Statement &statement) {
  Operand guard;
  guard.kind = Operand::Kind::Register;
  guard.number = *statement.guard;
  guard.isNegated = statement.isGuardNegated;
  Emitter emitter(builder, op->getLoc(), program, statement, values);
  return emitter.getInteger(guard, 1);
}

/// Begins the block of a label, with the op and what follows it.
void Translator::enter(unsigned label) {
  Block *before = op->getBlock();
  Block *rest = before->splitBlock(op);
  Block *block = getTarget(label);
  block->moveBefore(rest);
  if (isReachable) {
    builder.setInsertionPointToEnd(before);
    LLVM::BrOp::create(builder, op->getLoc(), getWritten(), block);
  } else {
    // Nothing comes here but from branches to the label.
    before->erase();
  }
  block->getOperations().splice(block->end(), rest->getOperations());
  rest->erase();
  builder.setInsertionPoint(op);
  setWritten(block->getArguments());
  isReachable = true;
}

void Translator::branch(const Statement &statement) {
  Location loc = op->getLoc();
  Block *target = getTarget(statement.operands.front().number);
  Block *before = op->getBlock();
  Value guard;
  if (statement.guard)
    guard = getGuard(statement);
  SmallVector<Value> arguments = getWritten();
  Block *rest = before->splitBlock(op);
  builder.setInsertionPointToEnd(before);
  if (guard)
    LLVM::CondBrOp::create(builder, loc, guard, target, arguments, rest,
                           ValueRange());
  else
    LLVM::BrOp::create(builder, loc, arguments, target);
  isReachable = bool(guard);
  builder.setInsertionPoint(op);
}

/// Runs an instruction only where its predicate is true.
LogicalResult Translator::emitGuarded(const Statement &statement) {
  Location loc = op->getLoc();
  Value guard = getGuard(statement);
  SmallVector<Value> before = getWritten();
  Block *first = op->getBlock();
  Block *rest = first->splitBlock(op);
  Block *join = createBlock(rest);
  Block *body = createBlock(join);
  body->eraseArguments(0, body->getNumArguments());
  builder.setInsertionPointToEnd(first);
  LLVM::CondBrOp::create(builder, loc, guard, body, ValueRange(), join, before);
  builder.setInsertionPointToEnd(body);
  LogicalResult result = emit(statement);
  LLVM::BrOp::create(builder, loc, getWritten(), join);
  join->getOperations().splice(join->end(), rest->getOperations());
  rest->erase();
  builder.setInsertionPoint(op);
  setWritten(join->getArguments());
  return result;
}

/// Whether it is a wgmma that adds D only where a predicate is true, which is
/// not known here.
static bool hasOpenScale(const Statement &statement, Emitter emitter) {
  return statement.name.front() == "wgmma" && emitter.has("mma_async") &&
         statement.operands.size() > 3 && !emitter.getKnownPredicate(3);
}

/// The op has the scale of D as an attribute: there are two, and a branch.
LogicalResult Translator::emitBothScales(const Statement &statement) {
  Location loc = op->getLoc();
  Value adds =
      Emitter(builder, loc, program, statement, values).getPredicate(3);
  Registers before = values;
  Block *first = op->getBlock();
  Block *rest = first->splitBlock(op);
  Block *join = createBlock(rest);
  Block *bodies[2];
  for (int64_t scale : {0, 1}) {
    Statement known = statement;
    known.operands[3] = Operand();
    known.operands[3].kind = Operand::Kind::Integer;
    known.operands[3].value = scale;
    bodies[scale] = createBlock(join);
    bodies[scale]->eraseArguments(0, bodies[scale]->getNumArguments());
    builder.setInsertionPointToEnd(bodies[scale]);
    values = before;
    if (failed(emit(known)))
      return failure();
    LLVM::BrOp::create(builder, loc, getWritten(), join);
  }
  builder.setInsertionPointToEnd(first);
  LLVM::CondBrOp::create(builder, loc, adds, bodies[1], bodies[0]);
  join->getOperations().splice(join->end(), rest->getOperations());
  rest->erase();
  builder.setInsertionPoint(op);
  setWritten(join->getArguments());
  return success();
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

static constexpr EmitFamily kFamilies[] = {
    emitMemory,  emitArithmetic, emitComparison, emitConversion,   emitCopy,
    emitBarrier, emitWarp,       emitMatrix,     emitTensorMemory, emitControl};

LogicalResult Translator::emit(const Statement &statement) {
  Emitter emitter(builder, op->getLoc(), program, statement, values);
  StringRef name = statement.name.front();
  bool isKnown = llvm::any_of(
      kFamilies, [&](EmitFamily family) { return family(name, emitter); });
  std::string error = isKnown ? emitter.takeError() : "has no lowering";
  if (error.empty())
    return success();
  return op->emitError("instruction '")
         << statement.getName() << "' of inline PTX " << error;
}

LogicalResult Translator::translate(const Statement &statement) {
  if (statement.label) {
    enter(*statement.label);
    return success();
  }
  if (!isReachable)
    return success();
  if (statement.name.front() == "bra") {
    branch(statement);
    return success();
  }
  if (statement.guard)
    return emitGuarded(statement);
  Emitter emitter(builder, op->getLoc(), program, statement, values);
  return hasOpenScale(statement, emitter) ? emitBothScales(statement)
                                          : emit(statement);
}

LogicalResult Translator::translate() {
  for (const Statement &statement : program.statements)
    if (failed(translate(statement)))
      return failure();
  return isReachable ? success() : op->emitError("inline PTX never ends");
}
