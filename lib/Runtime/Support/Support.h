//===- Support.h - What the device libraries share --------------*- C++ -*-===//
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

/// What functions of the C ABI return.
inline constexpr int32_t kSuccess = 0, kFailure = 1;

/// Makes `message` the last error of this thread. Returns `kFailure`.
int32_t fail(const std::string &message);

/// The value of an environment variable, or null if it is unset or empty.
const char *getEnvironment(const char *name);

/// Fails for a size below 0.
int32_t checkBytes(int64_t bytes);

/// Fails for what no device can launch. `kernel` is for the message.
int32_t checkLaunch(const std::string &kernel, const KVCacheLaunch &launch);

/// Whether nothing is to run.
bool isEmpty(const KVCacheLaunch &launch);

/// `@module::@kernel`.
std::string getKernelName(const std::string &module, const char *kernel);

/// What the chips of images for the emulator begin with; their data is a
/// KVCacheEmulatedModule.
inline constexpr char kEmulatedPrefix[] = "emulator:";

/// Whether an image is for the emulator.
bool isEmulated(const KVCacheImage &image);

/// The chips that a binary has images for, as text.
std::string listChips(const KVCacheBinary &binary);

/// What a descriptor at `address` shall say; none, and the last error set, if
/// that breaks a limit.
std::optional<tma::Descriptor> getDescriptor(const KVCacheTensorMap &map,
                                             const void *address);

} // namespace mlir::kvcache::runtime

#endif // KVCACHE_RUNTIME_SUPPORT_H
