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
/// The constants of a `KVCacheImage`.
struct Image {
  LLVM::GlobalOp data;
  std::string chip;
  int64_t bytes;
};
} // namespace

/// Returns the data that the driver loads. PTX ends with a zero byte.
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

/// Returns the module of an object for the emulator; null for other objects.
static LLVM::GlobalOp getEmulatedModule(gpu::ObjectAttr object,
                                        RuntimeCalls &runtime) {
  DictionaryAttr properties = object.getProperties();
  auto symbol =
      properties
          ? properties.getAs<FlatSymbolRefAttr>(KVCacheDialect::kEmulatedAttr)
          : FlatSymbolRefAttr();
  return symbol ? runtime.getSymbols().lookup<LLVM::GlobalOp>(symbol.getAttr())
                : LLVM::GlobalOp();
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
  if (LLVM::GlobalOp module = getEmulatedModule(object, runtime)) {
    DataLayout layout(runtime.getModule());
    return Image{module, ("emulator:" + target.getChip()).str(),
                 static_cast<int64_t>(layout.getTypeSize(module.getType()))};
  }
  FailureOr<std::string> content = getContent(binary, object);
  if (failed(content))
    return failure();
  Builder builder(binary.getContext());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), content->size());
  LLVM::GlobalOp data = runtime.createConstant(
      binary.getLoc(), (binary.getName() + "_" + target.getChip()).str(), type,
      builder.getStringAttr(*content));
  // The headers of cubins and fat binaries have 8-byte fields.
  data.setAlignment(16);
  return Image{data, target.getChip().str(),
               static_cast<int64_t>(content->size())};
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
  std::string name = binary.getName().str();
  runtime.getSymbols().erase(binary);

  using Fields = FieldBuilder;
  LLVM::GlobalOp imagesGlobal = runtime.createStructs(
      loc, name + "_images", {pointer, pointer, i64}, images.size(),
      [&](size_t index, Fields &fields, OpBuilder &builder) {
        const Image &image = images[index];
        fields.set(runtime.getString(builder, loc, image.chip), 0);
        fields.set(LLVM::AddressOfOp::create(builder, loc, image.data), 1);
        fields.set(image.bytes, i64, 2);
      });
  runtime.createStruct(
      loc, name, {pointer, pointer, i64},
      [&](Fields &fields, OpBuilder &builder) {
        fields.set(runtime.getString(builder, loc, name), 0);
        fields.set(LLVM::AddressOfOp::create(builder, loc, imagesGlobal), 1);
        fields.set(images.size(), i64, 2);
      });
  return success();
}
