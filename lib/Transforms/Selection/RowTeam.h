//===- RowTeam.h - The threads of a row -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_ROWTEAM_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_ROWTEAM_H

#include "../Builders/Frame.h"

namespace mlir::kvcache {

/// The threads that select from one row: a block of a GPU, or one of a CPU.
struct RowTeam {
  const Frame &frame;
  /// The number of a thread in its team, and of the threads.
  Value thread;
  int64_t threads;

  /// Waits until all threads have come here.
  void sync() const;
  /// Runs `body` with each number below `end` in one of the threads.
  void forEach(Value end, function_ref<void(Value)> body) const;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_ROWTEAM_H
