//===- RegionRules.h - Rules of ops in regions ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IR_REGIONRULES_H
#define KVCACHE_LIB_IR_REGIONRULES_H

#include "mlir/IR/Operation.h"

namespace mlir::kvcache {

/// Whether an op at most reads memory, apart from the ops of its regions.
bool onlyReadsMemory(Operation *op);

/// Begins the error of an op that a region of `parent` excludes. The reason
/// follows: "which contains no calls".
InFlightDiagnostic refuseInRegion(Operation *op, Operation *parent);

/// Checks that an op in a region of `parent` is no call and at most reads
/// memory.
LogicalResult verifyReader(Operation *op, Operation *parent);

/// Verifies an op in a region that computes elements or rows of fragments.
LogicalResult verifyFragmentRegion(Operation *op, Operation *parent);

/// An operand with its name; the value may be null.
using NamedValue = std::pair<StringRef, Value>;

/// Verifies the ops in a region of `parent` that mean the same in all threads
/// and on all targets, and use no value of `written`. With `readsCaches`, ops
/// of the dialect may read caches.
LogicalResult verifyPortableRegion(Region &region, Operation *parent,
                                   ArrayRef<NamedValue> written,
                                   bool readsCaches);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_REGIONRULES_H
