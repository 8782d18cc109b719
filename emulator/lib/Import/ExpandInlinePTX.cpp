//===- ExpandInlinePTX.cpp - Inline PTX and intrinsics as ops -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Intrinsics.h"
#include "PTX/Translator.h"
#include "Reflect.h"
#include "kvcache/Import/Passes.h"
#include "kvcache/Target/Chip.h"
#include "kvcache/Target/Wgmma.h"

#include "llvm/ADT/StringSwitch.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDINLINEPTX
#include "kvcache/Import/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

namespace {
/// The operands of inline assembly by its constraints: first the results, then
/// the others.
struct Constraints {
  SmallVector<ptx::TemplateOperand> operands;
  size_t numResults = 0;
};
} // namespace

/// LLVM Language Reference, "Supported Constraint Code List", NVPTX.
static std::optional<unsigned> getRegisterBits(StringRef constraint) {
  return llvm::StringSwitch<std::optional<unsigned>>(constraint)
      .Case("b", 1)
      .Cases({"c", "h"}, 16)
      .Cases({"r", "f"}, 32)
      .Cases({"l", "d", "N"}, 64)
      .Case("q", 128)
      // Constants have the width of their type.
      .Cases({"n", "i"}, 0)
      .Default(std::nullopt);
}

/// None for constraints that have no meaning here.
static std::optional<Constraints> parseConstraints(StringRef text) {
  Constraints constraints;
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    if (part.starts_with("~"))
      continue;
    unsigned number = constraints.operands.size();
    unsigned tied = 0;
    if (!part.getAsInteger(10, tied)) {
      if (tied >= constraints.numResults)
        return std::nullopt;
      constraints.operands.push_back({constraints.operands[tied].bits, tied});
      continue;
    }
    bool isResult = part.consume_front("=");
    part.consume_front("&");
    std::optional<unsigned> bits = getRegisterBits(part);
    if (!bits || (isResult && number != constraints.numResults))
      return std::nullopt;
    constraints.numResults += isResult;
    constraints.operands.push_back({*bits, number});
  }
  return constraints;
}

static SmallVector<Type> getResultTypes(Operation *op) {
  // Upstream's import gives calls without a result one of type void.
  if (op->getNumResults() == 0 ||
      isa<LLVM::LLVMVoidType>(op->getResult(0).getType()))
    return {};
  Type type = op->getResult(0).getType();
  if (auto structure = dyn_cast<LLVM::LLVMStructType>(type))
    return SmallVector<Type>(structure.getBody());
  return {type};
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Whether registers can hold a value of the type.
static bool isInRegister(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getRank() == 1 && !vector.isScalable() &&
           vector.getElementType().isIntOrFloat();
  return type.isIntOrFloat() || isa<LLVM::LLVMPointerType>(type);
}

/// The values that registers begin with.
static ptx::Registers getInitialValues(Operation *op, ValueRange inputs,
                                       const Constraints &constraints,
                                       size_t numRegisters) {
  OpBuilder builder(op);
  // The last is the carry flag.
  ptx::Registers values(numRegisters + 1);
  for (auto [index, input] : llvm::enumerate(inputs)) {
    auto [bits, number] = constraints.operands[constraints.numResults + index];
    Value value = input;
    bool isInteger = isa<IntegerType>(value.getType());
    if (isInteger && ptx::getBits(value.getType()) < bits)
      value = ptx::resize(builder, op->getLoc(), value, bits);
    values[number] = value;
  }
  return values;
}

/// Replaces a structure of registers by their values. Who extracts one gets it:
/// registers of one instruction may be accumulators of several others, which
/// the structure would take for one.
static void replaceStructure(OpBuilder &builder, Value structure,
                             ArrayRef<Value> values) {
  for (Operation *user : llvm::make_early_inc_range(structure.getUsers())) {
    auto extract = dyn_cast<LLVM::ExtractValueOp>(user);
    if (!extract || extract.getPosition().size() != 1)
      continue;
    extract.replaceAllUsesWith(values[extract.getPosition().front()]);
    extract.erase();
  }
  if (structure.use_empty())
    return;
  Location loc = structure.getLoc();
  Value rebuilt = LLVM::UndefOp::create(builder, loc, structure.getType());
  for (auto [index, value] : llvm::enumerate(values))
    rebuilt = LLVM::InsertValueOp::create(builder, loc, rebuilt, value, index);
  structure.replaceAllUsesWith(rebuilt);
}

/// Replaces an op by the values of its first registers.
static void replaceByRegisters(Operation *op, const ptx::Translator &translator,
                               ArrayRef<Type> types) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  SmallVector<Value> results;
  for (auto [number, type] : llvm::enumerate(types)) {
    Value value = translator.getValue(number);
    if (!value) {
      results.push_back(LLVM::UndefOp::create(builder, loc, type));
      continue;
    }
    if (ptx::getBits(value.getType()) != ptx::getBits(type))
      value = ptx::resize(builder, loc, ptx::toInteger(builder, loc, value),
                          ptx::getBits(type));
    results.push_back(ptx::bitcast(builder, loc, value, type));
  }
  if (types.empty()) {
    op->erase();
    return;
  }
  Value result = op->getResult(0);
  if (isa<LLVM::LLVMStructType>(result.getType()))
    replaceStructure(builder, result, results);
  else
    result.replaceAllUsesWith(results.front());
  op->erase();
}

