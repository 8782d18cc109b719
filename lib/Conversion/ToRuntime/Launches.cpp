//===- Launches.cpp - Launches as calls of the C ABI ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCalls.h"
#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {
/// The values of the parameters of a kernel, in the format that it reads.
struct Parameters {
  SmallVector<Value> values;
  SmallVector<int64_t> bytes;
};
} // namespace

/// Returns the size in bytes of a parameter; `nullopt` for an unsupported type.
static std::optional<int64_t> getBytes(Type type) {
  if (isa<IndexType, LLVM::LLVMPointerType>(type))
    return 8;
  if (!type.isIntOrFloat())
    return std::nullopt;
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 1)
    return 1;
  if (bits < 8 || bits > 64 || !llvm::isPowerOf2_32(bits))
    return std::nullopt;
  return bits / 8;
}

/// Casts floats to integers, as which host code moves unsupported floats.
static Value toBits(OpBuilder &builder, Location loc, Value value) {
  Type type = value.getType();
  if (isa<IndexType>(type))
    return toI64(builder, loc, value);
  if (type.isInteger(1))
    return arith::ExtUIOp::create(builder, loc, builder.getI8Type(), value);
  Type element = getElementTypeOrSelf(type);
  if (!isa<FloatType>(element))
    return value;
  Type bits = builder.getIntegerType(element.getIntOrFloatBitWidth());
  if (auto vector = dyn_cast<VectorType>(type))
    bits = vector.clone(bits);
  return arith::BitcastOp::create(builder, loc, bits, value);
}

/// Returns the descriptor of an operand that is a descriptor or its address,
/// else null.
static Value getDescriptor(Value operand) {
  if (isa<TMATileType>(operand.getType()))
    return operand;
  auto cast = operand.getDefiningOp<UnrealizedConversionCastOp>();
  if (!cast || cast.getInputs().size() != 1)
    return {};
  Value descriptor = cast.getInputs().front();
  VectorType bytes = getDescriptorBytesType(cast.getContext());
  return isa<TMATileType>(descriptor.getType()) || descriptor.getType() == bytes
             ? descriptor
             : Value();
}

static FailureOr<Parameters> getParameters(OpBuilder &builder,
                                           gpu::LaunchFuncOp launch) {
  Parameters parameters;
  for (auto [index, operand] : llvm::enumerate(launch.getKernelOperands())) {
    if (Value descriptor = getDescriptor(operand)) {
      parameters.values.push_back(descriptor);
      parameters.bytes.push_back(kDescriptorBytes);
      continue;
    }
    Type type = operand.getType();
    auto vector = dyn_cast<VectorType>(type);
    std::optional<int64_t> bytes =
        getBytes(vector ? vector.getElementType() : type);
    // LLVM rounds the size of a vector up to a power of two.
    if (bytes && vector)
      bytes = llvm::PowerOf2Ceil(*bytes * vector.getNumElements());
    bool isFlat = !vector || (vector.getRank() == 1 && !vector.isScalable() &&
                              !vector.getElementType().isInteger(1) &&
                              !vector.getElementType().isIndex());
    if (!bytes || !isFlat) {
      launch.emitOpError("can't pass operand ")
          << index << " of type " << type << " to kernel "
          << launch.getKernel();
      return failure();
    }
    parameters.values.push_back(toBits(builder, launch.getLoc(), operand));
    parameters.bytes.push_back(*bytes);
  }
  return parameters;
}

/// Creates the arrays of addresses and of sizes for `kvcacheLaunch`.
static std::pair<Value, Value> createArrays(OpBuilder &builder, Location loc,
                                            const Parameters &parameters,
                                            DeviceCalls &device) {
  size_t count = parameters.values.size();
  auto addressesType = LLVM::LLVMArrayType::get(device.pointerType, count);
  Value addresses = LLVM::PoisonOp::create(builder, loc, addressesType);
  for (auto [index, value] : llvm::enumerate(parameters.values)) {
    int64_t alignment = isa<VectorType, TMATileType>(value.getType())
                            ? kDescriptorAlignment
                            : 8;
    Value slot = device.createSlot(builder, loc, value, alignment);
    addresses =
        LLVM::InsertValueOp::create(builder, loc, addresses, slot, index);
  }
  auto sizesType = LLVM::LLVMArrayType::get(device.i64, count);
  LLVM::GlobalOp sizes =
      device.runtime.createConstant(loc, "kvcache_parameter_bytes", sizesType,
                                    builder.getI64TensorAttr(parameters.bytes));
  return {device.createSlot(builder, loc, addresses),
          LLVM::AddressOfOp::create(builder, loc, sizes)};
}

