//===- Emitter.h - One instruction of inline PTX as ops ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IMPORT_PTX_EMITTER_H
#define KVCACHE_LIB_IMPORT_PTX_EMITTER_H

#include "Program.h"
#include "Types.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::kvcache::ptx {

/// Spaces of pointers.
inline constexpr unsigned kGeneric = 0;
inline constexpr auto kGlobal =
    static_cast<unsigned>(NVVM::NVVMMemorySpace::Global);
inline constexpr auto kShared =
    static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
inline constexpr auto kCluster =
    static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster);

/// The values of the registers at one place of a program, and of the carry
/// flag. An uninitialized register has none.
using Registers = SmallVector<Value>;

//===--- Bits as values of any type ---===//

/// The bits that a value of a type has in registers.
unsigned getBits(mlir::Type type);
Value toInteger(OpBuilder &builder, Location loc, Value value);
/// Truncates an integer, or extends it by zeros or by its sign.
Value resize(OpBuilder &builder, Location loc, Value integer, unsigned bits,
             bool isSigned = false);
/// Gives the bits of a value another type of the same width.
Value bitcast(OpBuilder &builder, Location loc, Value value, mlir::Type type);

/// Builds the ops of one instruction, with its modifiers and operands. The
/// first error is kept: ops that are built after it don't matter.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, const Program &program,
          const Statement &statement, Registers &values)
      : builder(builder), loc(loc), program(program), statement(statement),
        values(values), isTaken(statement.name.size()) {
    isTaken[0] = true;
  }

  //===--- Modifiers ---===//

  bool has(StringRef modifier) const {
    return llvm::is_contained(statement.name, modifier);
  }
  /// Takes a modifier, if it is there.
  bool take(StringRef modifier);
  /// Takes the first of these that is there; empty if none is.
  StringRef takeOneOf(ArrayRef<StringRef> modifiers);
  /// The one of these that comes first in the name; empty if none is there.
  StringRef findFirst(ArrayRef<StringRef> modifiers) const;
  /// Takes the modifiers that begin like this. Gives what follows in the last.
  std::optional<StringRef> takePrefix(StringRef prefix);
  /// Takes all that are left.
  SmallVector<StringRef> takeRest();
  /// Takes the last modifier that is a type; fails if none is.
  PTXType takeType();
  /// The type of a second takeType, if there is one.
  std::optional<PTXType> takeOptionalType();
  /// Takes a scope: `cta`, `cluster`, `gpu` or `sys`; `otherwise` if none is
  /// there.
  NVVM::MemScopeKind takeScope(NVVM::MemScopeKind otherwise);
  /// Takes what says only how caches behave. True if the last operand is a
  /// policy.
  bool takeCacheHints();
  /// Takes a state space of pointers. PTX ISA, "State Spaces".
  unsigned takeSpace();

  //===--- Operands ---===//

  size_t size() const { return statement.operands.size(); }
  const Operand &get(size_t index);
  /// Fails unless there are so many, or from `least` to `most`.
  bool expectOperands(size_t least, size_t most);
  bool expectOperands(size_t count) { return expectOperands(count, count); }

  /// The bits of an operand as an integer. A wider register gives its low bits,
  /// a narrower one is extended by zeros.
  Value getInteger(size_t index, unsigned bits) {
    return getInteger(get(index), bits);
  }
  Value getInteger(const Operand &operand, unsigned bits);
  /// A register that holds a value of this type.
  Value getValue(size_t index, mlir::Type type) {
    return getValue(get(index), type);
  }
  Value getValue(const Operand &operand, mlir::Type type);
  Value getPredicate(size_t index) { return getInteger(index, 1); }
  /// The parts of a vector, or the operand itself.
  ArrayRef<Operand> getParts(size_t index);
  SmallVector<Value> getValues(size_t index, mlir::Type type);
  /// Gives the value of a constant operand; fails for another.
  int64_t getConstant(size_t index);
  /// Whether a predicate is true, if it is known.
  std::optional<bool> getKnownPredicate(size_t index);
  /// The address of `[a + 16]`, in a space of pointers.
  Value getAddress(size_t index, unsigned space);
  /// Any operand as a pointer.
  Value getPointer(const Operand &operand, unsigned space);

  /// Sets a register. A narrower value is extended, by its sign if it has one.
  void set(size_t index, Value value, bool isSigned = false) {
    set(get(index), value, isSigned);
  }
  void set(const Operand &operand, Value value, bool isSigned = false);
  void setAll(size_t index, ValueRange values, bool isSigned = false);

  /// The carry flag, as i1: PTX ISA, "Extended-Precision Integer Arithmetic
  /// Instructions". Predicated instructions and branches lose it.
  Value getCarry();
  void setCarry(Value isCarry);

  //===--- Values ---===//

  Value constant(int64_t value, unsigned bits);
  Value call(StringRef intrinsic, mlir::Type type, ValueRange operands);
  Value toInteger(Value value) { return ptx::toInteger(builder, loc, value); }
  Value resize(Value integer, unsigned bits, bool isSigned = false) {
    return ptx::resize(builder, loc, integer, bits, isSigned);
  }
  Value bitcast(Value value, mlir::Type type) {
    return ptx::bitcast(builder, loc, value, type);
  }
  Value castPointer(Value pointer, unsigned space);
  IntegerType getIntegerType(unsigned bits) {
    return builder.getIntegerType(bits);
  }
  /// The type of a float or of a pair of floats; an integer of other types.
  mlir::Type convert(const PTXType &type);
  LLVM::LLVMPointerType getPointerType(unsigned space) {
    return LLVM::LLVMPointerType::get(builder.getContext(), space);
  }

  //===--- The end ---===//

  void fail(const Twine &message);
  bool hasFailed() const { return !error.empty(); }
  /// Fails for a modifier that no call has taken. Empty if all went well.
  std::string takeError();

  OpBuilder &builder;
  const Location loc;

private:
  Value getRegister(const Operand &operand);
  Value readSpecial(const Operand &operand);

  const Program &program;
  const Statement &statement;
  Registers &values;
  SmallVector<bool> isTaken;
  std::string error;
};

/// Creates an op on two integers.
using IntegerOp = Value (*)(Emitter &emitter, Value a, Value b);

/// The op that an instruction is on integers; null for other instructions.
IntegerOp getIntegerOp(StringRef name, bool isSigned);

/// Emits an instruction; false for one that the family does not have.
using EmitFamily = bool (*)(StringRef name, Emitter &emitter);

bool emitArithmetic(StringRef name, Emitter &emitter);
bool emitComparison(StringRef name, Emitter &emitter);
bool emitConversion(StringRef name, Emitter &emitter);
bool emitMemory(StringRef name, Emitter &emitter);
bool emitCopy(StringRef name, Emitter &emitter);
bool emitBarrier(StringRef name, Emitter &emitter);
bool emitControl(StringRef name, Emitter &emitter);
bool emitWarp(StringRef name, Emitter &emitter);
bool emitMatrix(StringRef name, Emitter &emitter);
bool emitTensorMemory(StringRef name, Emitter &emitter);

} // namespace mlir::kvcache::ptx

#endif // KVCACHE_LIB_IMPORT_PTX_EMITTER_H
