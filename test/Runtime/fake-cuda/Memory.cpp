//===- Memory.cpp - Memory and descriptors --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCUDA.h"

using namespace fake;

static void *toPointer(Address address) {
  return reinterpret_cast<void *>(address);
}

/// Memory of the emulator, which has its bounds, or else of the host.
Result fake::allocate(Address *address, size_t bytes) {
  void *pointer = nullptr;
  if (const Emulator *emulator = getEmulator())
    emulator->allocate(static_cast<int64_t>(bytes), &pointer);
  else
    pointer = std::calloc(1, bytes);
  *address = reinterpret_cast<uintptr_t>(pointer);
  return pointer ? kSuccess : 2;
}

static void copy(void *to, const void *from, size_t bytes) {
  if (const Emulator *emulator = getEmulator())
    emulator->copy(to, from, static_cast<int64_t>(bytes), nullptr);
  else
    std::memmove(to, from, bytes);
}

EXPORT Result cuMemAlloc_v2(Address *address, size_t bytes) {
  Lock lock(mutex);
  if (Result result = forbid("cuMemAlloc", "allocates"))
    return result;
  if (Result result = print("cuMemAlloc", "%zu", bytes))
    return result;
  return allocate(address, bytes);
}

EXPORT Result cuMemAllocManaged(Address *address, size_t bytes,
                                unsigned flags) {
  Lock lock(mutex);
  if (Result result = forbid("cuMemAllocManaged", "allocates"))
    return result;
  if (Result result = print("cuMemAllocManaged", "%zu, %u", bytes, flags))
    return result;
  return allocate(address, bytes);
}

EXPORT Result cuMemFree_v2(Address address) {
  Lock lock(mutex);
  if (Result result = forbid("cuMemFree", "frees memory and synchronizes"))
    return result;
  drainAll();
  if (const Emulator *emulator = getEmulator())
    emulator->free(toPointer(address));
  else
    std::free(toPointer(address));
  return print("cuMemFree", "%s", address ? "memory" : "null");
}

EXPORT Result cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
  Lock lock(mutex);
  if (Result result = forbid("cuMemHostRegister", "registers memory"))
    return result;
  if (Result result = print("cuMemHostRegister", "%zu, %u", bytes, flags))
    return result;
  if (const Emulator *emulator = getEmulator())
    emulator->registerMemory(memory, static_cast<int64_t>(bytes));
  return kSuccess;
}

EXPORT Result cuMemHostGetDevicePointer_v2(Address *address, void *memory,
                                           unsigned) {
  *address = reinterpret_cast<uintptr_t>(memory);
  return getError("cuMemHostGetDevicePointer");
}

EXPORT Result cuMemHostUnregister(void *memory) {
  Lock lock(mutex);
  if (Result result = print("cuMemHostUnregister", "memory"))
    return result;
  drainAll();
  if (const Emulator *emulator = getEmulator())
    emulator->unregisterMemory(memory);
  return kSuccess;
}

EXPORT Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = *total = size_t{1} << 30;
  return kSuccess;
}

EXPORT Result cuPointerGetAttribute(void *value, int attribute, Address) {
  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE and _DEVICE_ORDINAL
  *static_cast<int *>(value) = attribute == 2 ? 2 : 0;
  return kSuccess;
}

static Result copyAsync(const char *function, Address to, Address from,
                        size_t bytes, void *stream) {
  Lock lock(mutex);
  if (Result result = checkStream(function, stream))
    return result;
  if (Result result = print(function, "%zu, %s", bytes, getStreamName(stream)))
    return result;
  return enqueue(stream, [=] { copy(toPointer(to), toPointer(from), bytes); });
}

