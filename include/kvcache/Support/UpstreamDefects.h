//===- UpstreamDefects.h - Defects of LLVM and ptxas ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workaround of a defect of LLVM 22.1, MLIR or ptxas 13.0 asks here whether
// it is needed. For each defect, test/Upstream has a report with a reproducer.
// The test of a reproducer fails when a newer tool has no such defect: then
// give the constant the version, and delete it with its workaround when no
// older version is supported.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_UPSTREAMDEFECTS_H
#define KVCACHE_SUPPORT_UPSTREAMDEFECTS_H

#include "llvm/Config/llvm-config.h"

namespace mlir::kvcache::upstream {

/// Whether NVPTX writes `atomicrmw` without its memory order; mended by
/// llvm-project#179553. Report: atomic-order.ll.
inline constexpr bool dropsAtomicOrder = LLVM_VERSION_MAJOR < 23;

/// Whether `arith` folds conversions of f8E8M0FNU to infinity and to negative
/// numbers. llvm-project#214919 mends the former. Report: e8m0-folds.mlir.
inline constexpr bool foldsE8M0Wrongly = true;

/// Whether `populateIntRangeNarrowingPatterns` narrows signed ops whose
/// operands fit only as unsigned numbers. Report: integer-narrowing.mlir.
inline constexpr bool narrowsSignedOps = true;

/// Whether `#nvvm.target` rejects tcgen05 for chips other than sm_100a and
/// sm_101a. Report: tcgen05-chips.mlir.
inline constexpr bool rejectsTcgen05 = true;

/// Whether conversions of functions cast attributes of `llvm.func` without a
/// check. Report: function-attributes.mlir.
inline constexpr bool castsFunctionAttributes = true;

/// Whether the low byte of a float in a register becomes that of an integer in
/// ptxas. Report: float-bytes.ptx.
inline constexpr bool convertsLowBytes = true;

/// Whether X86 never ends to select instructions for some interleaved bytes.
/// Report: byte-interleave.ll.
inline constexpr bool hangsOnInterleave = true;

} // namespace mlir::kvcache::upstream

#endif // KVCACHE_SUPPORT_UPSTREAMDEFECTS_H
