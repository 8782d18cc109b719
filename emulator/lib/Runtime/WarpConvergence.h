//===- WarpConvergence.h - Lanes at a warp instruction ----------*- C++ -*-===//
//-*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_WARPCONVERGENCE_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_WARPCONVERGENCE_H

#include "Block.h"

namespace mlir::kvcache::emulator {

/// A lane that brings one value and gets another.
struct ValueLane : WarpLane {
  uint32_t value = 0, result = 0;
};

/// An instruction at which lanes of one warp converge.
class WarpConvergence : public Waitable {
public:
  std::string describe() const override;

  /// Calls `function` with the number and the operands of each lane that
  /// has arrived.
  template <typename Lane, typename Function> void forEach(Function function) {
    for (uint32_t rest = reached; rest; rest &= rest - 1) {
      uint32_t number = __builtin_ctz(rest);
      function(number, static_cast<Lane &>(*lanes[number]));
    }
  }

  /// The operands of a lane that has arrived.
  template <typename Lane> Lane &get(uint32_t number) {
    return static_cast<Lane &>(*lanes[number]);
  }

  bool has(uint32_t lane) const { return reached >> lane & 1; }

  uint32_t warp = 0;
  const KVCacheSite *site = nullptr;
  WarpWork work = nullptr;
  WarpRule rule = WarpRule::SameSite;
  /// The lanes that must converge, and those that have arrived.
  uint32_t mask = 0, reached = 0;
  WarpLane *lanes[kWarpSize] = {};
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_WARPCONVERGENCE_H