EXPORT Result cuMemcpyAsync(Address to, Address from, size_t bytes,
                            void *stream) {
  return copyAsync("cuMemcpyAsync", to, from, bytes, stream);
}
EXPORT Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes,
                                   void *stream) {
  return copyAsync("cuMemcpyDtoDAsync", to, from, bytes, stream);
}
EXPORT Result cuMemcpyHtoDAsync_v2(Address to, Address from, size_t bytes,
                                   void *stream) {
  return copyAsync("cuMemcpyHtoDAsync", to, from, bytes, stream);
}
EXPORT Result cuMemcpyDtoHAsync_v2(Address to, Address from, size_t bytes,
                                   void *stream) {
  return copyAsync("cuMemcpyDtoHAsync", to, from, bytes, stream);
}

/// Copies after the work of the default stream and of those that it waits for.
static Result copyNow(const char *function, Address to, Address from,
                      size_t bytes) {
  Lock lock(mutex);
  if (Result result = forbid(function, "synchronizes"))
    return result;
  drain(nullptr);
  copy(toPointer(to), toPointer(from), bytes);
  return print(function, "%zu", bytes);
}

EXPORT Result cuMemcpyHtoD_v2(Address to, Address from, size_t bytes) {
  return copyNow("cuMemcpyHtoD", to, from, bytes);
}
EXPORT Result cuMemcpyDtoH_v2(Address to, Address from, size_t bytes) {
  return copyNow("cuMemcpyDtoH", to, from, bytes);
}

EXPORT Result cuMemsetD8Async(Address address, unsigned char value,
                              size_t bytes, void *stream) {
  Lock lock(mutex);
  if (Result result = checkStream("cuMemsetD8Async", stream))
    return result;
  if (Result result = print("cuMemsetD8Async", "%d, %zu, %s", value, bytes,
                            getStreamName(stream)))
    return result;
  return enqueue(stream, [=] {
    if (const Emulator *emulator = getEmulator())
      emulator->set(toPointer(address), value, static_cast<int64_t>(bytes),
                    nullptr);
    else
      std::memset(toPointer(address), value, bytes);
  });
}

//===----------------------------------------------------------------------===//
// TMA descriptors
//===----------------------------------------------------------------------===//

template <typename T> static std::string join(const T *values, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += (i > 0 ? " " : "") + std::to_string(values[i]);
  return text;
}

/// Writes the descriptor as the emulator reads it.
static void encodeForEmulator(const Emulator &emulator, void *descriptor,
                              int type, uint32_t rank, void *address,
                              const uint64_t *dims, const uint64_t *strides,
                              const uint32_t *box, int swizzle, int promotion) {
  TensorMap map = {};
  map.base = address;
  map.rank = static_cast<int32_t>(rank);
  map.elementBytes = type == 0 ? 1 : type == 1 ? 2 : type == 2 ? 4 : 8;
  map.swizzle = swizzle ? 16 << swizzle : 0;
  map.l2Promotion = promotion ? 32 << promotion : 0;
  for (uint32_t dim = 0; dim < rank; ++dim) {
    map.dims[dim] = static_cast<int64_t>(dims[dim]);
    map.box[dim] = box[dim];
    map.strides[dim] =
        dim == 0 ? 1
                 : static_cast<int64_t>(strides[dim - 1]) / map.elementBytes;
  }
  emulator.encode(&map, descriptor);
}

EXPORT Result fakeNew_cuTensorMapEncodeTiled(
    void *descriptor, int type, uint32_t rank, void *address,
    const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
    const uint32_t *elementStrides, int interleave, int swizzle, int promotion,
    int fill) {
  std::memset(descriptor, 0xab, 128);
  if (const Emulator *emulator = getEmulator())
    encodeForEmulator(*emulator, descriptor, type, rank, address, dims, strides,
                      box, swizzle, promotion);
  return print("cuTensorMapEncodeTiled",
               "type %d, rank %u, address %p, dims %s, strides %s, box %s, "
               "element strides %s, interleave %d, swizzle %d, promotion %d, "
               "fill %d",
               type, rank, address, join(dims, rank).c_str(),
               join(strides, rank - 1).c_str(), join(box, rank).c_str(),
               join(elementStrides, rank).c_str(), interleave, swizzle,
               promotion, fill);
}
