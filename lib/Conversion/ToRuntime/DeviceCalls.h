//===- DeviceCalls.h - Calls of the C ABI of a device -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_TORUNTIME_DEVICECALLS_H
#define KVCACHE_LIB_CONVERSION_TORUNTIME_DEVICECALLS_H

#include "kvcache/IR/TensorMapOps.h"
#include "kvcache/Support/RuntimeCalls.h"
#include "kvcache/TMA/Encoding.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::kvcache {

/// Builds calls of the functions in `kvcache/Runtime/Device.h`, and their
/// operands: addresses of structures in the stack frame of the caller.
class DeviceCalls {
public:
  explicit DeviceCalls(ModuleOp module, bool callerWaits = false);

  /// Calls a function that returns a status. If it fails, the program ends with
  /// a message of the location and the operation, such as `launch of
  /// @kernels::@gather`.
  void call(OpBuilder &builder, Location loc, StringRef function,
            ValueRange operands, const Twine &what);
  /// Checks the status of a call in the same way.
  void check(OpBuilder &builder, Location loc, Value status, const Twine &what);

  /// Creates memory in the stack frame of the caller. All executions of an op
  /// share one slot.
  Value createSlot(OpBuilder &builder, Location loc, Type type,
                   int64_t alignment = 8);
  /// Creates a slot and stores `value` in it.
  Value createSlot(OpBuilder &builder, Location loc, Value value,
                   int64_t alignment = 8);

  /// Returns the stream of the scope: the default stream unless the caller has
  /// chosen another.
  Value getStream(OpBuilder &builder, Location loc);

  /// Replaces an op whose work is on the stream of the scope. The token of an
  /// `async` op becomes the stream, which keeps the order. For any other op,
  /// the host waits for the stream, unless that is left to the caller.
  void finish(OpBuilder &builder, gpu::AsyncOpInterface op, const Twine &what);
  /// Replaces an op that leaves no work on the stream.
  void replaceToken(OpBuilder &builder, gpu::AsyncOpInterface op);

  RuntimeCalls runtime;
  /// Whether only `gpu.wait` waits.
  bool callerWaits;
  LLVM::LLVMPointerType pointerType;
  IntegerType i32, i64;
};

/// Casts an integer or index to i64.
Value toI64(OpBuilder &builder, Location loc, Value value);

using tma::kDescriptorAlignment;
using tma::kDescriptorBytes;

/// Returns the type of a descriptor in host code: a vector of its bytes.
VectorType getDescriptorBytesType(MLIRContext *context);

/// Replaces `binary` by a constant `KVCacheBinary` of the same name.
LogicalResult lowerBinary(gpu::BinaryOp binary, RuntimeCalls &runtime);

/// Lowers a launch. Binaries must be lowered before launches.
LogicalResult lowerLaunch(gpu::LaunchFuncOp launch, DeviceCalls &device);

/// Encodes a descriptor into memory in the stack frame of the caller. Returns
/// the status of the call, and the memory.
std::pair<Value, Value>
encodeTensorMap(OpBuilder &builder, EncodeTensorMapOp op, DeviceCalls &device);

/// Replaces a descriptor by its bytes. The caller must update the types of
/// uses.
void lowerTensorMap(EncodeTensorMapOp op, DeviceCalls &device);

LogicalResult lowerAlloc(gpu::AllocOp op, DeviceCalls &device);
void lowerDealloc(gpu::DeallocOp op, DeviceCalls &device);
LogicalResult lowerMemcpy(gpu::MemcpyOp op, DeviceCalls &device);
LogicalResult lowerMemset(gpu::MemsetOp op, DeviceCalls &device);
void lowerWait(gpu::WaitOp op, DeviceCalls &device);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_TORUNTIME_DEVICECALLS_H
