//===- Tensors.cpp - Tensors as arguments of a call -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <algorithm>
#include <cstdio>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

namespace {
/// DLPack's type codes that have a meaning of their own here.
enum TypeCode : int32_t { kIntCode = 0, kUIntCode = 1, kBoolCode = 6 };

/// One tensor, and the argument that it is passed for.
class TensorCheck {
public:
  TensorCheck(const KVCacheFunction &function, int32_t index,
              const ffi::DLTensor &tensor)
      : function(function), index(index), type(function.arguments[index]),
        tensor(tensor), bytes((type.bits + 7) / 8),
        address(reinterpret_cast<uintptr_t>(tensor.data) + tensor.byteOffset) {}

  /// Writes the words of the descriptor. Returns their end, or null after an
  /// error was raised.
  int64_t *unpack(int64_t *words) {
    if (!checkType() || !checkDevice() || !checkShape() || !checkAddress())
      return nullptr;
    uintptr_t base = address - type.offset * bytes;
    *words++ = static_cast<int64_t>(base);
    *words++ = static_cast<int64_t>(base);
    *words++ = type.offset;
    words = std::copy_n(tensor.shape, type.rank, words);
    if (!unpackStrides(words) || !checkDisjoint())
      return nullptr;
    return words + type.rank;
  }

private:
  bool checkType() const;
  bool checkDevice() const;
  bool checkShape();
  bool checkAddress() const;
  bool checkDistances() const;
  bool checkDisjoint() const;
  bool unpackStrides(int64_t *words) const;
  bool raiseStride(int32_t dimension, int64_t expected) const;

  /// The stride of a tensor that may have none: the product of the later
  /// sizes, where it matters.
  int64_t getStride(int32_t dimension) const;

  bool raiseValue(const std::string &wanted, const std::string &got) const {
    return raiseWrong("ValueError", function, index, wanted, got);
  }
  std::string getShapeText() const { return getText(tensor.shape, 1); }
  std::string getStridesText() const;
  std::string getText(const int64_t *values, int64_t factor) const;

