//===- KVCacheToMemRef.h - Lower kvcache to memref -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_CONVERSION_KVCACHETOMEMREF_H
#define KVCACHE_CONVERSION_KVCACHETOMEMREF_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class Operation;
class RewritePatternSet;
class TypeConverter;

namespace kvcache {

/// Adds the conversions of cache types to their parts (1:N).
void populateKVCacheTypeConversions(TypeConverter &converter);

/// Adds the patterns that lower the ops of the dialect.
void populateKVCacheToMemRefPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns);

/// Checks that no op in `root` has fragments, which `kvcache-lower-fragments`
/// lowers in GPU code.
LogicalResult checkFragmentsAreLowered(Operation *root);

} // namespace kvcache
} // namespace mlir

#endif // KVCACHE_CONVERSION_KVCACHETOMEMREF_H
