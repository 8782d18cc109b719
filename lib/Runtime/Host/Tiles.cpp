//===- Tiles.cpp - The permission for tile registers ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Host.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

// Linux, "Using XSTATE features in user space applications". The kernel
// refuses if the processor has no tiles, or if it does not save them.
extern "C" int32_t kvcacheRequestTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}
#else
extern "C" int32_t kvcacheRequestTiles() { return 0; }
#endif
