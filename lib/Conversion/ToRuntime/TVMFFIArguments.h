//===- TVMFFIArguments.h - What TVM-FFI can pass to functions ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_TORUNTIME_TVMFFIARGUMENTS_H
#define KVCACHE_LIB_CONVERSION_TORUNTIME_TVMFFIARGUMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mlir::kvcache {

/// A type of numbers: DLPack's code, and bits in a register and in memory.
struct NumberType {
  int32_t code, bits, memoryBits;
  bool isSignless;
};

/// Nothing for types that are not numbers of at most 64 bits.
std::optional<NumberType> getNumberType(Type type);

/// The type of the elements of a memref that a tensor can stand for: one with
/// strides, of elements that DLPack has a type for.
std::optional<NumberType> getElementType(Type type);

std::string toString(Type type);

/// Why a function can't be called; empty if it can.
std::string findObstacle(func::FuncOp function);

/// Adds the flags and the alignment that a memref argument has beyond those of
/// its type. Kernels expect more of dense rows than loops of the CPU do.
void addUses(BlockArgument argument, func::FuncOp function, bool isOfGPU,
             int32_t &flags, int32_t &alignment);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_TORUNTIME_TVMFFIARGUMENTS_H
