//===- Encoding.h - TMA descriptors without a driver ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVIDIA does not document the layout of descriptors, so the emulator and the
// trace library use their own encoding in the same 128 bytes. Plain C++ without
// MLIR or LLVM.
//
//   byte   contents
//   0      magic number
//   8      base address
//   16     offset in bytes
//   24     5 strides in elements, of 8 bytes each
//   64     5 sizes, of 4 bytes each
//   84     5 box sides, of 2 bytes each
//   94     L2 promotion in bytes, 2 bytes
//   96     rank, 1 byte
//   97     bytes of an element, 1 byte
//   98     number of the swizzle in the enumeration, 1 byte
//   99     zeros
//
// Numbers have the byte order of the host. Entries of unused dimensions are
// zero.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TMA_ENCODING_H
#define KVCACHE_TMA_ENCODING_H

#include "kvcache/TMA/TensorMap.h"

namespace mlir::kvcache::tma {

/// The size and the alignment of a descriptor in bytes.
inline constexpr int64_t kDescriptorBytes = 128, kDescriptorAlignment = 64;

/// The contents of a descriptor: a tensor map and the address of its base.
struct Descriptor {
  TensorMap map;
  uint64_t base = 0;
  /// The bytes that a miss fetches from DRAM into L2: 64, 128 or 256, or 0 to
  /// let the hardware choose.
  int64_t l2Promotion = 0;
};

/// Writes the 128 bytes of a descriptor, which must be within all limits.
void encode(const Descriptor &descriptor, void *bytes);

/// Reads a descriptor that `encode` wrote; `nullopt` for other bytes.
std::optional<Descriptor> decode(const void *bytes);

} // namespace mlir::kvcache::tma

#endif // KVCACHE_TMA_ENCODING_H
