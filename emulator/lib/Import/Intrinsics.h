//===- Intrinsics.h - Intrinsics as instructions of PTX ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IMPORT_INTRINSICS_H
#define KVCACHE_LIB_IMPORT_INTRINSICS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <optional>
#include <string>

namespace mlir::kvcache {

/// The instruction of PTX that a call of an intrinsic is, as inline assembly
/// whose operands are the parts of its result and its arguments. None for
/// others: those that the emulator has by name, and unknown ones.
std::optional<std::string> getInstruction(LLVM::CallIntrinsicOp op);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IMPORT_INTRINSICS_H