  const KVCacheFunction &function;
  int32_t index;
  const KVCacheValue &type;
  const ffi::DLTensor &tensor;
  int64_t bytes;
  uintptr_t address;
  bool isEmpty = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// The name of a type as NumPy and ml_dtypes have it.
static std::string getTypeName(ffi::DataType type) {
  static const char *const names[] = {"int",    "uint",    "float", "handle",
                                      "bfloat", "complex", "bool"};
  std::string name = "code" + std::to_string(type.code);
  if (type.code <= kBoolCode)
    name = names[type.code];
  if (type.code < kBoolCode)
    name += std::to_string(type.bits);
#define KVCACHE_FORMAT(mlirName, width, mlirType, dtype, typeCode, uses)       \
  if (type.code == (typeCode) && type.code > kBoolCode)                        \
    name = #dtype;
#include "kvcache/Runtime/Formats.def"
  if (type.lanes != 1)
    name += "x" + std::to_string(type.lanes);
  return name;
}

static std::string getWantedName(const KVCacheValue &type) {
  auto bits = static_cast<uint8_t>(type.bits);
  ffi::DataType wanted{static_cast<uint8_t>(type.code), bits, 1};
  std::string name = getTypeName(wanted);
  if (!(type.flags & KVCACHE_SIGNLESS))
    return name;
  return name + " or " + getTypeName({kUIntCode, bits, 1});
}

static std::string getDeviceName(ffi::Device device) {
  switch (device.type) {
  case ffi::kCPU:
    return "the CPU";
  case ffi::kCUDA:
    return "cuda:" + std::to_string(device.id);
  case ffi::kCUDAHost:
    return "the host, pinned by CUDA";
  case ffi::kCUDAManaged:
    return "cuda:" + std::to_string(device.id) + ", managed";
  }
  return "device type " + std::to_string(device.type);
}

std::string TensorCheck::getText(const int64_t *values, int64_t factor) const {
  std::string text = "(";
  for (int32_t dimension = 0; dimension < tensor.rank; ++dimension)
    text +=
        (dimension ? ", " : "") + std::to_string(values[dimension] * factor);
  return text + (tensor.rank == 1 ? ",)" : ")");
}

std::string TensorCheck::getStridesText() const {
  return "strides " + getText(tensor.strides, bytes) + " in bytes";
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Values of less than a byte that are packed are bytes to the function.
static bool isByte(ffi::DataType type) {
  return type.code >= 7 && type.lanes > 1 && type.bits * type.lanes == 8;
}

bool TensorCheck::checkType() const {
  ffi::DataType given = tensor.dtype;
  bool isInteger = type.flags & KVCACHE_SIGNLESS;
  if (given.bits == type.bits && given.lanes == 1 &&
      (given.code == type.code || (isInteger && given.code == kUIntCode)))
    return true;
  if (isInteger && type.bits == 8 && isByte(given))
    return true;
  return raiseWrong("TypeError", function, index,
                    "an array of " + getWantedName(type),
                    "one of " + getTypeName(given));
}

bool TensorCheck::checkDevice() const {
  int32_t given = tensor.device.type;
  if (given == function.device || given == ffi::kCUDAHost ||
      given == ffi::kCUDAManaged)
    return true;
  bool canMove = function.device == ffi::kCUDA && given == ffi::kCPU;
  return raiseValue(
      "memory of " + getDeviceName({function.device, 0}),
      "memory of " + getDeviceName(tensor.device) +
          (canMove ? ": move it to the device first, for example with "
                     "tensor.to('cuda') or cupy.asarray(array)"
                   : ""));
}

bool TensorCheck::checkShape() {
  if (tensor.rank != type.rank)
    return raiseValue(std::to_string(type.rank) + " dimensions",
                      std::to_string(tensor.rank) + " (shape " +
                          getShapeText() + ")");
  for (int32_t dimension = 0; dimension < type.rank; ++dimension) {
    int64_t size = tensor.shape[dimension], wanted = type.layout[dimension];
    if (size != wanted && wanted != KVCACHE_DYNAMIC)
      return raiseValue("size " + std::to_string(wanted) + " in dimension " +
                            std::to_string(dimension),
                        std::to_string(size) + " (shape " + getShapeText() +
                            ")");
    isEmpty |= size == 0;
  }
  return true;
}

bool TensorCheck::checkAddress() const {
  if (!address && !isEmpty)
    return raiseValue("memory for its elements", "a null address");
  if (address % type.alignment && !isEmpty) {
    char text[32];
    std::snprintf(text, sizeof(text), "address %#zx",
                  static_cast<size_t>(address));
    return raiseValue("data at a multiple of " +
                          std::to_string(type.alignment) + " bytes",
                      text);
  }
  return !(type.flags & (KVCACHE_CACHE | KVCACHE_ROWS)) || checkDistances();
}

/// Pages of a cache lie so far apart that each is as aligned as its rows, and
/// so do heads, and dense rows, whose stride the type leaves open.
bool TensorCheck::checkDistances() const {
  int64_t unit = type.flags >> KVCACHE_UNIT_SHIFT;
  int32_t heads = type.rank - 2;
  for (int32_t dimension = 0; dimension <= heads; ++dimension) {
    bool isInPage = dimension >= type.rank - 3;
    bool isOpen = (dimension == heads || (type.flags & KVCACHE_ROWS)) &&
                  type.layout[type.rank + dimension] == KVCACHE_DYNAMIC;
    int64_t distance = getStride(dimension) * bytes;
    if ((isInPage && !isOpen) || tensor.shape[dimension] <= 1 ||
        (distance >= 0 && distance % unit == 0))
      continue;
    return raiseValue((distance < 0 ? "strides that are not negative"
                                    : "strides that are multiples of " +
                                          std::to_string(unit) + " bytes"),
                      std::to_string(distance) + " in dimension " +
                          std::to_string(dimension));
  }
  return true;
}

/// No two elements of a cache or of dense rows share memory: a stride is at
/// least what all smaller ones span.
bool TensorCheck::checkDisjoint() const {
  if (!(type.flags & (KVCACHE_CACHE | KVCACHE_ROWS)) || !tensor.strides ||
      isEmpty)
    return true;
  int32_t elements = type.rank - 1;
  for (int32_t dimension = 0; dimension < elements; ++dimension) {
    int64_t stride = tensor.strides[dimension];
    int64_t span = tensor.shape[elements];
    for (int32_t inner = 0; inner < elements; ++inner)
      if (inner != dimension && tensor.strides[inner] <= stride)
        span += (tensor.shape[inner] - 1) * tensor.strides[inner];
    if (tensor.shape[dimension] > 1 && stride < span)
      return raiseValue(
          "strides at which elements do not overlap, of at least " +
              std::to_string(span * bytes) + " bytes",
          std::to_string(stride * bytes) + " in dimension " +
              std::to_string(dimension));
  }
  return true;
}

int64_t TensorCheck::getStride(int32_t dimension) const {
  if (tensor.strides)
    return tensor.strides[dimension];
  int64_t stride = 1;
  for (int32_t inner = dimension + 1; inner < tensor.rank; ++inner)
    stride *= tensor.shape[inner];
  return stride;
}

/// The distance of a dimension that has no second element doesn't matter.
bool TensorCheck::unpackStrides(int64_t *words) const {
  const int64_t *wanted = type.layout + type.rank;
  bool isContiguous = type.flags & KVCACHE_CONTIGUOUS;
  int64_t packed = 1;
  for (int32_t dimension = type.rank; dimension-- > 0;) {
    int64_t stride = tensor.strides ? tensor.strides[dimension] : packed;
    int64_t expected = isContiguous ? packed : wanted[dimension];
    words[dimension] = expected == KVCACHE_DYNAMIC ? stride : expected;
    packed *= tensor.shape[dimension];
  }
  for (int32_t dimension = 0; dimension < type.rank; ++dimension) {
    bool matters = tensor.shape[dimension] > 1 && !isEmpty;
    if (matters && getStride(dimension) != words[dimension])
      return raiseStride(dimension, words[dimension]);
  }
  return true;
}

bool TensorCheck::raiseStride(int32_t dimension, int64_t expected) const {
  std::string strides = tensor.strides ? getStridesText() : "C-contiguous";
  if (type.flags & KVCACHE_CONTIGUOUS)
    return raiseValue("a C-contiguous array",
                      strides + " (shape " + getShapeText() + ")");
  return raiseValue("a stride of " + std::to_string(expected) +
                        " elements in dimension " + std::to_string(dimension),
                    std::to_string(getStride(dimension)) + " (" + strides +
                        ")");
}

static const ffi::DLTensor *getTensor(const ffi::Any &value) {
  if (value.type == ffi::kTensor)
    return &static_cast<const ffi::Tensor *>(value.pointer)->tensor;
  if (value.type == ffi::kDLTensor)
    return static_cast<const ffi::DLTensor *>(value.pointer);
  return nullptr;
}

bool runtime::findDevice(const KVCacheFunction &function, const ffi::Any *args,
                         int32_t &device) {
  device = -1;
  int32_t first = 0;
  for (int32_t index = 0; index < function.numArguments; ++index) {
    const ffi::DLTensor *tensor = getTensor(args[index]);
    if (!tensor || tensor->device.type != ffi::kCUDA)
      continue;
    if (device < 0) {
      device = tensor->device.id;
      first = index;
    } else if (tensor->device.id != device) {
      return raiseWrong("ValueError", function, index,
                        "memory of cuda:" + std::to_string(device) +
                            ", the device of argument " + std::to_string(first),
                        "memory of " + getDeviceName(tensor->device));
    }
  }
  return true;
}

int64_t *runtime::unpackTensor(const KVCacheFunction &function, int32_t index,
                               const ffi::Any &value, int64_t *words) {
  if (const ffi::DLTensor *tensor = getTensor(value))
    return TensorCheck(function, index, *tensor).unpack(words);
  raiseWrong("TypeError", function, index,
             "an array of " + getWantedName(function.arguments[index]),
             describe(value));
  return nullptr;
}
