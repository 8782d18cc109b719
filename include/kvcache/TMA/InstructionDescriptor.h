//===- InstructionDescriptor.h - Products of tcgen05 ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The 32 bits that give `tcgen05.mma` the shape and types of a dense
// product: PTX ISA, "Instruction descriptor". Plain C++ without MLIR or LLVM.
//
//   bits    value
//   4-5     type of D: 0 f16, 1 f32, 2 s32
//   7-9     type of A, by the kind of product: f16 0, bf16 1; e4m3 0, e5m2 1;
//           u8 0, s8 1
//   10-12   type of B
//   15, 16  whether A, B are MN-major
//   17-22   n / 8
//   24-28   m / 16
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TMA_INSTRUCTIONDESCRIPTOR_H
#define KVCACHE_TMA_INSTRUCTIONDESCRIPTOR_H

#include "kvcache/TMA/TensorMap.h"

#include <cstdint>

namespace mlir::kvcache::tma {

/// The properties of a product of tcgen05.
struct InstructionDescriptor {
  /// The codes of types, of all kinds of products.
  enum Type : uint8_t {
    F16 = 0,
    BF16 = 1,
    E4M3 = 0,
    E5M2 = 1,
    U8 = 0,
    S8 = 1,
  };
  enum Result : uint8_t { ResultF16 = 0, ResultF32 = 1, ResultS32 = 2 };

  /// m is a multiple of 16, and n of 8.
  uint32_t m = 0, n = 0;
  Result d = ResultF32;
  Type a = F16, b = F16;
  Major majorA = Major::K, majorB = Major::K;

  uint32_t encode() const;
};

} // namespace mlir::kvcache::tma

#endif // KVCACHE_TMA_INSTRUCTIONDESCRIPTOR_H
