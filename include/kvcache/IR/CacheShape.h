//===- CacheShape.h - What a type says of descriptors -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_CACHESHAPE_H
#define KVCACHE_IR_CACHESHAPE_H

#include "kvcache/IR/KVCache.h"

namespace mlir::kvcache {

/// The shape of a view for the geometry of its descriptors, in stored elements.
tma::CacheShape getShape(CacheTypeInterface cache);

} // namespace mlir::kvcache

#endif // KVCACHE_IR_CACHESHAPE_H
