//===- Driver.h - The CUDA driver, opened at run time -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the types and values of the CUDA Driver API under the same names, so
// that building does not need CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_CUDA_DRIVER_H
#define KVCACHE_LIB_RUNTIME_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>

namespace mlir::kvcache::runtime::cuda {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;

inline CUdeviceptr toAddress(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_LAUNCH_FAILED = 719,
};
enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
};
enum CUjit_option : int {
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};
enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};
enum CUstreamCaptureStatus : int { CU_STREAM_CAPTURE_STATUS_NONE = 0 };
enum CUlaunchAttributeID : int {
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};
/// A value has 64 bytes, of which these are the ones in use.
struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char padding[4];
  union {
    unsigned clusterDim[3];
    int isProgrammatic;
    char bytes[64];
  };
};
struct CUlaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned numAttributes;
};
enum CUmemhostregister_flags : unsigned {
  CU_MEMHOSTREGISTER_PORTABLE = 1,
  CU_MEMHOSTREGISTER_DEVICEMAP = 2,
};
enum CUmemAttach_flags : unsigned { CU_MEM_ATTACH_GLOBAL = 1 };
enum CUstream_flags : unsigned {
  CU_STREAM_DEFAULT = 0,
  CU_STREAM_NON_BLOCKING = 1,
};
enum CUevent_flags : unsigned { CU_EVENT_DISABLE_TIMING = 2 };
enum CUtensorMapDataType : int {
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
  CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
  CU_TENSOR_MAP_DATA_TYPE_UINT64 = 4,
};
enum CUtensorMapInterleave : int { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 };
enum CUtensorMapSwizzle : int {
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B = 1,
  CU_TENSOR_MAP_SWIZZLE_64B = 2,
  CU_TENSOR_MAP_SWIZZLE_128B = 3,
};
enum CUtensorMapL2promotion : int {
  CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_64B = 1,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
};
enum CUtensorMapFloatOOBfill : int { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0 };

/// The functions of the driver, by name; null for newer functions that the
/// driver does not have.
struct Driver {
#define CUDA_FUNCTION(NAME, EXPORTED, VERSION, PARAMETERS)                     \
  CUresult(*NAME) PARAMETERS = nullptr;
#include "Functions.def"

  /// Returns the status of a call that returned `result`. On failure, sets the
  /// last error from `call`, its subject, if given, and the message of the
  /// driver.
  int32_t check(CUresult result, const char *call,
                const char *subject = nullptr) const;

  /// Whether work of a stream is captured into a graph.
  bool isCapturing(CUstream stream) const;
};

/// Returns the driver, which lives as long as the process. Returns null and
/// sets the last error if there is none.
const Driver *getDriver();

/// Sets `context` to the primary context of a device, which is retained once
/// and never released, because other code may use it at exit. A negative
/// number is the device of threads without a context.
int32_t getPrimaryContext(const Driver &driver, int device, CUcontext &context);

/// Returns the driver, and makes sure that
/// this thread has a current context. Returns null and sets the last error if
/// there is no driver.
const Driver *enterDriver();

/// Creates a stream of the current context.
int32_t createStream(void **stream, CUstream_flags flags);

/// Sets `capability` to that of the current device, or of `device`: major * 10
/// + minor.
int32_t getComputeCapability(const Driver &driver, int &capability);
int32_t getComputeCapability(const Driver &driver, CUdevice device,
                             int &capability);

} // namespace mlir::kvcache::runtime::cuda

#endif // KVCACHE_LIB_RUNTIME_CUDA_DRIVER_H
