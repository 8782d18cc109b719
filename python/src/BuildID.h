//===- BuildID.h - The identifier of this build -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_BUILDID_H
#define KVCACHE_PYTHON_BUILDID_H

#include "llvm/ADT/StringRef.h"

namespace mlir::kvcache::python {

/// The bytes that the linker computed from the contents of this extension, in
/// the note NT_GNU_BUILD_ID; empty if the linker wrote none.
llvm::StringRef getBuildID();

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_BUILDID_H
