//===- DowngradeLLVMText.h - Text of newer versions of LLVM -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IMPORT_DOWNGRADELLVMTEXT_H
#define KVCACHE_LIB_IMPORT_DOWNGRADELLVMTEXT_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::kvcache {

/// Rewrites constants of floats that newer versions of LLVM print and LLVM 22
/// can't read: `float f0x2B8CBCCC`, `float +inf`, and decimal ones that are
/// rounded, such as `float 1.000000e-30`. Lines stay lines.
std::string downgradeLLVMText(llvm::StringRef text);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IMPORT_DOWNGRADELLVMTEXT_H
