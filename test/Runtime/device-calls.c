//===- device-calls.c - Calls of the device, as host code makes them ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: kvcache-device-calls-DEVICE TEST [ARGUMENT...]
//
// A call that fails prints its message, and the test goes on.
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int32_t report(int32_t status) {
  if (status)
    printf("error: %s\n", kvcacheGetLastError());
  return status;
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

enum { kMaxImages = 8 };

typedef struct Module {
  /// Descriptors have such a module for their tensor.
  _Alignas(16) char data[kMaxImages][64];
  KVCacheImage images[kMaxImages];
  KVCacheBinary binary;
} Module;

/// Makes images from `kind:chip`, in which the kind is elf, fatbin, ptx, or
/// checked, for PTX with checks. Their data is the kind's magic number, the
/// name of the chip, and the variable of checks.
static void initModule(Module *module, char **names, int count) {
  module->binary.name = "kernels";
  module->binary.images = module->images;
  module->binary.numImages = count;
  for (int i = 0; i < count; ++i) {
    const char *chip = strchr(names[i], ':') + 1;
    const char *magic = names[i][0] == 'e'   ? "\177ELF"
                        : names[i][0] == 'f' ? "\x50\xed\x55\xba"
                                             : "";
    const char *variable =
        names[i][0] == 'c' ? " .global .b64 kvcache_failure_record;" : "";
    snprintf(module->data[i], sizeof(module->data[i]), "%s%s%s", magic, chip,
             variable);
    module->images[i].chip = chip;
    module->images[i].data = module->data[i];
    module->images[i].size = (int64_t)strlen(module->data[i]) + 1;
  }
}

/// A module for sm_90.
static void initDefaultModule(Module *module) {
  static char *names[] = {"elf:sm_90"};
  initModule(module, names, 1);
}

static void testLoad(char **names, int count) {
  Module module;
  void *loaded = NULL;
  initModule(&module, names, count);
  if (!report(kvcacheModuleLoad(&module.binary, &loaded)))
    printf("loaded\n");
}

static void testReload(void) {
  Module first, second;
  void *modules[4] = {NULL};
  initDefaultModule(&first);
  initDefaultModule(&second);
  printf("unload early: %d\n", kvcacheModuleUnload(&first.binary));
  report(kvcacheModuleLoad(&first.binary, &modules[0]));
  report(kvcacheModuleLoad(&first.binary, &modules[1]));
  report(kvcacheModuleLoad(&second.binary, &modules[2]));
  printf("same: %d, other: %d\n", modules[0] == modules[1],
         modules[0] != modules[2]);
  report(kvcacheModuleUnload(&first.binary));
  report(kvcacheModuleUnload(&first.binary));
  report(kvcacheModuleLoad(&first.binary, &modules[3]));
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static const KVCacheTensorMap kTensorMap = {
    .dims = {128, 8, 64, 32},
    .strides = {1, 128, 1024, 131072},
    .box = {64, 1, 64, 1},
    .offset = 256,
    .rank = 4,
    .elementBytes = 2,
    .swizzle = 128,
    .l2Promotion = 256,
};

/// Parameters of all sizes that kernels have.
typedef struct Params {
  _Alignas(64) char descriptor[128], garbage[128];
  int64_t wide;
  int32_t narrow;
  uint16_t half;
  int8_t byte;
  void *values[6];
  int64_t bytes[6];
} Params;

static void initParams(Params *params, void *base) {
  KVCacheTensorMap map = kTensorMap;
  map.base = base;
  report(kvcacheTensorMapEncode(&map, params->descriptor));
  memset(params->garbage, 0x5a, sizeof(params->garbage));
  params->wide = 0x123456789a;
  params->narrow = -7;
  params->half = 0x3c00;
  params->byte = -1;
  void *values[] = {&params->wide,   &params->narrow, params->descriptor,
                    params->garbage, &params->half,   &params->byte};
  int64_t bytes[] = {8, 4, 128, 128, 2, 1};
  memcpy(params->values, values, sizeof(values));
  memcpy(params->bytes, bytes, sizeof(bytes));
}

static void testLaunch(int numParams) {
  Module module;
  void *loaded = NULL, *stream, *memory;
  Params params;
  KVCacheLaunch launch = {
      .grid = {4, 2, 1}, .block = {128, 1, 1}, .sharedBytes = 1024};
  initDefaultModule(&module);
  if (report(kvcacheModuleLoad(&module.binary, &loaded)) ||
      report(kvcacheStreamCreate(&stream)) ||
      report(kvcacheMemAlloc(1024, &memory)))
    return;
  initParams(&params, memory);
  report(kvcacheLaunch(loaded, "gather", &launch, params.values, params.bytes,
                       numParams));
  launch.stream = stream;
  report(kvcacheLaunch(loaded, "gather", &launch, params.values, params.bytes,
                       numParams));
  report(kvcacheStreamSynchronize(stream));
}

static void testSharedMemory(void) {
  static const int64_t sizes[] = {0,      47 * 1024, 48 * 1024, 200000,
                                  100000, 227328,    -1};
  Module module;
  void *loaded = NULL;
  Params params;
  initDefaultModule(&module);
  report(kvcacheModuleLoad(&module.binary, &loaded));
  initParams(&params, &module);
  for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {
    KVCacheLaunch launch = {
        .grid = {1, 1, 1}, .block = {32, 1, 1}, .sharedBytes = sizes[i]};
    report(kvcacheLaunch(loaded, "gather", &launch, params.values, params.bytes,
                         6));
  }
}

static void testGrids(void) {
  static const KVCacheLaunch launches[] = {
      {.grid = {0, 5, 1}, .block = {32, 1, 1}},
      {.grid = {-1, 1, 1}, .block = {32, 1, 1}},
      {.grid = {1, (int64_t)1 << 32, 1}, .block = {32, 1, 1}},
      {.grid = {1, 1, 1}, .block = {32, 0, 1}},
      {.grid = {4, 2, 1}, .block = {32, 1, 1}, .cluster = {2, 0, 1}},
      {.grid = {4, 3, 1}, .block = {32, 1, 1}, .cluster = {2, 2, 1}},
  };
  Module module;
  void *loaded = NULL;
  Params params;
  initDefaultModule(&module);
  report(kvcacheModuleLoad(&module.binary, &loaded));
  initParams(&params, &module);
  for (size_t i = 0; i < sizeof(launches) / sizeof(*launches); ++i)
    if (!report(kvcacheLaunch(loaded, "gather", &launches[i], params.values,
                              params.bytes, 6)))
      printf("nothing to do\n");
}

static void testAttributes(void) {
  static const KVCacheLaunch launches[] = {
      {.grid = {4, 2, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}},
      {.grid = {4, 2, 1}, .block = {32, 1, 1}, .isProgrammatic = 1},
      {.grid = {4, 2, 1},
       .block = {32, 1, 1},
       .sharedBytes = 64,
       .cluster = {4, 2, 1},
       .isProgrammatic = 1},
  };
  Module module;
  void *loaded = NULL;
  Params params;
  initDefaultModule(&module);
  report(kvcacheModuleLoad(&module.binary, &loaded));
  initParams(&params, &module);
  for (size_t i = 0; i < sizeof(launches) / sizeof(*launches); ++i)
    report(kvcacheLaunch(loaded, "gather", &launches[i], params.values,
                         params.bytes, 6));
}

/// A launch after its kernel was loaded, in a scope.
static void testScope(int device) {
  Module module;
  void *loaded = NULL, *stream;
  int32_t count, capability;
  KVCacheScope outer;
  Params params;
  KVCacheLaunch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  initDefaultModule(&module);
  if (report(kvcacheDeviceCount(&count)) ||
      report(kvcacheDeviceCapability(0, &capability)) ||
      report(kvcacheScopeEnter(device, NULL, &outer)) ||
      report(kvcacheStreamCreate(&stream)))
    return;
  kvcacheScopeLeave(&outer);
  printf("devices: %d, capability: %d, stream: %d\n", count, capability,
         kvcacheScopeStream() != NULL);
  if (report(kvcacheScopeEnter(device, stream, &outer)))
    return;
  printf("stream of the scope: %d\n", kvcacheScopeStream() == stream);
  KVCacheKernel kernel = {&module.binary, "gather", 65536};
  report(kvcacheKernelLoad(&kernel));
  report(kvcacheModuleLoad(&module.binary, &loaded));
  initParams(&params, &module);
  launch.sharedBytes = 65536;
  launch.stream = kvcacheScopeStream();
  report(
      kvcacheLaunch(loaded, "gather", &launch, params.values, params.bytes, 6));
  kvcacheScopeLeave(&outer);
  printf("stream after it: %d\n", kvcacheScopeStream() != NULL);
}

/// Seconds of the monotonic clock.
static double getSeconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/// Measures the calls of host code for a launch with 14 parameters.
static void testCost(void) {
  enum { kParams = 14, kCalls = 20000, kSeries = 20 };
  Module module;
  void *loaded = NULL, *values[kParams];
  int64_t value = 7, bytes[kParams];
  double best = 1;
  KVCacheLaunch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  initDefaultModule(&module);
  for (int i = 0; i < kParams; ++i) {
    values[i] = &value;
    bytes[i] = 8;
  }
  for (int series = 0; series < kSeries; ++series) {
    double start = getSeconds();
    for (int i = 0; i < kCalls; ++i)
      if (report(kvcacheModuleLoad(&module.binary, &loaded)) ||
          report(
              kvcacheLaunch(loaded, "gather", &launch, values, bytes, kParams)))
        return;
    double cost = (getSeconds() - start) / kCalls;
    best = cost < best ? cost : best;
  }
  printf("%.3f us\n", best * 1e6);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static void testMemory(void) {
  char bytes[8] = "1234567";
  void *memory = bytes, *managed, *stream;
  report(kvcacheMemAlloc(0, &memory));
  printf("nothing: %d\n", memory == NULL);
  report(kvcacheMemFree(NULL));
  report(kvcacheMemCopy(NULL, NULL, 0, NULL));
  report(kvcacheMemSet(NULL, 1, 0, NULL));
  report(kvcacheMemAlloc(-8, &memory));
  report(kvcacheMemCopy(bytes, bytes, -1, NULL));

  if (report(kvcacheMemAlloc(8, &memory)) ||
      report(kvcacheMemAllocManaged(16, &managed)) ||
      report(kvcacheStreamCreate(&stream)))
    return;
  report(kvcacheMemCopy(memory, bytes, 8, stream));
  report(kvcacheMemSet(memory, 'x', 3, NULL));
  report(kvcacheMemCopy(bytes, memory, 8, NULL));
  report(kvcacheStreamSynchronize(NULL));
  printf("%s\n", bytes);
  report(kvcacheMemFree(memory));
  report(kvcacheMemFree(managed));
  report(kvcacheStreamDestroy(stream));
}

//===----------------------------------------------------------------------===//
// TMA descriptors
//===----------------------------------------------------------------------===//

static void encode(const KVCacheTensorMap *map) {
  _Alignas(64) unsigned char descriptor[128];
  memset(descriptor, 0x11, sizeof(descriptor));
  if (report(kvcacheTensorMapEncode(map, descriptor)))
    return;
  int isZero = 1;
  for (int i = 0; i < 128; ++i)
    isZero &= descriptor[i] == 0;
  printf("encoded: %s\n", isZero ? "zeros" : "a descriptor");
}

static void testEncode(void) {
  static const int32_t swizzles[] = {0, 32, 64, 128};
  static const int32_t promotions[] = {256, 128, 64, 0};
  KVCacheTensorMap map = kTensorMap;
  map.base = (void *)(uintptr_t)0x10000;
  encode(&map);
  for (int i = 0; i < 4; ++i) {
    KVCacheTensorMap row = {.base = map.base,
                            .dims = {(int64_t)1 << 31},
                            .strides = {1},
                            .box = {1 << (4 - i)},
                            .offset = -16,
                            .rank = 1,
                            .elementBytes = 1 << i,
                            .swizzle = i == 0 ? 0 : swizzles[i],
                            .l2Promotion = promotions[i]};
    if (i > 0)
      row.box[0] = swizzles[i] / row.elementBytes;
    encode(&row);
  }
}

static void testLimits(void) {
  _Alignas(64) char descriptor[160];
  KVCacheTensorMap valid = kTensorMap, map;
  valid.base = (void *)(uintptr_t)0x10000;
  map = valid;
  map.base = NULL;
  encode(&map);
  map = valid;
  map.base = (void *)(uintptr_t)0x10008;
  encode(&map);
  map = valid;
  map.rank = 6;
  encode(&map);
  map = valid;
  map.rank = -1;
  encode(&map);
  map = valid;
  map.dims[3] = ((int64_t)1 << 31) + 1;
  encode(&map);
  map = valid;
  map.swizzle = 16;
  encode(&map);
  map = valid;
  map.l2Promotion = 512;
  encode(&map);
  report(kvcacheTensorMapEncode(&valid, descriptor + 16));
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

static Module sharedModule;

static void *runThread(void *result) {
  Params params;
  KVCacheLaunch launch = {
      .grid = {1, 1, 1}, .block = {32, 1, 1}, .sharedBytes = 65536};
  void *loaded = NULL;
  initParams(&params, &sharedModule);
  report(kvcacheModuleLoad(&sharedModule.binary, &loaded));
  for (int i = 0; i < 100; ++i)
    report(kvcacheLaunch(loaded, "gather", &launch, params.values, params.bytes,
                         6));
  // Errors are those of a thread.
  if (strcmp(kvcacheGetLastError(), "") != 0)
    printf("error of another thread: %s\n", kvcacheGetLastError());
  *(void **)result = loaded;
  return NULL;
}

static void testThreads(void) {
  enum { kThreads = 8 };
  pthread_t threads[kThreads];
  void *modules[kThreads], *memory;
  initDefaultModule(&sharedModule);
  report(kvcacheMemAlloc(-1, &memory));
  for (int i = 0; i < kThreads; ++i)
    if (pthread_create(&threads[i], NULL, runThread, &modules[i]) != 0)
      abort();
  for (int i = 0; i < kThreads; ++i)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i)
    printf("module %d: %s\n", i, modules[i] == modules[0] ? "same" : "other");
}

int main(int argc, char **argv) {
  const char *test = argc > 1 ? argv[1] : "";
  if (!strcmp(test, "load"))
    testLoad(argv + 2, argc - 2);
  else if (!strcmp(test, "reload"))
    testReload();
  else if (!strcmp(test, "launch"))
    testLaunch(argc > 2 ? atoi(argv[2]) : 6);
  else if (!strcmp(test, "shared-memory"))
    testSharedMemory();
  else if (!strcmp(test, "grids"))
    testGrids();
  else if (!strcmp(test, "attributes"))
    testAttributes();
  else if (!strcmp(test, "scope"))
    testScope(argc > 2 ? atoi(argv[2]) : -1);
  else if (!strcmp(test, "cost"))
    testCost();
  else if (!strcmp(test, "memory"))
    testMemory();
  else if (!strcmp(test, "encode"))
    testEncode();
  else if (!strcmp(test, "limits"))
    testLimits();
  else if (!strcmp(test, "threads"))
    testThreads();
  else
    return 2;
  return 0;
}
