//===- Errors.cpp - Errors and the environment ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Support.h"

#include <cstdlib>

using namespace mlir::kvcache;

static thread_local std::string lastError;

const char *kvcacheGetLastError() { return lastError.c_str(); }

int32_t runtime::fail(const std::string &message) {
  lastError = message;
  return kFailure;
}

const char *runtime::getEnvironment(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? value : nullptr;
}

int32_t runtime::checkBytes(int64_t bytes) {
  if (bytes < 0)
    return fail("expects a number of bytes, got " + std::to_string(bytes));
  return kSuccess;
}
