//===- DeviceCalls.h - Calls of the C ABI of a device -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_LOWERLAUNCHES_DEVICECALLS_H
#define KVCACHE_LIB_CONVERSION_LOWERLAUNCHES_DEVICECALLS_H

#include "../RuntimeCalls/RuntimeCalls.h"
#include "kvcache/IR/KVCache.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::kvcache {

/// Calls of the functions in `kvcache/Runtime/Device.h`, with what they take:
/// addresses of structures in the frame of the calling function.
class DeviceCalls {
public:
  explicit DeviceCalls(ModuleOp module);

  /// Calls a function that returns a status. Where it fails, the program ends
  /// with a message that says where and what was done, such as `launch of
  /// @kernels::@gather`.
  void call(OpBuilder &builder, Location loc, StringRef function,
            ValueRange operands, const Twine &what);
  /// The same for the status of a call that has been made.
  void check(OpBuilder &builder, Location loc, Value status, const Twine &what);

  /// Memory in the frame of the calling function. There is one slot for an op
  /// that runs many times.
  Value createSlot(OpBuilder &builder, Location loc, Type type,
                   int64_t alignment = 8);
  /// The same, holding `value`.
  Value createSlot(OpBuilder &builder, Location loc, Value value,
                   int64_t alignment = 8);

  /// The default stream.
  Value getStream(OpBuilder &builder, Location loc);

  /// Ends an op whose work has been put on the default stream. An `async` one
  /// has the stream, which keeps the order, for its token; any other waits.
  void finish(OpBuilder &builder, gpu::AsyncOpInterface op, const Twine &what);
  /// The same for an op that leaves no work on the stream.
  void replaceToken(OpBuilder &builder, gpu::AsyncOpInterface op);

  RuntimeCalls runtime;
  LLVM::LLVMPointerType pointerType;
  IntegerType i32, i64;
};

/// An integer or index as i64.
Value toI64(OpBuilder &builder, Location loc, Value value);

/// CUDA Driver API, "CUtensorMap".
inline constexpr int64_t kDescriptorBytes = 128, kDescriptorAlignment = 64;

/// The value type that a descriptor has in host code: its bytes.
VectorType getDescriptorBytesType(MLIRContext *context);

/// Replaces `binary` by a constant `KVCacheBinary` of the same name.
LogicalResult lowerBinary(gpu::BinaryOp binary, RuntimeCalls &runtime);

/// Binaries are lowered before launches.
LogicalResult lowerLaunch(gpu::LaunchFuncOp launch, DeviceCalls &device);

/// Encodes a descriptor into memory in the frame of the calling function.
/// Returns the status of the call, and the memory.
std::pair<Value, Value>
encodeTensorMap(OpBuilder &builder, EncodeTensorMapOp op, DeviceCalls &device);

/// The uses get bytes in place of a descriptor: the caller makes types agree.
void lowerTensorMap(EncodeTensorMapOp op, DeviceCalls &device);

LogicalResult lowerAlloc(gpu::AllocOp op, DeviceCalls &device);
void lowerDealloc(gpu::DeallocOp op, DeviceCalls &device);
LogicalResult lowerMemcpy(gpu::MemcpyOp op, DeviceCalls &device);
LogicalResult lowerMemset(gpu::MemsetOp op, DeviceCalls &device);
void lowerWait(gpu::WaitOp op, DeviceCalls &device);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_LOWERLAUNCHES_DEVICECALLS_H
