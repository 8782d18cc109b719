//===- MathCalls.h - Calls that are arithmetic ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_MATHCALLS_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_MATHCALLS_H

#include "EmulatorCalls.h"

namespace mlir::kvcache {

/// Lowers a call of an intrinsic of the chip (llvm.nvvm) that is arithmetic on
/// floats, and gives true, or gives false and leaves it as it is.
bool lowerArithmeticIntrinsic(LLVM::CallIntrinsicOp op, EmulatorCalls &calls);

/// Lowers an intrinsic that converts between formats of floats, or works on
/// integers.
bool lowerConversionIntrinsic(LLVM::CallIntrinsicOp op, EmulatorCalls &calls);

/// Lowers a call of CUDA's math library, which the machine need not have.
bool lowerLibdeviceCall(LLVM::CallOp op, EmulatorCalls &calls);

//===--- Conversions ---===//

/// The bits of a value, at most 32, extended with zeros.
Value getBits(Operation *op, Value value, EmulatorCalls &calls);
/// A value of the type with the lowest bits of an i32.
Value getFromBits(Operation *op, Value bits, Type type, EmulatorCalls &calls);

/// Replaces `op`, whose result holds the codes, by a conversion of two f32 to
/// codes of a KVCacheFormat. `random` may be null.
void replaceByConvertF32x2(Operation *op, Value high, Value low, Value random,
                           uint32_t format, uint32_t flags,
                           EmulatorCalls &calls);
/// Replaces a conversion of a vector of four f32.
void replaceByConvertF32x4(Operation *op, Value source, Value random,
                           uint32_t format, uint32_t flags,
                           EmulatorCalls &calls);
/// Replaces a conversion of two codes in one value.
void replaceByConvertPair(Operation *op, Value pair, uint32_t from, uint32_t to,
                          uint32_t flags, EmulatorCalls &calls);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_MATHCALLS_H
