//===- Host.h - What compiled host code calls -*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_HOST_H
#define KVCACHE_RUNTIME_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Reports a run-time check that failed, and does not return. `format` is a
/// printf format for two `long long`: the value and the bound that it is not
/// below. libkvcache_runtime.so prints the message and exits with status 1;
/// a program that wants something else defines the function itself.
__attribute__((visibility("default"), noreturn)) void
kvcacheCheckFailed(const char *format, int64_t value, int64_t bound);

/// Reports a call of a function of Device.h that failed, in the same way, and
/// does not return: `where` is the place in the source and what was done there,
/// such as `gather.mlir:12:3: launch of @kernels::@gather`, and `message` what
/// `kvcacheGetLastError` says. Printed as `where: message`.
__attribute__((visibility("default"), noreturn)) void
kvcacheDeviceFailed(const char *where, const char *message);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_RUNTIME_HOST_H
