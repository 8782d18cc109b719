//===- TVMFFI.h - Calls of compiled functions through TVM-FFI -----*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass kvcache-emit-tvm-ffi describes each public function as constants of
// the types below, and calls kvcacheCallTVMFFI in its wrapper. Everything that
// can be wrong with the arguments of a call is checked here.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_TVMFFI_H
#define KVCACHE_RUNTIME_TVMFFI_H

#include "kvcache/Runtime/Device.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The kind of an argument or result of a function.
enum KVCacheValueKind {
  KVCACHE_INTEGER = 0,
  KVCACHE_FLOAT = 1,
  KVCACHE_MEMREF = 2
};

/// Properties of a value, or-ed.
enum KVCacheValueFlags {
  /// An integer, or elements, may be signed or unsigned.
  KVCACHE_SIGNLESS = 1,
  /// The memref has the identity layout.
  KVCACHE_CONTIGUOUS = 2,
  /// The function does not write to the memref.
  KVCACHE_READONLY = 4,
  /// The memref holds the blocks or scales of a cache. The distances between
  /// pages, and a stride of heads that the type leaves open, are multiples of
  /// `flags >> KVCACHE_UNIT_SHIFT` bytes.
  KVCACHE_CACHE = 8,
  /// The memref holds dense rows of an op on whole caches. Strides that the
  /// type
  /// leaves open are multiples of `flags >> KVCACHE_UNIT_SHIFT` bytes.
  KVCACHE_ROWS = 16
};
#define KVCACHE_UNIT_SHIFT 8

/// A size or a stride that the type leaves open.
#define KVCACHE_DYNAMIC INT64_MIN

/// The codes of a float format of at most 32 bits. Magnitudes are the codes
/// without the sign.
typedef struct KVCacheFloatFormat {
  int64_t mantissaBits;
  /// The exponent of the smallest normal number.
  int64_t minExponent;
  /// Whether there are a zero and subnormal numbers.
  int64_t hasZero;
  int64_t hasSign;
  /// The magnitude of the largest number.
  int64_t largest;
  /// The magnitude of infinity; -1 without one.
  int64_t infinity;
  /// The code of a NaN; -1 without one.
  int64_t nan;
} KVCacheFloatFormat;

/// The type of an argument or a result, and the name of the argument.
typedef struct KVCacheValue {
  /// The type as MLIR text.
  const char *text;
  /// Empty where the source has none.
  const char *name;
  /// The sizes of a memref, then its strides in elements.
  const int64_t *layout;
  /// The format of a float of less than 32 bits.
  const KVCacheFloatFormat *format;
  /// The offset of a memref, in elements.
  int64_t offset;
  /// A KVCacheValueKind.
  int32_t kind;
  /// DLPack's type code of a number or of elements.
  int32_t code;
  /// Bits of a number; bits of an element in memory.
  int32_t bits;
  int32_t rank;
  /// Bytes that the first element is aligned to.
  int32_t alignment;
  /// KVCacheValueFlags.
  int32_t flags;
} KVCacheValue;

/// Functions of the emulator, which must have the memory of a call.
typedef struct KVCacheMemoryCalls {
  void (*add)(const void *pointer, int64_t bytes);
  void (*addConstant)(const void *pointer, int64_t bytes);
  void (*remove)(const void *pointer);
} KVCacheMemoryCalls;

/// Functions of the device, which must have the device and the stream of a
/// call; see Device.h.
typedef struct KVCacheScopeCalls {
  int32_t (*enter)(int32_t device, void *stream, KVCacheScope *outer);
  void (*leave)(const KVCacheScope *outer);
  const char *(*getLastError)(void);
} KVCacheScopeCalls;

typedef struct KVCacheFunction {
  const char *name;
  /// The type as MLIR text.
  const char *text;
  /// Why the function can't be called; null if it can.
  const char *obstacle;
  const KVCacheValue *arguments, *results;
  /// Null for kernels that access all memory of the process.
  const KVCacheMemoryCalls *memory;
  /// Null for functions without work on a device.
  const KVCacheScopeCalls *scope;
  int32_t numArguments, numResults;
  /// Words of all arguments and results.
  int32_t numWords;
  /// DLPack's code of the device whose memory is passed: 1 for the CPU, 2 for
  /// CUDA.
  int32_t device;
} KVCacheFunction;

/// Calls compiled code with the words of its arguments, and after them a word
/// for each result. A memref has the words of its descriptor: two pointers,
/// offset, sizes, strides. A number has one word, of which it is the low bits.
typedef void (*KVCacheEntry)(void *words);

/// Checks the arguments and calls the function. `args` and `result` are of type
/// TVMFFIAny. Returns 0, or -1 after an error was set with
/// TVMFFIErrorSetRaisedFromCStr of libtvm_ffi: TypeError, ValueError,
/// OverflowError, kvcache.CheckError for a run-time check or a call of the
/// device that failed, or kvcache.TargetError where there is no device. Memory
/// of the host that the function has allocated by then is freed, memory of a
/// device is not.
///
/// Work on a GPU goes to the stream that TVMFFIEnvGetStream has for the device
/// of the tensors, which is the framework's current stream.
__attribute__((visibility("default"))) int32_t
kvcacheCallTVMFFI(const KVCacheFunction *function, KVCacheEntry entry,
                  const void *args, int32_t numArgs, void *result);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_RUNTIME_TVMFFI_H
