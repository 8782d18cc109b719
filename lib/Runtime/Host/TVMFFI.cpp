//===- TVMFFI.cpp - Calls of compiled functions through TVM-FFI -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <utility>
#include <vector>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

void *runtime::lookupTVMFFI(const char *name) {
  if (void *function = dlsym(RTLD_DEFAULT, name))
    return function;
  static void *const library =
      dlopen("libtvm_ffi.so", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  return library ? dlsym(library, name) : nullptr;
}

/// The next and the current call of this thread; null for those of TVM-FFI.
static thread_local DirectCall *nextCall = nullptr, *currentCall = nullptr;

void runtime::expectCall(DirectCall &call) { nextCall = &call; }

bool runtime::raise(const char *kind, const std::string &message) {
  if (currentCall) {
    currentCall->errorKind = kind;
    currentCall->message = message;
    return false;
  }
  using SetRaised = void (*)(const char *, const char *);
  static const auto setRaised =
      reinterpret_cast<SetRaised>(lookupTVMFFI("TVMFFIErrorSetRaisedFromCStr"));
  // Without the library, the error cannot be read.
  if (setRaised)
    setRaised(kind, message.c_str());
  else
    std::fprintf(stderr, "%s: %s\n", kind, message.c_str());
  return false;
}

bool runtime::raiseWrong(const char *kind, const KVCacheFunction &function,
                         int32_t index, const std::string &wanted,
                         const std::string &got) {
  const KVCacheValue &type = function.arguments[index];
  std::string name = type.name;
  return raise(
      kind, std::string(function.name) + ": argument " + std::to_string(index) +
                (name.empty() ? "" : " ('" + name + "')") + " expects " +
                wanted + " for " + type.text + ", got " + got);
}

/// The name of a type of objects, such as ffi.Array.
static std::string getTypeKey(int32_t type) {
  /// The start of TVMFFITypeInfo.
  struct TypeInfo {
    int32_t index, depth;
    ffi::Bytes key;
  };
  using GetInfo = const TypeInfo *(*)(int32_t);
  static const auto getInfo =
      reinterpret_cast<GetInfo>(lookupTVMFFI("TVMFFIGetTypeInfo"));
  const TypeInfo *info = getInfo ? getInfo(type) : nullptr;
  return info ? std::string(info->key.data, info->key.size)
              : "type " + std::to_string(type);
}

std::string runtime::describe(const ffi::Any &value) {
  static const std::pair<int32_t, const char *> names[] = {
      {ffi::kNone, "None"},
      {4, "a pointer"},
      {5, "a dtype"},
      {6, "a device"},
      {ffi::kDLTensor, "an array"},
      {8, "a str"},
      {9, "bytes"},
      {11, "a str"},
      {12, "bytes"},
      {65, "a str"},
      {66, "bytes"},
      {ffi::kTensor, "an array"},
      {71, "a list or tuple"},
      {72, "a dict"},
      {74, "an object that is neither an array nor a number"},
      {75, "a list"},
      {76, "a dict"},
      {ffi::kBigInt, "an int of more than 64 bits"}};
  char text[64];
  switch (value.type) {
  case ffi::kInt:
    return "an int (" + std::to_string(value.integer) + ")";
  case ffi::kBool:
    return value.integer ? "a bool (True)" : "a bool (False)";
  case ffi::kFloat:
    std::snprintf(text, sizeof(text), "a float (%g)", value.real);
    return text;
  }
  for (auto [type, name] : names)
    if (type == value.type)
      return name;
  return "an object of type " + getTypeKey(value.type);
}

//===----------------------------------------------------------------------===//
// Memory of the emulator
//===----------------------------------------------------------------------===//

namespace {
/// Bytes that tensors of a call reach.
struct Range {
  uintptr_t low, high;
  bool isConstant;
};

/// Lets kernels on the emulator access what the tensors of a call reach.
class RegisteredMemory {
public:
  RegisteredMemory(const KVCacheFunction &function, const int64_t *words);
  RegisteredMemory(const RegisteredMemory &) = delete;
  ~RegisteredMemory() {
    for (const Range &range : ranges)
      calls.remove(reinterpret_cast<const void *>(range.low));
  }

private:
  /// Adds what a descriptor reaches, if there is an element.
  void add(const KVCacheValue &type, const int64_t *words);

  const KVCacheMemoryCalls &calls;
  std::vector<Range> ranges;
};
} // namespace

static int64_t getNumWords(const KVCacheValue &type) {
  return type.kind == KVCACHE_MEMREF ? 3 + 2 * type.rank : 1;
}

RegisteredMemory::RegisteredMemory(const KVCacheFunction &function,
                                   const int64_t *words)
    : calls(*function.memory) {
  for (int32_t index = 0; index < function.numArguments; ++index) {
    const KVCacheValue &type = function.arguments[index];
    if (type.kind == KVCACHE_MEMREF)
      add(type, words);
    words += getNumWords(type);
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.low < b.low; });
  // Those that overlap share one.
  std::vector<Range> merged;
  for (const Range &range : ranges) {
    if (merged.empty() || range.low >= merged.back().high) {
      merged.push_back(range);
      continue;
    }
    merged.back().high = std::max(merged.back().high, range.high);
    merged.back().isConstant &= range.isConstant;
  }
  ranges = std::move(merged);
  for (const Range &range : ranges) {
    auto add = range.isConstant ? calls.addConstant : calls.add;
    add(reinterpret_cast<const void *>(range.low),
        static_cast<int64_t>(range.high - range.low));
  }
}

