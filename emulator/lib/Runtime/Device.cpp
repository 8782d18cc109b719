//===- Device.cpp - The C ABI of a device, emulated -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"
#include "Memory.h"
#include "kvcache/Runtime/Support.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;
using namespace mlir::kvcache::runtime;

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// The image to run; null, and the last error set, if there is none.
static const KVCacheImage *selectImage(const KVCacheBinary &binary) {
  const char *chip = getEnvironment("KVCACHE_EMULATOR_CHIP");
  const KVCacheImage *end = binary.images + binary.numImages;
  const KVCacheImage *found =
      std::find_if(binary.images, end, [&](const KVCacheImage &image) {
        return isEmulated(image) &&
               (!chip || image.chip == std::string(kEmulatedPrefix) + chip);
      });
  if (found != end)
    return found;
  fail("module @" + std::string(binary.name) + " has no code for " +
       (chip ? "the emulator of " + std::string(chip) : "the emulator") +
       ": it is for " + listChips(binary));
  return nullptr;
}

static const KVCacheEmulatedModule &getModule(const KVCacheImage &image) {
  return *static_cast<const KVCacheEmulatedModule *>(image.data);
}

namespace {
/// The modules that are loaded, by their binaries. The handle of a module is
/// the address of its binary.
struct LoadedModules {
  std::mutex mutex;
  std::map<const KVCacheBinary *, const KVCacheImage *> modules;

  static LoadedModules &get() {
    static LoadedModules &modules = *new LoadedModules;
    return modules;
  }
};
} // namespace

int32_t kvcacheModuleLoad(const KVCacheBinary *binary, void **module) {
  LoadedModules &loaded = LoadedModules::get();
  std::lock_guard<std::mutex> lock(loaded.mutex);
  auto found = loaded.modules.find(binary);
  if (found == loaded.modules.end()) {
    const KVCacheImage *image = selectImage(*binary);
    if (!image)
      return kFailure;
    const KVCacheEmulatedModule &code = getModule(*image);
    for (int64_t i = 0; i < code.numGlobals; ++i) {
      const KVCacheEmulatedGlobal &global = code.globals[i];
      Memory::get().add(global.address, global.bytes, global.isInitialized,
                        global.isConstant);
    }
    loaded.modules.emplace(binary, image);
  }
  *module = const_cast<KVCacheBinary *>(binary);
  return kSuccess;
}

int32_t kvcacheModuleUnload(const KVCacheBinary *binary) {
  if (int32_t status = finishWork())
    return status;
  LoadedModules &loaded = LoadedModules::get();
  std::lock_guard<std::mutex> lock(loaded.mutex);
  auto found = loaded.modules.find(binary);
  if (found == loaded.modules.end())
    return kSuccess;
  const KVCacheEmulatedModule &code = getModule(*found->second);
  for (int64_t i = 0; i < code.numGlobals; ++i)
    Memory::get().remove(code.globals[i].address);
  loaded.modules.erase(found);
  return kSuccess;
}

