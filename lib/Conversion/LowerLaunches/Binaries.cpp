//===- Binaries.cpp - Compiled kernels as constants -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCalls.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {
/// The constants that a `KVCacheImage` consists of.
struct Image {
  LLVM::GlobalOp data;
  std::string chip;
  int64_t bytes;
};
} // namespace

/// What the driver loads: PTX ends in a zero byte.
static FailureOr<std::string> getContent(gpu::BinaryOp binary,
                                         gpu::ObjectAttr object) {
  StringRef content = object.getObject().getValue();
  switch (object.getFormat()) {
  case gpu::CompilationTarget::Assembly:
    return (content.rtrim('\0') + Twine('\0')).str();
  case gpu::CompilationTarget::Binary:
  case gpu::CompilationTarget::Fatbin:
    return content.str();
  default:
    binary.emitOpError("expects objects of PTX, cubins or fat binaries, got ")
        << gpu::stringifyCompilationTarget(object.getFormat());
    return failure();
  }
}

static FailureOr<Image> createImage(gpu::BinaryOp binary,
                                    gpu::ObjectAttr object,
                                    RuntimeCalls &runtime) {
  auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget());
  if (!target) {
    binary.emitOpError("expects objects for #nvvm.target, got ")
        << object.getTarget();
    return failure();
  }
  FailureOr<std::string> content = getContent(binary, object);
  if (failed(content))
    return failure();
  Builder builder(binary.getContext());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), content->size());
  LLVM::GlobalOp data = runtime.createConstant(
      binary.getLoc(), (binary.getName() + "_" + target.getChip()).str(), type,
      builder.getStringAttr(*content));
  // The headers in a cubin and in a fat binary have fields of 8 bytes.
  data.setAlignment(16);
  return Image{data, target.getChip().str(),
               static_cast<int64_t>(content->size())};
}

/// Makes a constant with the value that `build` gives.
static LLVM::GlobalOp createConstant(RuntimeCalls &runtime, Location loc,
                                     StringRef name, Type type,
                                     function_ref<Value(OpBuilder &)> build) {
  LLVM::GlobalOp global = runtime.createConstant(loc, name, type, {});
  OpBuilder builder(global.getContext());
  builder.createBlock(&global.getInitializerRegion());
  LLVM::ReturnOp::create(builder, loc, build(builder));
  return global;
}

LogicalResult kvcache::lowerBinary(gpu::BinaryOp binary,
                                   RuntimeCalls &runtime) {
  Location loc = binary.getLoc();
  SmallVector<Image> images;
  for (auto object : binary.getObjectsAttr().getAsRange<gpu::ObjectAttr>()) {
    FailureOr<Image> image = createImage(binary, object, runtime);
    if (failed(image))
      return failure();
    images.push_back(*image);
  }

  MLIRContext *context = binary.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = IntegerType::get(context, 64);
  auto imageType =
      LLVM::LLVMStructType::getLiteral(context, {pointer, pointer, i64});
  auto imagesType = LLVM::LLVMArrayType::get(imageType, images.size());
  std::string name = binary.getName().str();
  runtime.getSymbols().erase(binary);

  LLVM::GlobalOp imagesGlobal = createConstant(
      runtime, loc, name + "_images", imagesType, [&](OpBuilder &builder) {
        Value array = LLVM::PoisonOp::create(builder, loc, imagesType);
        for (auto [index, image] : llvm::enumerate(images)) {
          StructBuilder fields(builder, loc, imageType.getBody());
          fields.set(runtime.getString(builder, loc, image.chip), 0);
          fields.set(LLVM::AddressOfOp::create(builder, loc, image.data), 1);
          fields.set(image.bytes, i64, 2);
          array = LLVM::InsertValueOp::create(builder, loc, array, fields.get(),
                                              index);
        }
        return array;
      });
  auto binaryType =
      LLVM::LLVMStructType::getLiteral(context, {pointer, pointer, i64});
  createConstant(runtime, loc, name, binaryType, [&](OpBuilder &builder) {
    StructBuilder fields(builder, loc, binaryType.getBody());
    fields.set(runtime.getString(builder, loc, name), 0);
    fields.set(LLVM::AddressOfOp::create(builder, loc, imagesGlobal), 1);
    fields.set(images.size(), i64, 2);
    return fields.get();
  });
  return success();
}
