//===- Host.cpp - C functions for errors of compiled host code ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Host.h"

#include <cstdio>
#include <cstdlib>

extern "C" void kvcacheCheckFailed(const char *format, int64_t value,
                                   int64_t bound) {
  std::fflush(stdout);
  std::fprintf(stderr, format, static_cast<long long>(value),
               static_cast<long long>(bound));
  std::fputc('\n', stderr);
  std::exit(1);
}

extern "C" void kvcacheDeviceFailed(const char *where, const char *message) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", where, message);
  std::exit(1);
}