static const KVCacheImage *lookupImage(const KVCacheBinary *binary) {
  LoadedModules &loaded = LoadedModules::get();
  std::lock_guard<std::mutex> lock(loaded.mutex);
  auto found = loaded.modules.find(binary);
  return found == loaded.modules.end() ? nullptr : found->second;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static int32_t checkParams(const Grid &grid, const int64_t *paramBytes,
                           int64_t numParams) {
  const KVCacheEmulatedKernel &kernel = *grid.kernel;
  if (numParams < kernel.numParams)
    return fail("kernel " + grid.name + " has " +
                std::to_string(kernel.numParams) + " parameters, got " +
                std::to_string(numParams));
  for (int64_t i = 0; i < kernel.numParams; ++i)
    if (paramBytes[i] != kernel.paramBytes[i])
      return fail("parameter " + std::to_string(i) + " of kernel " + grid.name +
                  " has " + std::to_string(kernel.paramBytes[i]) +
                  " bytes, got " + std::to_string(paramBytes[i]));
  return kSuccess;
}

static std::string describe(const int64_t (&sides)[3]) {
  return std::to_string(sides[0]) + " x " + std::to_string(sides[1]) + " x " +
         std::to_string(sides[2]);
}

/// CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability".
static int32_t checkSides(const Grid &grid, const KVCacheLaunch &launch) {
  constexpr int64_t maxBlockZ = 64, maxGridYZ = 65535;
  const KVCacheEmulatedKernel &kernel = *grid.kernel;
  int64_t threads = 1;
  for (int64_t side : launch.block)
    threads =
        std::min<int64_t>(threads * std::min<int64_t>(side, 1 << 20), 1 << 20);
  if (threads > kernel.maxThreads || launch.block[2] > maxBlockZ)
    return fail("kernel " + grid.name + " can have " +
                std::to_string(kernel.maxThreads) +
                " threads in a block, 64 of them along z, got " +
                describe(launch.block));
  if (kernel.requiredBlock[0] &&
      !std::equal(launch.block, launch.block + 3, kernel.requiredBlock))
    return fail("kernel " + grid.name + " requires blocks of " +
                describe(kernel.requiredBlock) + " threads, got " +
                describe(launch.block));
  if (launch.grid[1] > maxGridYZ || launch.grid[2] > maxGridYZ)
    return fail("a grid can have 65535 blocks along y and along z, got " +
                describe(launch.grid) + " for kernel " + grid.name);
  return kSuccess;
}

/// A kernel may fix the size of its clusters, or leave it to the launch.
static int32_t setCluster(Grid &grid, const KVCacheLaunch &launch) {
  const KVCacheEmulatedKernel &kernel = *grid.kernel;
  KVCacheLaunch shape = launch;
  bool isGiven = launch.cluster[0] != 0, isFixed = kernel.requiredCluster[0];
  if (isGiven && isFixed &&
      !std::equal(launch.cluster, launch.cluster + 3, kernel.requiredCluster))
    return fail("kernel " + grid.name + " requires clusters of " +
                describe(kernel.requiredCluster) + " blocks, got " +
                describe(launch.cluster));
  if (!isGiven && isFixed)
    std::copy_n(kernel.requiredCluster, 3, shape.cluster);
  if (shape.cluster[0] == 0)
    return kSuccess;
  // The grid must be a multiple of what the kernel fixes, too.
  if (int32_t status = checkLaunch(grid.name, shape))
    return status;
  std::copy_n(shape.cluster, 3, grid.cluster);
  int64_t blocks = grid.numClusterBlocks();
  if (blocks > 1 && !grid.module->hasClusters)
    return fail("kernel " + grid.name + " is launched with clusters, which " +
                grid.chip + " does not have: they require sm_90 or newer");
  if (kernel.maxClusterBlocks && blocks > kernel.maxClusterBlocks)
    return fail("kernel " + grid.name + " can have " +
                std::to_string(kernel.maxClusterBlocks) +
                " blocks in a cluster, got " + describe(shape.cluster));
  return kSuccess;
}

static int32_t setShared(Grid &grid, int64_t dynamicBytes) {
  const KVCacheEmulatedKernel &kernel = *grid.kernel;
  int64_t bytes = dynamicBytes ? kernel.dynamicSharedOffset + dynamicBytes
                               : kernel.sharedBytes;
  if (bytes > grid.module->maxSharedBytes)
    return fail("kernel " + grid.name + " requires " + std::to_string(bytes) +
                " bytes of shared memory in a block; the chip has " +
                std::to_string(grid.module->maxSharedBytes));
  grid.sharedBytes = bytes;
  grid.dynamicSharedBytes = dynamicBytes;
  grid.sharedVariables =
      SharedVariables(kernel, bytes, grid.module->isSanitized);
  return kSuccess;
}

/// Reads a variable of the environment; none leaves the number as it is.
static int32_t readNumber(const char *name, uint64_t least, uint64_t most,
                          uint64_t &number) {
  const char *text = getEnvironment(name);
  if (!text)
    return kSuccess;
  const char *end = text + std::strlen(text);
  uint64_t found = 0;
  auto [rest, error] = std::from_chars(text, end, found);
  if (error != std::errc() || rest != end || found < least || found > most)
    return fail(std::string(name) + " is expected to be a number from " +
                std::to_string(least) + " to " + std::to_string(most) +
                ", got '" + text + "'");
  number = found;
  return kSuccess;
}

static int32_t readEnvironment(Grid &grid) {
  constexpr uint64_t maxWorkers = 1024, maxTogether = 1024, any = ~uint64_t{0};
  grid.numWorkers = std::max(std::thread::hardware_concurrency(), 1u);
  if (int32_t status = readNumber("KVCACHE_EMULATOR_THREADS", 1, maxWorkers,
                                  grid.numWorkers))
    return status;
  if (int32_t status =
          readNumber("KVCACHE_EMULATOR_TIMEOUT", 1, any, grid.mostSeconds))
    return status;
  if (int32_t status = readNumber("KVCACHE_EMULATOR_BLOCKS", 1, maxTogether,
                                  grid.numTogether))
    return status;
  return readNumber("KVCACHE_EMULATOR_SEED", 0, any, grid.seed);
}

static const KVCacheEmulatedKernel *
lookupKernel(const KVCacheEmulatedModule &module, const char *name) {
  const KVCacheEmulatedKernel *end = module.kernels + module.numKernels;
  const KVCacheEmulatedKernel *found =
      std::find_if(module.kernels, end, [&](const auto &kernel) {
        return std::strcmp(kernel.name, name) == 0;
      });
  return found == end ? nullptr : found;
}

namespace {
/// Launches of a stream run one at a time, whichever threads of the host they
/// come from.
struct Stream {
  std::mutex mutex;
  /// The last launch, if it may not have ended yet: what is done next on any
  /// stream ends it, unless that is a programmatic launch after it.
  std::unique_ptr<Launch> last;

  int32_t finish() {
    std::unique_ptr<Launch> launch = std::move(last);
    std::optional<std::string> error;
    if (launch)
      error = launch->finish();
    return error ? fail(*error) : kSuccess;
  }
};

/// The streams on which anything was launched.
class Streams {
public:
  static Streams &get() {
    static Streams &streams = *new Streams;
    return streams;
  }

  Stream &lookup(void *stream) {
    std::lock_guard<std::mutex> lock(mutex);
    return streams[stream];
  }
  /// A stream is never erased.
  std::vector<Stream *> getAll() {
    std::lock_guard<std::mutex> lock(mutex);
    std::vector<Stream *> all;
    for (auto &[handle, stream] : streams)
      all.push_back(&stream);
    return all;
  }

private:
  std::mutex mutex;
  std::map<void *, Stream> streams;
};
} // namespace

int32_t runtime::finishWork() {
  int32_t status = kSuccess;
  for (Stream *stream : Streams::get().getAll()) {
    std::lock_guard<std::mutex> lock(stream->mutex);
    status |= stream->finish();
  }
  return status;
}

/// Runs a launch after the last one of its stream.
static int32_t run(const Grid &grid, Stream &stream) {
  std::lock_guard<std::mutex> lock(stream.mutex);
  if (!grid.isProgrammatic)
    if (int32_t status = stream.finish())
      return status;
  std::unique_ptr<Launch> before = std::move(stream.last);
  auto launch = std::make_unique<Launch>(grid);
  if (std::optional<std::string> error = launch->run(before.get()))
    return fail(*error);
  stream.last = std::move(launch);
  return kSuccess;
}

int32_t kvcacheLaunch(void *handle, const char *kernel,
                      const KVCacheLaunch *launch, void **params,
                      const int64_t *paramBytes, int64_t numParams) {
  const auto *binary = static_cast<const KVCacheBinary *>(handle);
  Grid grid;
  const KVCacheImage *image = lookupImage(binary);
  if (!image)
    return fail("the module of kernel " + std::string(kernel) +
                " is not loaded");
  grid.module = &getModule(*image);
  grid.chip = image->chip + std::strlen(kEmulatedPrefix);
  grid.name = getKernelName(binary->name, kernel);
  grid.kernel = lookupKernel(*grid.module, kernel);
  if (!grid.kernel)
    return fail("there is no kernel " + grid.name);
  if (int32_t status = checkLaunch(grid.name, *launch))
    return status;
  if (int32_t status = checkSides(grid, *launch))
    return status;
  if (int32_t status = setCluster(grid, *launch))
    return status;
  if (int32_t status = checkParams(grid, paramBytes, numParams))
    return status;
  if (int32_t status = setShared(grid, launch->sharedBytes))
    return status;
  if (isEmpty(*launch))
    return kSuccess;
  std::copy_n(launch->grid, 3, grid.blocks);
  std::copy_n(launch->block, 3, grid.threads);
  grid.params = params;
  if (int32_t status = readEnvironment(grid))
    return status;
  grid.isProgrammatic = launch->isProgrammatic;
  // Work on all streams is done in the order in which it comes.
  return run(grid, Streams::get().lookup(launch->stream));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static int32_t allocate(int64_t bytes, void **pointer, bool isManaged) {
  if (int32_t status = checkBytes(bytes))
    return status;
  *pointer = bytes > 0 ? Memory::get().allocate(bytes, isManaged) : nullptr;
  if (bytes > 0 && !*pointer)
    return fail("out of memory: " + std::to_string(bytes) + " bytes");
  return kSuccess;
}

int32_t kvcacheMemAlloc(int64_t bytes, void **pointer) {
  return allocate(bytes, pointer, /*isManaged=*/false);
}

int32_t kvcacheMemAllocManaged(int64_t bytes, void **pointer) {
  return allocate(bytes, pointer, /*isManaged=*/true);
}

int32_t kvcacheMemFree(void *pointer) {
  if (int32_t status = finishWork())
    return status;
  if (pointer && !Memory::get().free(pointer))
    return fail("frees what is not the beginning of memory of the device");
  return kSuccess;
}

int32_t kvcacheMemCopy(void *to, const void *from, int64_t bytes, void *) {
  if (int32_t status = checkBytes(bytes))
    return status;
  if (int32_t status = finishWork())
    return status;
  if (bytes == 0)
    return kSuccess;
  std::memmove(to, from, bytes);
  Memory::get().noteHostCopy(to, from, bytes);
  return kSuccess;
}

int32_t kvcacheMemSet(void *pointer, uint8_t value, int64_t bytes, void *) {
  if (int32_t status = checkBytes(bytes))
    return status;
  if (int32_t status = finishWork())
    return status;
  if (bytes == 0)
    return kSuccess;
  std::memset(pointer, value, bytes);
  Memory::get().noteHostWrite(pointer, bytes);
  return kSuccess;
}
