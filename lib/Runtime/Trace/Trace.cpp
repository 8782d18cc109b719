//===- Trace.cpp - A dry run of the C ABI ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Support.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

template <typename Values>
static std::string join(const Values &values, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return "(" + text + ")";
}

static std::string toHex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

template <typename T> static std::string describeInteger(const void *data) {
  std::make_signed_t<T> value;
  std::memcpy(&value, data, sizeof(value));
  return std::to_string(value) + " = " + toHex(static_cast<T>(value));
}

static std::string describeDescriptor(const void *data) {
  std::optional<tma::Descriptor> descriptor = tma::decode(data);
  if (!descriptor)
    return "not a tensor map";
  const tma::TensorMap &map = descriptor->map;
  std::string swizzle = map.swizzle == tma::Swizzle::None
                            ? "none"
                            : std::to_string(tma::getSpan(map.swizzle)) + "b";
  return "tensor map of " + std::to_string(map.elementBytes) +
         "-byte elements, dims " + join(map.dims, map.rank) + ", strides " +
         join(map.strides, map.rank) + ", box " + join(map.box, map.rank) +
         ", swizzle " + swizzle + ", l2 promotion " +
         std::to_string(descriptor->l2Promotion) + ", offset " +
         std::to_string(map.offset) + ", base " + toHex(descriptor->base);
}

static std::string describeParam(const void *data, int64_t bytes) {
  switch (bytes) {
  case 1:
    return describeInteger<uint8_t>(data);
  case 2:
    return describeInteger<uint16_t>(data);
  case 4:
    return describeInteger<uint32_t>(data);
  case 8:
    return describeInteger<uint64_t>(data);
  case tma::kDescriptorBytes:
    return describeDescriptor(data);
  default:
    return "not a number";
  }
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

static const KVCacheImage *selectImage(const KVCacheBinary &binary) {
  const KVCacheImage *end = binary.images + binary.numImages;
  const char *chip = getEnvironment("KVCACHE_TRACE_CHIP");
  const KVCacheImage *found =
      std::find_if(binary.images, end, [&](const KVCacheImage &image) {
        return !chip || std::strcmp(image.chip, chip) == 0;
      });
  if (found != end)
    return found;
  fail("module @" + std::string(binary.name) + " has no code for " +
       (chip ? chip : "any chip") + ": it is for " + listChips(binary));
  return nullptr;
}

/// The handle of a module is its binary.
int32_t kvcacheModuleLoad(const KVCacheBinary *binary, void **module) {
  if (!selectImage(*binary))
    return kFailure;
  *module = const_cast<KVCacheBinary *>(binary);
  return kSuccess;
}

int32_t kvcacheModuleUnload(const KVCacheBinary *) { return kSuccess; }

int32_t runtime::finishWork() { return kSuccess; }

int32_t kvcacheLaunch(void *module, const char *kernel,
                      const KVCacheLaunch *launch, void **params,
                      const int64_t *paramBytes, int64_t numParams) {
  const auto &binary = *static_cast<const KVCacheBinary *>(module);
  std::string name = getKernelName(binary.name, kernel);
  if (int32_t status = checkLaunch(name, *launch))
    return status;
  const KVCacheImage *image = selectImage(binary);
  if (!image)
    return kFailure;
  auto stream = reinterpret_cast<uintptr_t>(launch->stream);
  std::string text =
      "launch " + name + " for " + image->chip + "\n  grid " +
      join(launch->grid, 3) + ", block " + join(launch->block, 3) +
      ", shared memory " + std::to_string(launch->sharedBytes) + ", stream " +
      (stream ? std::to_string(stream) : "default") +
      (launch->cluster[0] ? ", cluster " + join(launch->cluster, 3) : "") +
      (launch->isProgrammatic ? ", programmatic" : "") + "\n";
  for (int64_t i = 0; i < numParams; ++i)
    text += "  param " + std::to_string(i) + ": " +
            std::to_string(paramBytes[i]) + " bytes, " +
            describeParam(params[i], paramBytes[i]) + "\n";
  // Write the text at once, so that launches of several threads do not mix.
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

int32_t kvcacheMemAlloc(int64_t bytes, void **pointer) {
  constexpr int64_t alignment = 256;
  if (int32_t status = checkBytes(bytes))
    return status;
  *pointer = nullptr;
  if (bytes > 0 && posix_memalign(pointer, alignment, bytes) != 0)
    return fail("out of memory: " + std::to_string(bytes) + " bytes");
  return kSuccess;
}

int32_t kvcacheMemAllocManaged(int64_t bytes, void **pointer) {
  return kvcacheMemAlloc(bytes, pointer);
}

int32_t kvcacheMemFree(void *pointer) {
  std::free(pointer);
  return kSuccess;
}

int32_t kvcacheMemCopy(void *to, const void *from, int64_t bytes, void *) {
  if (int32_t status = checkBytes(bytes))
    return status;
  if (bytes > 0)
    std::memmove(to, from, bytes);
  return kSuccess;
}

int32_t kvcacheMemSet(void *pointer, uint8_t value, int64_t bytes, void *) {
  if (int32_t status = checkBytes(bytes))
    return status;
  if (bytes > 0)
    std::memset(pointer, value, bytes);
  return kSuccess;
}
