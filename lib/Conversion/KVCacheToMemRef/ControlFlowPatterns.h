//===- ControlFlowPatterns.h - Values of several parts ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_CONTROLFLOWPATTERNS_H
#define KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_CONTROLFLOWPATTERNS_H

#include "mlir/Transforms/DialectConversion.h"

namespace mlir::kvcache {

/// The results of an op with a region, each of several parts.
struct ExpandedResults {
  SmallVector<Type> types;
  SmallVector<size_t> counts;

  static FailureOr<ExpandedResults> get(const TypeConverter &converter,
                                        TypeRange types);
  /// The parts of each result among those of the expanded op.
  SmallVector<ValueRange> split(ValueRange results) const;
};

/// Adds the patterns for functions, calls, kernels, launches, selects, regions
/// and branches that pass on values of types with parts, and when these are
/// legal.
void populateControlFlowPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns,
                                 ConversionTarget &target);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_CONTROLFLOWPATTERNS_H
