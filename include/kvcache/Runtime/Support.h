//===- Support.h - Common functions of the device libraries -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_SUPPORT_H
#define KVCACHE_RUNTIME_SUPPORT_H

#include "kvcache/Runtime/Device.h"
#include "kvcache/TMA/Encoding.h"

#include <optional>
#include <string>

namespace mlir::kvcache::runtime {

/// The statuses that functions of the C ABI return.
inline constexpr int32_t kSuccess = 0, kFailure = 1;

/// Makes `message` the last error of this thread. Returns `kFailure`.
int32_t fail(const std::string &message);

/// The value of an environment variable, or null if it is unset or empty.
const char *getEnvironment(const char *name);

/// The blocks that a cluster can have on every chip that has clusters. CUDA C++
/// Programming Guide, "Thread Block Clusters".
inline constexpr int64_t kMaxClusterBlocks = 8;

/// Fails for a size below 0.
int32_t checkBytes(int64_t bytes);

/// Fails for a launch that no device supports. `kernel` is for the message.
int32_t checkLaunch(const std::string &kernel, const KVCacheLaunch &launch);

/// Whether the grid has no blocks.
bool isEmpty(const KVCacheLaunch &launch);

/// Returns `@module::@kernel`.
std::string getKernelName(const std::string &module, const char *kernel);

/// The prefix of the chip of an image for the emulator, whose data is a
/// KVCacheEmulatedModule.
inline constexpr char kEmulatedPrefix[] = "emulator:";

/// Whether an image is for the emulator.
bool isEmulated(const KVCacheImage &image);

/// Lists the chips of the images of a binary.
std::string listChips(const KVCacheBinary &binary);

/// Waits for the work of all streams. Each device on the host defines it.
int32_t finishWork();

/// Returns the contents of a descriptor at `address`. If they exceed a limit,
/// returns `nullopt` and sets the last error.
std::optional<tma::Descriptor> getDescriptor(const KVCacheTensorMap &map,
                                             const void *address);

} // namespace mlir::kvcache::runtime

#endif // KVCACHE_RUNTIME_SUPPORT_H
