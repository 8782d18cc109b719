//===- LowerMatrixPrograms.cpp - Calls that run programs ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Matrices.h"

#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

MatrixRegisters::MatrixRegisters(Operation *call, const MatrixProgram &program,
                                 EmulatorCalls &calls)
    : program(program), calls(calls), loc(call->getLoc()) {
  OpBuilder builder(call);
  Value base = calls.loadField(call, offsetof(KVCacheThread, registers),
                               calls.pointerType);
  Value lane = calls.loadField(call, offsetof(KVCacheThread, lane), calls.i32);
  words = LLVM::GEPOp::create(builder, loc, calls.pointerType, calls.i32, base,
                              ArrayRef<LLVM::GEPArg>{lane});
}

Value MatrixRegisters::getAddress(OpBuilder &builder, uint32_t number,
                                  Plane plane) {
  uint32_t row = static_cast<uint32_t>(plane) * program.numRegisters + number;
  return LLVM::GEPOp::create(
      builder, loc, calls.pointerType, calls.i8, words,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(row * KVCacheRegisterBytes)});
}

void MatrixRegisters::store(OpBuilder &builder, Value value, uint32_t number,
                            Plane plane) {
  // A lane keeps to its column: others may not have read their results yet.
  if (isa<LLVM::LLVMPointerType>(value.getType())) {
    constexpr int64_t bits = 32;
    Value address = LLVM::PtrToIntOp::create(builder, loc, calls.i64, value);
    store(builder, LLVM::TruncOp::create(builder, loc, calls.i32, address),
          number, plane);
    Value width = LLVM::ConstantOp::create(builder, loc, calls.i64,
                                           builder.getI64IntegerAttr(bits));
    address = LLVM::LShrOp::create(builder, loc, address, width);
    store(builder, LLVM::TruncOp::create(builder, loc, calls.i32, address),
          number + 1, plane);
    return;
  }
  LLVM::StoreOp::create(builder, loc, value, getAddress(builder, number, plane),
                        /*alignment=*/4);
}

Value MatrixRegisters::load(OpBuilder &builder, Type type, uint32_t number,
                            Plane plane) {
  return LLVM::LoadOp::create(builder, loc, type,
                              getAddress(builder, number, plane),
                              /*alignment=*/4);
}

//===----------------------------------------------------------------------===//
// Lowering
//===----------------------------------------------------------------------===//

namespace {

/// Lowers programs; instructions of one form share what describes it.
class ProgramLowering {
public:
  explicit ProgramLowering(EmulatorCalls &calls)
      : calls(calls), runtime(calls.runtime) {}

  void lower(Operation *op, const MatrixProgram &program);

private:
  LLVM::GlobalOp createProgram(Location loc, const MatrixProgram &program);
  LLVM::GlobalOp createInstructions(Location loc, const MatrixProgram &program);
  LLVM::GlobalOp getMma(Location loc, const KVCacheMma &mma);

  EmulatorCalls &calls;
  RuntimeCalls &runtime;
  std::map<std::array<uint32_t, sizeof(KVCacheMma) / sizeof(uint32_t)>,
           LLVM::GlobalOp>
      forms;
};

} // namespace

LLVM::GlobalOp ProgramLowering::getMma(Location loc, const KVCacheMma &mma) {
  std::array fields{mma.m, mma.n, mma.k, mma.a,
                    mma.b, mma.c, mma.d, mma.isSaturated};
  LLVM::GlobalOp &form = forms[fields];
  if (!form)
    form = runtime.createStruct(
        loc, "kvcache_mma", SmallVector<Type>(fields.size(), calls.i32),
        [&](FieldBuilder &record, OpBuilder &) {
          for (auto [index, field] : llvm::enumerate(fields))
            record.set(field, calls.i32, static_cast<int64_t>(index));
        });
  return form;
}

