//===- Host.cpp - C functions for errors of compiled host code ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Host.h"
#include "Call.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

/// Null outside of calls through TVM-FFI.
static thread_local CheckFrame *currentFrame = nullptr;

void runtime::enter(CheckFrame &frame) {
  frame.outer = currentFrame;
  currentFrame = &frame;
}

void runtime::leave(CheckFrame &frame) { currentFrame = frame.outer; }

void CheckFrame::freeMemory() {
  for (void *pointer : memory)
    std::free(pointer);
  // A device that has failed may refuse.
  for (auto [pointer, free] : deviceMemory)
    free(pointer);
}

// The frames up to the call hold no C++ objects: they are compiled code.
void runtime::stop(const char *format, ...) {
  std::va_list values;
  va_start(values, format);
  if (CheckFrame *frame = currentFrame) {
    std::vsnprintf(frame->message, sizeof(frame->message), format, values);
    va_end(values);
    std::longjmp(frame->environment, 1);
  }
  std::fflush(stdout);
  std::vfprintf(stderr, format, values);
  std::fputc('\n', stderr);
  std::exit(1);
}

extern "C" void kvcachePrint(const char *format, ...) {
  std::va_list values;
  va_start(values, format);
  std::vprintf(format, values);
  va_end(values);
  std::fflush(stdout);
}

extern "C" void *kvcacheHostAlloc(size_t bytes) {
  void *memory = std::malloc(bytes);
  if (memory && currentFrame)
    currentFrame->memory.insert(memory);
  return memory;
}

extern "C" void kvcacheHostFree(void *memory) {
  for (CheckFrame *frame = currentFrame; frame; frame = frame->outer)
    if (frame->memory.erase(memory))
      break;
  std::free(memory);
}

extern "C" void kvcacheHostNoteDeviceAlloc(int32_t status, void *const *pointer,
                                           int32_t (*free)(void *)) {
  if (status == 0 && *pointer && currentFrame)
    currentFrame->deviceMemory[*pointer] = free;
}

extern "C" void kvcacheHostNoteDeviceFree(void *pointer) {
  for (CheckFrame *frame = currentFrame; frame; frame = frame->outer)
    if (frame->deviceMemory.erase(pointer))
      break;
}

extern "C" void kvcacheCheckFailed(const char *format, int64_t value,
                                   int64_t bound) {
  stop(format, static_cast<long long>(value), static_cast<long long>(bound));
}

extern "C" void kvcacheDeviceFailed(const char *where, const char *message) {
  stop("%s: %s", where, message);
}