void RegisteredMemory::add(const KVCacheValue &type, const int64_t *words) {
  int64_t bytes = (type.bits + 7) / 8;
  const int64_t *sizes = words + 3, *strides = sizes + type.rank;
  auto first = static_cast<uintptr_t>(words[1] + words[2] * bytes);
  Range range{first, first + bytes, (type.flags & KVCACHE_READONLY) != 0};
  for (int32_t dimension = 0; dimension < type.rank; ++dimension) {
    if (sizes[dimension] == 0)
      return;
    int64_t reach = (sizes[dimension] - 1) * strides[dimension] * bytes;
    (reach < 0 ? range.low : range.high) += reach;
  }
  ranges.push_back(range);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static bool unpack(const KVCacheFunction &function, const ffi::Any *args,
                   int32_t numArgs, int64_t *words) {
  if (function.obstacle)
    return raise("TypeError", std::string(function.name) +
                                  " can't be called: " + function.obstacle);
  if (numArgs != function.numArguments)
    return raise("ValueError", std::string(function.name) + ": expects " +
                                   std::to_string(function.numArguments) +
                                   " arguments, got " +
                                   std::to_string(numArgs) + ": " +
                                   function.text);
  for (int32_t index = 0; index < numArgs; ++index) {
    bool isMemRef = function.arguments[index].kind == KVCACHE_MEMREF;
    words = isMemRef ? unpackTensor(function, index, args[index], words)
                     : unpackNumber(function, index, args[index], words);
    if (!words)
      return false;
  }
  return true;
}

/// Calls compiled code. False after a failed check has raised an error. Apart
/// from its caller, so that no object lives across `setjmp`.
static bool runToEnd(CheckFrame &frame, KVCacheEntry entry, int64_t *words) {
  if (setjmp(frame.environment))
    return false;
  entry(words);
  return true;
}

static bool runChecked(KVCacheEntry entry, int64_t *words) {
  CheckFrame frame;
  enter(frame);
  bool ended = runToEnd(frame, entry, words);
  leave(frame);
  if (ended)
    return true;
  frame.freeMemory();
  return raise("kvcache.CheckError", frame.message);
}

/// The framework's current stream on a device.
static void *getStream(int32_t deviceType, int32_t device) {
  if (currentCall && currentCall->hasStream)
    return currentCall->stream;
  using GetStream = void *(*)(int32_t, int32_t);
  static const auto getStream =
      reinterpret_cast<GetStream>(lookupTVMFFI("TVMFFIEnvGetStream"));
  return getStream ? getStream(deviceType, std::max(device, 0)) : nullptr;
}

/// Runs with the device of the tensors and the stream of their framework.
static bool runOnDevice(const KVCacheFunction &function, KVCacheEntry entry,
                        const ffi::Any *args, int64_t *words) {
  int32_t device;
  if (!findDevice(function, args, device))
    return false;
  KVCacheScope outer;
  void *stream = getStream(function.device, device);
  if (function.scope->enter(device, stream, &outer))
    return raise("kvcache.TargetError", std::string(function.name) + ": " +
                                            function.scope->getLastError());
  bool succeeded = runChecked(entry, words);
  function.scope->leave(&outer);
  return succeeded;
}

static bool run(const KVCacheFunction &function, KVCacheEntry entry,
                const ffi::Any *args, int64_t *words) {
  if (function.scope)
    return runOnDevice(function, entry, args, words);
  if (!function.memory)
    return runChecked(entry, words);
  RegisteredMemory memory(function, words);
  return runChecked(entry, words);
}

/// Makes a long of Python of an unsigned integer.
static bool packUnsigned(uint64_t number, ffi::Any &result) {
  using FromBytes = int (*)(const ffi::Bytes *, ffi::Any *);
  static const auto fromBytes =
      reinterpret_cast<FromBytes>(lookupTVMFFI("TVMFFIBigIntFromByteArray"));
  uint64_t words[2] = {number, 0};
  ffi::Bytes bytes{reinterpret_cast<const char *>(words), sizeof(words)};
  if (fromBytes)
    return fromBytes(&bytes, &result) == 0;
  return raise("RuntimeError", "this TVM-FFI has no integers of 64 bits "
                               "without a sign");
}

static double decode(const KVCacheValue &type, int64_t word) {
  if (type.bits == 64) {
    double number;
    std::memcpy(&number, &word, sizeof(number));
    return number;
  }
  if (type.bits == 32) {
    float number;
    std::memcpy(&number, &word, sizeof(number));
    return number;
  }
  return decodeFloat(*type.format, type.bits, static_cast<uint32_t>(word));
}

static bool packNumber(const KVCacheValue &type, int64_t word,
                       ffi::Any &result) {
  result = {ffi::kInt, 0, {0}};
  if (type.kind == KVCACHE_FLOAT) {
    result.type = ffi::kFloat;
    result.real = decode(type, word);
    return true;
  }
  // Only the low bits are the number's.
  int32_t unused = 64 - type.bits;
  bool isUnsigned = type.code == 1;
  uint64_t shifted = static_cast<uint64_t>(word) << unused;
  result.integer = isUnsigned ? static_cast<int64_t>(shifted >> unused)
                              : static_cast<int64_t>(shifted) >> unused;
  if (type.bits == 1) {
    result.type = ffi::kBool;
    result.integer &= 1;
  }
  return !isUnsigned || result.integer >= 0 ||
         packUnsigned(static_cast<uint64_t>(word), result);
}

/// Makes an array of the results.
static bool packArray(std::vector<ffi::Any> &numbers, ffi::Any &result) {
  using GetGlobal = int (*)(const ffi::Bytes *, void **);
  using Call = int (*)(void *, ffi::Any *, int32_t, ffi::Any *);
  using DecRef = int (*)(void *);
  static const auto getGlobal =
      reinterpret_cast<GetGlobal>(lookupTVMFFI("TVMFFIFunctionGetGlobal"));
  static const auto call =
      reinterpret_cast<Call>(lookupTVMFFI("TVMFFIFunctionCall"));
  static const auto decRef =
      reinterpret_cast<DecRef>(lookupTVMFFI("TVMFFIObjectDecRef"));
  static void *const makeArray = [] {
    void *function = nullptr;
    ffi::Bytes name{"ffi.Array", 9};
    if (getGlobal)
      getGlobal(&name, &function);
    return function;
  }();
  if (!call || !decRef || !makeArray)
    return raise("RuntimeError", "this TVM-FFI has no arrays");
  bool succeeded = call(makeArray, numbers.data(),
                        static_cast<int32_t>(numbers.size()), &result) == 0;
  for (const ffi::Any &number : numbers)
    if (number.type >= ffi::kObjectBegin)
      decRef(number.pointer);
  return succeeded;
}

/// Makes the result: nothing, a number, or an array of numbers.
static bool pack(const KVCacheFunction &function, const int64_t *words,
                 ffi::Any &result) {
  result = {ffi::kNone, 0, {0}};
  if (function.numResults == 0)
    return true;
  if (function.numResults == 1)
    return packNumber(function.results[0], words[0], result);
  std::vector<ffi::Any> numbers(function.numResults);
  bool succeeded = true;
  for (int32_t index = 0; index < function.numResults; ++index)
    succeeded = succeeded && packNumber(function.results[index], words[index],
                                        numbers[index]);
  return succeeded && packArray(numbers, result);
}

extern "C" int32_t kvcacheCallTVMFFI(const KVCacheFunction *function,
                                     KVCacheEntry entry, const void *args,
                                     int32_t numArgs, void *result) {
  constexpr int32_t numNear = 256;
  int64_t near[numNear];
  std::unique_ptr<int64_t[]> far;
  int64_t *words = near;
  if (function->numWords > numNear) {
    far = std::make_unique<int64_t[]>(function->numWords);
    words = far.get();
  }
  DirectCall *outer =
      std::exchange(currentCall, std::exchange(nextCall, nullptr));
  const auto *values = static_cast<const ffi::Any *>(args);
  bool succeeded =
      unpack(*function, values, numArgs, words) &&
      run(*function, entry, values, words) &&
      pack(*function, words + function->numWords - function->numResults,
           *static_cast<ffi::Any *>(result));
  currentCall = outer;
  return succeeded ? 0 : -1;
}
