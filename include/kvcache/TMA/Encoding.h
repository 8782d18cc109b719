//===- Encoding.h - TMA descriptors without a driver ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layout of NVIDIA's descriptors is not documented, so what runs without a
// GPU has its own, of the same 128 bytes. Plain C++ without MLIR or LLVM.
//
//   bytes  what
//   0      magic number
//   8      base address
//   16     offset in bytes
//   24     5 strides in elements, of 8 bytes each
//   64     5 sizes, of 4 bytes each
//   84     5 box sides, of 2 bytes each
//   94     L2 promotion in bytes, 2 bytes
//   96     rank, 1 byte
//   97     bytes of an element, 1 byte
//   98     swizzle, as the enumeration counts, 1 byte
//   99     zeros
//
// Numbers are in the byte order of the host; dimensions that the tensor lacks
// are zeros.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TMA_ENCODING_H
#define KVCACHE_TMA_ENCODING_H

#include "kvcache/TMA/TensorMap.h"

namespace mlir::kvcache::tma {

/// The size of a descriptor, and what its address is a multiple of.
inline constexpr int64_t kDescriptorBytes = 128, kDescriptorAlignment = 64;

/// A tensor map of memory at a known address: all that a descriptor says.
struct Descriptor {
  TensorMap map;
  uint64_t base = 0;
  /// How much of DRAM a miss brings into L2: 64, 128 or 256 bytes, 0 for what
  /// the hardware chooses.
  int64_t l2Promotion = 0;
};

/// Writes the 128 bytes of a descriptor. It must keep all limits.
void encode(const Descriptor &descriptor, void *bytes);

/// What `encode` wrote there; none if it was something else.
std::optional<Descriptor> decode(const void *bytes);

} // namespace mlir::kvcache::tma

#endif // KVCACHE_TMA_ENCODING_H
