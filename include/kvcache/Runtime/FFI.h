//===- FFI.h - The C ABI of calls and of their tensors ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_FFI_H
#define KVCACHE_RUNTIME_FFI_H

#include <cstddef>
#include <cstdint>
#include <string>

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

/// A call by a caller without TVM-FFI.
struct DirectCall {
  /// The error of the call: its kind, such as `kvcache.CheckError`, and its
  /// message.
  std::string errorKind, message;
  /// The stream of work on a GPU; the one of TVM-FFI unless `hasStream`.
  void *stream = nullptr;
  bool hasStream = false;
};

/// Makes the next call of this thread a direct one. Calls inside that call are
/// not.
void expectCall(DirectCall &call);

} // namespace mlir::kvcache::runtime

#endif // KVCACHE_RUNTIME_FFI_H