/// Creates the `KVCacheLaunch`.
static Value createLaunch(OpBuilder &builder, gpu::LaunchFuncOp launch,
                          Value stream, DeviceCalls &device) {
  Location loc = launch.getLoc();
  Type sides = LLVM::LLVMArrayType::get(device.i64, 3);
  FieldBuilder fields(
      builder, loc,
      {sides, sides, device.i64, device.pointerType, sides, device.i64});
  auto setSides = [&](int64_t field, gpu::KernelDim3 dims) {
    for (auto [index, size] :
         llvm::enumerate(std::array{dims.x, dims.y, dims.z}))
      fields.set(toI64(builder, loc, size),
                 {field, static_cast<int64_t>(index)});
  };
  setSides(0, launch.getGridSizeOperandValues());
  setSides(1, launch.getBlockSizeOperandValues());
  if (Value bytes = launch.getDynamicSharedMemorySize())
    fields.set(toI64(builder, loc, bytes), 2);
  else
    fields.set(0, device.i64, 2);
  fields.set(stream, 3);
  if (launch.hasClusterSize())
    setSides(4, launch.getClusterSizeOperandValues());
  else
    for (int64_t index = 0; index < 3; ++index)
      fields.set(0, device.i64, {4, index});
  fields.set(launch->hasAttr(KVCacheDialect::kProgrammaticAttr), device.i64, 5);
  return device.createSlot(builder, loc, fields.get());
}

static LogicalResult check(gpu::LaunchFuncOp launch, DeviceCalls &device) {
  if (!device.runtime.getSymbols().lookup<LLVM::GlobalOp>(
          launch.getKernelModuleName()))
    return launch.emitOpError("expects @")
           << launch.getKernelModuleName().getValue()
           << " to be a gpu.binary of this module";
  Value stream = launch.getAsyncObject();
  if (stream && stream.getType() != device.pointerType)
    return launch.emitOpError("expects its stream to be of type ")
           << device.pointerType << ", got " << stream.getType();
  return success();
}

/// Whether a programmatic launch comes next, and the host does nothing before
/// it that may need the end of this launch.
static bool isFollowedByProgrammatic(gpu::LaunchFuncOp launch) {
  if (launch.getAsyncToken())
    return false;
  for (Operation *op = launch->getNextNode(); op; op = op->getNextNode()) {
    if (auto next = dyn_cast<gpu::LaunchFuncOp>(op))
      return next->hasAttr(KVCacheDialect::kProgrammaticAttr) &&
             !next.getAsyncObject() && next.getAsyncDependencies().empty();
    if (!isMemoryEffectFree(op))
      return false;
  }
  return false;
}

LogicalResult kvcache::lowerLaunch(gpu::LaunchFuncOp launch,
                                   DeviceCalls &device) {
  if (failed(check(launch, device)))
    return failure();
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  FailureOr<Parameters> parameters = getParameters(builder, launch);
  if (failed(parameters))
    return failure();

  RuntimeCalls &runtime = device.runtime;
  StringRef module = launch.getKernelModuleName().getValue();
  StringRef kernel = launch.getKernelName().getValue();
  std::string what = ("launch of @" + module + "::@" + kernel).str();

  Value binary = LLVM::AddressOfOp::create(
      builder, loc, runtime.getSymbols().lookup<LLVM::GlobalOp>(module));
  Value handle = device.createSlot(builder, loc, device.pointerType);
  device.call(builder, loc, "kvcacheModuleLoad", {binary, handle}, what);
  handle = LLVM::LoadOp::create(builder, loc, device.pointerType, handle);

  bool isFollowed = isFollowedByProgrammatic(launch);
  Value stream = launch.getAsyncObject();
  bool hasStream = bool(stream);
  if (!hasStream)
    stream = device.getStream(builder, loc);
  Value shape = createLaunch(builder, launch, stream, device);
  auto [addresses, sizes] = createArrays(builder, loc, *parameters, device);
  Value count = LLVM::ConstantOp::create(builder, loc, device.i64,
                                         parameters->values.size());
  device.call(builder, loc, "kvcacheLaunch",
              {handle, runtime.getString(builder, loc, kernel), shape,
               addresses, sizes, count},
              what);
  // If the launch has a stream, its owner waits for it.
  if (!hasStream && !isFollowed)
    device.finish(builder, cast<gpu::AsyncOpInterface>(*launch), what);
  // Once for an operand that is there twice.
  llvm::SmallSetVector<Operation *, 4> casts;
  for (Value operand : launch.getKernelOperands())
    if (auto cast = operand.getDefiningOp<UnrealizedConversionCastOp>())
      casts.insert(cast);
  launch.erase();
  for (Operation *cast : casts)
    if (cast->use_empty())
      cast->erase();
  return success();
}
