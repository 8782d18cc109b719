//===- Operations.h - Operations of the kvcache dialect -----------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_C_OPERATIONS_H
#define KVCACHE_C_OPERATIONS_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Adds operands to the state of an op of the dialect, by the names that they
/// have in its documentation, in any order. Null operands are left out. Those
/// of one name stay in their order. Call it once for a state; then add results
/// and attributes, and create the operation as any other.
///
/// A name that the op does not have, or has for one operand and gets for
/// several, and a missing operand that is not optional are errors at the
/// location of the state. Then the state is as before, and the result is a
/// failure.
MLIR_CAPI_EXPORTED MlirLogicalResult mlirKVCacheOperationStateAddNamedOperands(
    MlirOperationState *state, intptr_t numOperands, const MlirStringRef *names,
    const MlirValue *operands);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_C_OPERATIONS_H