LLVM::GlobalOp
ProgramLowering::createInstructions(Location loc,
                                    const MatrixProgram &program) {
  Type pointer = calls.pointerType, i32 = calls.i32;
  auto four = LLVM::LLVMArrayType::get(i32, 4);
  auto two = LLVM::LLVMArrayType::get(i32, 2);
  return runtime.createStructs(
      loc, "kvcache_matrix_instructions",
      {pointer, pointer, i32, i32, i32, i32, four, two, four, four},
      program.instructions.size(),
      [&](size_t index, FieldBuilder &fields, OpBuilder &builder) {
        const auto &[what, numbers, instructionLoc, name] =
            program.instructions[index];
        fields.set(calls.getSite(builder, instructionLoc, name), 0);
        bool isMma = what.kind == KVCacheMatrixMultiply;
        fields.set(
            isMma
                ? LLVM::AddressOfOp::create(builder, loc, getMma(loc, what.mma))
                      .getResult()
                : LLVM::ZeroOp::create(builder, loc, pointer).getResult(),
            1);
        fields.set(what.kind, i32, 2);
        fields.set(what.layout, i32, 3);
        fields.set(what.count, i32, 4);
        fields.set(numbers.row, i32, 5);
        int64_t field = 6;
        const std::pair<ArrayRef<uint32_t>, int64_t> parts[] = {
            {numbers.a, 4}, {numbers.b, 2}, {numbers.c, 4}, {numbers.d, 4}};
        for (const auto &[list, size] : parts) {
          for (int64_t i = 0; i < size; ++i)
            fields.set(i < static_cast<int64_t>(list.size()) ? list[i] : 0, i32,
                       {field, i});
          ++field;
        }
      });
}

LLVM::GlobalOp ProgramLowering::createProgram(Location loc,
                                              const MatrixProgram &program) {
  Type pointer = calls.pointerType, i64 = calls.i64;
  LLVM::GlobalOp instructions = createInstructions(loc, program);
  auto poisonableType =
      LLVM::LLVMArrayType::get(calls.i32, program.poisonable.size());
  LLVM::GlobalOp poisonable = runtime.createConstant(
      loc, "kvcache_poisonable", poisonableType,
      Builder(loc.getContext()).getI32TensorAttr(program.poisonable));
  auto site =
      LLVM::LLVMStructType::getLiteral(loc.getContext(), {pointer, pointer});
  return runtime.createStruct(
      loc, "kvcache_matrices", {site, pointer, i64, i64, pointer, i64},
      [&](FieldBuilder &fields, OpBuilder &builder) {
        const MatrixProgram::Instruction &first = program.instructions[0];
        auto [name, where] = calls.describeSite(builder, first.loc, first.name);
        fields.set(name, {0, 0});
        fields.set(where, {0, 1});
        fields.set(LLVM::AddressOfOp::create(builder, loc, instructions), 1);
        fields.set(program.instructions.size(), i64, 2);
        fields.set(program.numRegisters, i64, 3);
        fields.set(LLVM::AddressOfOp::create(builder, loc, poisonable), 4);
        fields.set(program.poisonable.size(), i64, 5);
      });
}

void ProgramLowering::lower(Operation *op, const MatrixProgram &program) {
  Location loc = op->getLoc();
  OpBuilder builder(op);
  MatrixRegisters registers(op, program, calls);
  for (auto [operand, input] : llvm::zip(op->getOperands(), program.inputs)) {
    if (auto type = dyn_cast<LLVM::LLVMPointerType>(operand.getType());
        type && type != calls.pointerType)
      operand = LLVM::AddrSpaceCastOp::create(builder, loc, calls.pointerType,
                                              operand);
    registers.store(builder, operand, input.number);
  }
  Value address =
      LLVM::AddressOfOp::create(builder, loc, createProgram(loc, program));
  runtime.call(builder, loc, kRunMatrices, Type(),
               {calls.getThread(op), address});
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    auto extract = cast<LLVM::ExtractValueOp>(user);
    extract.replaceAllUsesWith(registers.load(
        builder, extract.getType(), program.outputs[extract.getPosition()[0]]));
    extract.erase();
  }
  op->erase();
}

int64_t kvcache::lowerMatrixPrograms(const MatrixPrograms &programs,
                                     EmulatorCalls &calls) {
  ProgramLowering lowering(calls);
  int64_t numRegisters = 0;
  for (const auto &[op, program] : programs) {
    lowering.lower(op, program);
    numRegisters = std::max<int64_t>(numRegisters, program.numRegisters);
  }
  constexpr int64_t numPlanes = 3;
  return calls.isSanitized ? numPlanes * numRegisters : numRegisters;
}
