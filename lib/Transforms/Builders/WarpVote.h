//===- WarpVote.h - Votes of the lanes of a warp ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_BUILDERS_WARPVOTE_H
#define KVCACHE_LIB_TRANSFORMS_BUILDERS_WARPVOTE_H

#include "Frame.h"

namespace mlir::kvcache {

/// The lanes of a warp for which a flag holds, as bits of an i32.
Value ballot(const Frame &frame, Value flag);
/// The lanes before one, as such bits; `lane` is an index.
Value getLowerLanes(const Frame &frame, Value lane);
/// The number of lanes.
Value countLanes(const Frame &frame, Value lanes);
/// The number of lanes that are in both.
Value countLanes(const Frame &frame, Value lanes, Value others);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_BUILDERS_WARPVOTE_H
