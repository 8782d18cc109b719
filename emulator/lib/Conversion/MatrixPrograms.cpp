//===- MatrixPrograms.cpp - Matrix instructions that go together ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All lanes of a warp have to arrive at a matrix instruction before any
// continues, which costs the emulator more than the products. Kernels have many
// of them in a row, with little between that depends on their results. Those
// become one program, which the warp executes at once, in registers that its
// lanes share.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Matrices.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

bool kvcache::isMatrixProgram(Operation *op) {
  auto call = dyn_cast<LLVM::CallOp>(op);
  return call && call.getCallee() == kRunMatrices;
}

//===----------------------------------------------------------------------===//
// Where registers come from
//===----------------------------------------------------------------------===//

namespace {
/// Bits of a value from `offset` on.
struct Bits {
  Value value;
  unsigned offset;
};
} // namespace

static unsigned getElementWidth(Value vector) {
  return cast<VectorType>(vector.getType()).getElementTypeBitWidth();
}

static std::optional<unsigned> getPosition(Value position) {
  APInt number;
  if (!matchPattern(position, m_ConstantInt(&number)))
    return std::nullopt;
  return number.getZExtValue();
}

/// Looks through one op that only moves bits. None if it doesn't, or if they
/// come from several places.
static std::optional<Bits> stepBack(Operation *op, unsigned offset,
                                    unsigned width) {
  using Result = std::optional<Bits>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](LLVM::BitcastOp op) -> Result {
        if (isa<LLVM::LLVMPointerType>(op.getArg().getType()))
          return std::nullopt;
        return Bits{op.getArg(), offset};
      })
      .Case([&](LLVM::ExtractElementOp op) -> Result {
        std::optional<unsigned> position = getPosition(op.getPosition());
        if (!position)
          return std::nullopt;
        return Bits{op.getVector(),
                    *position * getElementWidth(op.getVector()) + offset};
      })
      .Case([&](LLVM::InsertElementOp op) -> Result {
        std::optional<unsigned> position = getPosition(op.getPosition());
        if (!position)
          return std::nullopt;
        unsigned size = getElementWidth(op.getVector());
        unsigned begin = *position * size, end = begin + size;
        if (offset >= begin && offset + width <= end)
          return Bits{op.getValue(), offset - begin};
        if (offset >= end || offset + width <= begin)
          return Bits{op.getVector(), offset};
        return std::nullopt;
      })
      .Case([&](LLVM::ShuffleVectorOp op) -> Result {
        unsigned size = getElementWidth(op.getV1());
        if (offset % size + width > size)
          return std::nullopt;
        int32_t source = op.getMask()[offset / size];
        int32_t count = cast<VectorType>(op.getV1().getType()).getNumElements();
        if (source < 0)
          return std::nullopt;
        return Bits{source < count ? op.getV1() : op.getV2(),
                    source % count * size + offset % size};
      })
      .Case([&](LLVM::ExtractValueOp op) -> Result {
        Value container = op.getContainer();
        while (auto insert = container.getDefiningOp<LLVM::InsertValueOp>()) {
          if (insert.getPosition() == op.getPosition())
            return Bits{insert.getValue(), offset};
          // A whole that the part is in, or a part of it.
          size_t common =
              std::min(insert.getPosition().size(), op.getPosition().size());
          if (insert.getPosition().take_front(common) ==
              op.getPosition().take_front(common))
            return std::nullopt;
          container = insert.getContainer();
        }
        return std::nullopt;
      })
      .Default([](Operation *) { return std::nullopt; });
}

static Bits findOrigin(Value value, unsigned offset, unsigned width) {
  while (Operation *op = value.getDefiningOp()) {
    std::optional<Bits> before = stepBack(op, offset, width);
    if (!before)
      break;
    std::tie(value, offset) = std::pair(before->value, before->offset);
  }
  return {value, offset};
}

static bool isRegister(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  Type element = vector ? vector.getElementType() : type;
  return element.isIntOrFloat() &&
         element.getIntOrFloatBitWidth() *
                 (vector ? vector.getNumElements() : 1) ==
             32;
}

/// The register that a value has all bits of, though they went through vectors,
/// structures or bytes; the value itself if there is none.
static Value findRegister(Value value) {
  constexpr unsigned registerBits = 32, width = 8;
  Bits first = findOrigin(value, 0, width);
  if (first.offset != 0 || !isRegister(first.value.getType()))
    return value;
  for (unsigned offset = width; offset < registerBits; offset += width) {
    Bits next = findOrigin(value, offset, width);
    if (next.value != first.value || next.offset != offset)
      return value;
  }
  return first.value;
}

