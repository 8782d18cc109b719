//===- Call.h - The parts of a call through TVM-FFI -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_HOST_CALL_H
#define KVCACHE_LIB_RUNTIME_HOST_CALL_H

#include "kvcache/Runtime/FFI.h"
#include "kvcache/Runtime/TVMFFI.h"

#include <csetjmp>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace mlir::kvcache::runtime {

/// Sets the error of the calling thread, or of its direct call. Returns false.
bool raise(const char *kind, const std::string &message);

/// Raises an error that names an argument: `f: argument 0 ('m') expects
/// <wanted> for <type>, got <got>`. Returns false.
bool raiseWrong(const char *kind, const KVCacheFunction &function,
                int32_t index, const std::string &wanted,
                const std::string &got);

/// Checks a number or a tensor, and writes its words. Returns the end of the
/// words, or null after an error was raised.
int64_t *unpackNumber(const KVCacheFunction &function, int32_t index,
                      const ffi::Any &value, int64_t *words);
int64_t *unpackTensor(const KVCacheFunction &function, int32_t index,
                      const ffi::Any &value, int64_t *words);

/// Sets `device` to the number of the GPU that the tensors of a call are on; to
/// -1 if none is on a GPU. False after an error was raised because there are
/// several.
bool findDevice(const KVCacheFunction &function, const ffi::Any *args,
                int32_t &device);

/// Names a value for messages, such as `an int (5)`.
std::string describe(const ffi::Any &value);

/// Calls a function of libtvm_ffi, which any process that calls through it has
/// loaded. Null if there is none.
void *lookupTVMFFI(const char *name);

uint32_t encodeFloat(const KVCacheFloatFormat &format, int32_t bits,
                     double value);
double decodeFloat(const KVCacheFloatFormat &format, int32_t bits,
                   uint32_t code);

/// Where a failed check of a thread returns to. Frames nest where compiled code
/// calls Python.
struct CheckFrame {
  std::jmp_buf environment;
  CheckFrame *outer;
  /// Long enough for a deadlock's: a line for each group of threads.
  char message[8192];
  /// The memory that the call has allocated and not freed.
  std::unordered_set<void *> memory;
  /// Likewise of devices, and what frees it.
  std::unordered_map<void *, int32_t (*)(void *)> deviceMemory;

  void freeMemory();
};

/// Makes a frame the current one of its thread, or its outer one again.
void enter(CheckFrame &frame);
void leave(CheckFrame &frame);

/// Returns to the call that the message stops, or ends the program.
[[noreturn]] __attribute__((format(printf, 1, 2))) void stop(const char *format,
                                                             ...);

} // namespace mlir::kvcache::runtime

#endif // KVCACHE_LIB_RUNTIME_HOST_CALL_H