/// Replaces an op by what a text does with its operands.
static LogicalResult expand(Operation *op, ValueRange inputs, StringRef text,
                            const Constraints &constraints) {
  SmallVector<Type> types = getResultTypes(op);
  bool isComplete = constraints.numResults == types.size() &&
                    constraints.operands.size() == types.size() + inputs.size();
  if (!isComplete || !llvm::all_of(types, isInRegister) ||
      !llvm::all_of(inputs.getTypes(), isInRegister))
    return op->emitError("has operands that inline PTX can't have");
  std::string error;
  std::optional<ptx::Program> program =
      ptx::parse(text, constraints.operands, error);
  if (!program)
    return op->emitError("inline PTX ") << error;
  ptx::Translator translator(
      op, *program,
      getInitialValues(op, inputs, constraints, program->registers.size()));
  if (failed(translator.translate()))
    return failure();
  replaceByRegisters(op, translator, types);
  return success();
}

static LogicalResult expandAssembly(LLVM::InlineAsmOp op) {
  if (RegisterWgmma::get(op) || isRegisterFence(op))
    return success();
  std::optional<Constraints> constraints =
      parseConstraints(op.getConstraints());
  if (!constraints)
    return op.emitError("inline PTX has constraints that have no lowering: '")
           << op.getConstraints() << "'";
  SmallVector<Type> types = getResultTypes(op);
  for (auto [index, operand] : llvm::enumerate(constraints->operands))
    if (operand.bits == 0 && index >= types.size() &&
        index - types.size() < op.getNumOperands())
      operand.bits =
          ptx::getBits(op.getOperand(index - types.size()).getType());
  return expand(op, op.getOperands(), op.getAsmString(), *constraints);
}

/// Calls of intrinsics that have an instruction of another form than their
/// name; others stay as they are.
static LogicalResult expandIntrinsic(LLVM::CallIntrinsicOp op) {
  std::optional<std::string> text = getInstruction(op);
  if (!text)
    return success();
  Constraints constraints;
  auto add = [&](Type type) {
    unsigned number = constraints.operands.size();
    constraints.operands.push_back(
        {isInRegister(type) ? ptx::getBits(type) : 0, number});
  };
  llvm::for_each(getResultTypes(op), add);
  constraints.numResults = constraints.operands.size();
  llvm::for_each(op.getArgs().getTypes(), add);
  return expand(op, op.getArgs(), *text, constraints);
}

namespace {

struct ExpandInlinePTX : kvcache::impl::ExpandInlinePTXBase<ExpandInlinePTX> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<LLVM::InlineAsmOp, LLVM::CallIntrinsicOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
      LogicalResult result =
          assembly ? expandAssembly(assembly)
                   : expandIntrinsic(cast<LLVM::CallIntrinsicOp>(op));
      if (failed(result))
        return signalPassFailure();
    }
    const Chip *chip = getTargetChip(getOperation());
    resolveReflections(getOperation(),
                       [&](StringRef name) { return answer(name, chip); });
  }

private:
  /// The question that needs the chip; 0 is the answer to unknown ones.
  static std::optional<int64_t> answer(StringRef name, const Chip *chip) {
    if (name != "__CUDA_ARCH")
      return 0;
    return chip ? std::optional<int64_t>(chip->computeCapability * 10)
                : std::nullopt;
  }
};

} // namespace
