//===- Reflect.h - Questions of CUDA's math library -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IMPORT_REFLECT_H
#define KVCACHE_LIB_IMPORT_REFLECT_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <optional>

namespace mlir::kvcache {

/// Replaces calls of `__nvvm_reflect` in a module by constants. Calls whose
/// name has no value stay. LLVM's NVPTX User Guide, "NVVM Reflect Pass".
void resolveReflections(
    Operation *module,
    function_ref<std::optional<int64_t>(StringRef name)> getValue);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IMPORT_REFLECT_H
