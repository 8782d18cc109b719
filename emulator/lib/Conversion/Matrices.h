//===- Matrices.h - Matrix instructions and their programs ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_MATRICES_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_MATRICES_H

#include "EmulatorCalls.h"
#include "kvcache/Emulator/Matrices.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kvcache {

/// An element of a matrix, under its name in PTX.
struct MatrixElement {
  StringLiteral name;
  uint32_t kind;
  int64_t bits;
};

/// Null for a name that the emulator does not support.
const MatrixElement *findElement(StringRef name);

/// Whether a number or a vector of the type takes one register of 32 bits.
bool isMatrixRegister(Type type);

/// An ldmatrix, stmatrix or mma. See KVCacheMatrixInstruction.
struct MatrixInstruction {
  Operation *op = nullptr;
  uint32_t kind = 0, layout = 0, count = 0;
  /// The form of an mma.
  KVCacheMma mma = {};
  /// The address of a row; null for an mma.
  Value row;
  /// The registers of fragments, of 32 bits each. Those of stmatrix are A.
  ValueRange a, b, c;
  /// The types of D. An op with several has them in a structure.
  SmallVector<Type, 4> results;
};

/// Finds the matrix instruction of an op; none for other ops. Fails with an
/// error at the op where a form of it has no lowering.
FailureOr<std::optional<MatrixInstruction>>
parseMatrixInstruction(Operation *op);

/// Registers of a program, by number.
struct MatrixNumbers {
  uint32_t row = 0;
  SmallVector<uint32_t, 4> a, b, c, d;
};

/// Matrix instructions that follow one another. In the place of their ops is a
/// call with the values that come from elsewhere, whose result is a structure
/// of all registers that the instructions give.
struct MatrixProgram {
  struct Instruction {
    MatrixInstruction what;
    MatrixNumbers numbers;
    /// The location of the erased op.
    Location loc;
    StringRef name;
  };
  SmallVector<Instruction, 0> instructions;
  /// The register of each operand of the call, of which a pointer has two, and
  /// the instruction that is the first to use it.
  struct Input {
    uint32_t number;
    size_t user;
  };
  SmallVector<Input> inputs;
  /// The registers of each field of the result.
  SmallVector<uint32_t> outputs;
  uint32_t numRegisters = 0;
  /// Inputs that may be poisoned (`trackPoison`).
  SmallVector<int32_t> poisonable;
};

/// The programs of a module, by their calls.
using MatrixPrograms = llvm::MapVector<Operation *, MatrixProgram>;

/// The function of the runtime that runs a program.
inline constexpr llvm::StringLiteral kRunMatrices =
    "kvcacheEmulatorRunMatrices";

/// Whether an op is the call of a program.
bool isMatrixProgram(Operation *op);

/// Makes programs of all matrix instructions of a module. Ops between two of
/// one program stay before it or move after it. Fails with an error at an
/// op that has no lowering.
FailureOr<MatrixPrograms> createMatrixPrograms(gpu::GPUModuleOp module);

/// The words of a lane in the registers of its warp, for the code around the
/// call of a program.
class MatrixRegisters {
public:
  MatrixRegisters(Operation *call, const MatrixProgram &program,
                  EmulatorCalls &calls);

  /// The words of a register: its value, its poison, and the origin of that.
  enum class Plane : uint32_t { Value, Poison, Origin };

  void store(OpBuilder &builder, Value value, uint32_t number,
             Plane plane = Plane::Value);
  Value load(OpBuilder &builder, Type type, uint32_t number,
             Plane plane = Plane::Value);

private:
  Value getAddress(OpBuilder &builder, uint32_t number, Plane plane);

  const MatrixProgram &program;
  EmulatorCalls &calls;
  Location loc;
  /// The lane's words.
  Value words;
};

/// Lowers the calls of programs. Returns the registers that a warp needs.
int64_t lowerMatrixPrograms(const MatrixPrograms &programs,
                            EmulatorCalls &calls);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_MATRICES_H