//===----------------------------------------------------------------------===//
// Programs of a block
//===----------------------------------------------------------------------===//

namespace {

/// Collects the matrix instructions of a block that go together, and puts a
/// call in their place.
class ProgramBuilder {
public:
  explicit ProgramBuilder(MatrixPrograms &programs) : programs(programs) {}

  /// The next op of the block.
  LogicalResult visit(Operation *op);
  /// No op follows.
  void finish();

private:
  bool isOpen() const { return !program.instructions.empty(); }
  bool dependsOnProgram(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return dependent.contains(operand);
    });
  }
  bool mayFollow(const MatrixInstruction &next);
  void add(const MatrixInstruction &next);
  uint32_t getInput(Value value, unsigned numRegisters = 1);
  uint32_t getNumber(Value value);
  SmallVector<uint32_t, 4> getNumbers(ValueRange values);
  std::optional<uint32_t> findResult(Value value) const;
  void replaceResults(Operation *call);

  MatrixPrograms &programs;
  MatrixProgram program;
  SmallVector<Value> operands;
  llvm::DenseMap<Value, uint32_t> inputs;
  /// The first register of each instruction's result.
  llvm::DenseMap<Operation *, uint32_t> results;
  /// The results of the program, and the ops that use them and so come after
  /// it. The first of these stand before its last instruction.
  llvm::DenseSet<Value> dependent;
  SmallVector<Operation *> following;
  size_t numBetween = 0;
};

} // namespace

/// The registers of programs stay in a cache near the processor.
static constexpr uint32_t kMostRegisters = 512;

/// Reads that it doesn't matter which comes first.
static bool isPlainLoad(Operation *op) {
  auto load = dyn_cast<LLVM::LoadOp>(op);
  return load && !load.getVolatile_() &&
         load.getOrdering() == LLVM::AtomicOrdering::not_atomic;
}

LogicalResult ProgramBuilder::visit(Operation *op) {
  FailureOr<std::optional<MatrixInstruction>> parsed =
      parseMatrixInstruction(op);
  if (failed(parsed))
    return failure();
  if (*parsed) {
    if (isOpen() && !mayFollow(**parsed))
      finish();
    add(**parsed);
    return success();
  }
  if (!isOpen())
    return success();
  bool isFree = isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
                !op->hasTrait<OpTrait::IsTerminator>();
  if (!dependsOnProgram(op)) {
    if (!isFree && !isPlainLoad(op))
      finish();
    return success();
  }
  if (!isFree) {
    finish();
    return success();
  }
  following.push_back(op);
  dependent.insert_range(op->getResults());
  return success();
}

/// The register of a result of the program.
std::optional<uint32_t> ProgramBuilder::findResult(Value value) const {
  Operation *op = value.getDefiningOp();
  auto extract = dyn_cast_if_present<LLVM::ExtractValueOp>(op);
  if (extract && extract.getPosition().size() == 1)
    op = extract.getContainer().getDefiningOp();
  else
    extract = {};
  auto found = results.find(op);
  if (found == results.end())
    return std::nullopt;
  return found->second + (extract ? extract.getPosition()[0] : 0);
}

/// Whether all operands of an instruction are results of the program, or are
/// there before it.
bool ProgramBuilder::mayFollow(const MatrixInstruction &next) {
  auto isThere = [&](Value value) {
    Value source = findRegister(value);
    return findResult(source) || !dependent.contains(source);
  };
  constexpr uint32_t mostOperands = 12;
  return (!next.row || !dependent.contains(next.row)) &&
         llvm::all_of(next.a, isThere) && llvm::all_of(next.b, isThere) &&
         llvm::all_of(next.c, isThere) &&
         program.numRegisters + mostOperands + next.results.size() <=
             kMostRegisters;
}

uint32_t ProgramBuilder::getInput(Value value, unsigned numRegisters) {
  auto [entry, isNew] = inputs.try_emplace(value, program.numRegisters);
  if (isNew) {
    operands.push_back(value);
    program.inputs.push_back({entry->second, program.instructions.size()});
    program.numRegisters += numRegisters;
  }
  return entry->second;
}

uint32_t ProgramBuilder::getNumber(Value value) {
  Value source = findRegister(value);
  std::optional<uint32_t> result = findResult(source);
  return result ? *result : getInput(source);
}

