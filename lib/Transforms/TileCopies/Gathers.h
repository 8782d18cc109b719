//===- Gathers.h - Tensor copies of any rows --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_GATHERS_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_GATHERS_H

#include "Blocks.h"

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// Emits a copy with row ids as `tma_gather4` of the issuer, and does not erase
/// the copy. All lanes compute the rows, and one of them issues, in a loop if
/// there are many copies.
void emitGather(const IndexBuilder &b, TileCopyOpInterface op, Barrier barrier,
                const Issuer &issuer);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_GATHERS_H
