//===- Images.h - The image for a device ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_CUDA_IMAGES_H
#define KVCACHE_LIB_RUNTIME_CUDA_IMAGES_H

#include "kvcache/Runtime/Device.h"

namespace mlir::kvcache::runtime::cuda {

/// Returns the image of `binary` that fits a device of this compute capability
/// (major * 10 + minor) best, in the order of `kvcacheModuleLoad`. Returns null
/// and sets the last error if no image fits.
const KVCacheImage *selectImage(const KVCacheBinary &binary, int capability);

} // namespace mlir::kvcache::runtime::cuda

#endif // KVCACHE_LIB_RUNTIME_CUDA_IMAGES_H
