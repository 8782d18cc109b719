//===- Call.h - The parts of a call through TVM-FFI -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_HOST_CALL_H
#define KVCACHE_LIB_RUNTIME_HOST_CALL_H

#include "kvcache/Runtime/TVMFFI.h"

#include <csetjmp>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace mlir::kvcache::runtime {

/// The part of DLPack and of TVM-FFI's C ABI that calls need.
namespace ffi {
enum TypeIndex : int32_t {
  kNone = 0,
  kInt = 1,
  kBool = 2,
  kFloat = 3,
  kDLTensor = 7,
  kObjectBegin = 64,
  kTensor = 70,
  kBigInt = 78
};

struct Any {
  int32_t type;
  uint32_t padding;
  union {
    int64_t integer;
    double real;
    void *pointer;
  };
};

struct Object {
  uint64_t references;
  int32_t type;
  uint32_t padding;
  void *deleter;
};

/// A number of 64-bit words in two's complement, the lowest first.
struct BigInt : Object {
  size_t size;
  uint64_t words[1];
};

struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct Device {
  int32_t type, id;
};

struct DLTensor {
  void *data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t *shape;
  /// In elements; null for C-contiguous tensors.
  int64_t *strides;
  uint64_t byteOffset;
};

struct Tensor : Object {
  DLTensor tensor;
};

struct Bytes {
  const char *data;
  size_t size;
};

enum DeviceType : int32_t {
  kCPU = 1,
  kCUDA = 2,
  kCUDAHost = 3,
  kCUDAManaged = 13
};
} // namespace ffi

/// Sets the error of the calling thread. Returns false.
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
