//===- CheckedCall.h - Calls that a run-time check may stop -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_CHECKEDCALL_H
#define KVCACHE_PYTHON_CHECKEDCALL_H

#include <cstdint>
#include <optional>
#include <string>

namespace mlir::kvcache::python {

/// Calls compiled code. Returns the message of the check that stopped it, or
/// nothing if it ran to its end.
std::optional<std::string> callChecked(void (*entry)(void **), void **operands);

/// What compiled code calls, under the name `kvcacheCheckFailed`, where a check
/// fails: formats the message and returns to `callChecked`. What the code has
/// allocated by then is not freed.
[[noreturn]] void checkFailed(const char *format, int64_t value, int64_t bound);

/// Likewise, under the name `kvcacheDeviceFailed`, where a call of the device
/// fails.
[[noreturn]] void deviceFailed(const char *where, const char *message);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_CHECKEDCALL_H