SmallVector<uint32_t, 4> ProgramBuilder::getNumbers(ValueRange values) {
  return llvm::map_to_vector<4>(values,
                                [&](Value value) { return getNumber(value); });
}

void ProgramBuilder::add(const MatrixInstruction &next) {
  Operation *op = next.op;
  MatrixNumbers numbers;
  if (next.row)
    numbers.row = getInput(next.row, /*numRegisters=*/2);
  numbers.a = getNumbers(next.a);
  numbers.b = getNumbers(next.b);
  numbers.c = getNumbers(next.c);
  results[op] = program.numRegisters;
  for (size_t i = 0; i < next.results.size(); ++i)
    numbers.d.push_back(program.numRegisters++);
  llvm::append_range(program.outputs, numbers.d);
  dependent.insert_range(op->getResults());
  numBetween = following.size();
  program.instructions.push_back(
      {next, numbers, op->getLoc(), op->getName().getStringRef()});
}

/// Puts parts of the call's result in the place of what instructions gave.
void ProgramBuilder::replaceResults(Operation *call) {
  OpBuilder builder(call->getContext());
  builder.setInsertionPointAfter(call);
  int64_t field = 0;
  for (const MatrixProgram::Instruction &instruction : program.instructions) {
    Operation *op = instruction.what.op;
    if (op->getNumResults() == 0)
      continue;
    Value result = op->getResult(0);
    auto extract = [&](int64_t number) -> Value {
      return LLVM::ExtractValueOp::create(builder, op->getLoc(),
                                          call->getResult(0), number);
    };
    int64_t first = field;
    field += instruction.what.results.size();
    if (!isa<LLVM::LLVMStructType>(result.getType())) {
      result.replaceAllUsesWith(extract(first));
      continue;
    }
    for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
      auto part = dyn_cast<LLVM::ExtractValueOp>(user);
      if (!part || part.getPosition().size() != 1)
        continue;
      part.replaceAllUsesWith(extract(first + part.getPosition()[0]));
      llvm::erase(following, user);
      part.erase();
    }
    if (result.use_empty())
      continue;
    Value whole =
        LLVM::PoisonOp::create(builder, op->getLoc(), result.getType());
    for (int64_t part = 0; first + part < field; ++part)
      whole = LLVM::InsertValueOp::create(builder, op->getLoc(), whole,
                                          extract(first + part), part);
    result.replaceAllUsesWith(whole);
  }
}

void ProgramBuilder::finish() {
  if (!isOpen())
    return;
  Operation *last = program.instructions.back().what.op;
  Location loc = program.instructions.front().loc;
  for (Operation *op :
       llvm::reverse(ArrayRef(following).take_front(numBetween)))
    op->moveAfter(last);
  SmallVector<Type> types;
  for (const MatrixProgram::Instruction &instruction : program.instructions)
    llvm::append_range(types, instruction.what.results);
  MLIRContext *context = last->getContext();
  OpBuilder builder(last);
  Type result = types.empty()
                    ? Type(LLVM::LLVMVoidType::get(context))
                    : LLVM::LLVMStructType::getLiteral(context, types);
  auto function = LLVM::LLVMFunctionType::get(
      result, llvm::to_vector(ValueRange(operands).getTypes()));
  auto call =
      LLVM::CallOp::create(builder, loc, function, kRunMatrices, operands);
  replaceResults(call);
  for (MatrixProgram::Instruction &instruction :
       llvm::reverse(program.instructions))
    instruction.what.op->erase();
  // What only moved registers from one instruction to the next.
  for (Operation *op : llvm::reverse(following))
    if (isOpTriviallyDead(op))
      op->erase();
  for (Operation *user : llvm::make_early_inc_range(call->getUsers()))
    if (isOpTriviallyDead(user))
      user->erase();
  for (MatrixProgram::Instruction &instruction : program.instructions) {
    instruction.what.op = call;
    instruction.what.a = instruction.what.b = instruction.what.c = {};
  }
  programs[call] = std::move(program);
  program = {};
  operands.clear();
  inputs.clear();
  results.clear();
  dependent.clear();
  following.clear();
  numBetween = 0;
}

FailureOr<MatrixPrograms>
kvcache::createMatrixPrograms(gpu::GPUModuleOp module) {
  MatrixPrograms programs;
  WalkResult result = module.walk([&](Block *block) {
    ProgramBuilder builder(programs);
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (failed(builder.visit(&op)))
        return WalkResult::interrupt();
    builder.finish();
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return programs;
}
