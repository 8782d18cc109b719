//===- Nesting.h - Text that is nested too deep to parse --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_NESTING_H
#define KVCACHE_SUPPORT_NESTING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace llvm {
class MemoryBuffer;
} // namespace llvm

namespace mlir::kvcache {

/// MLIR's parser, printer and verifier recurse with the nesting of the source,
/// and a source that is nested too deep ends the process. Brackets nest, and so
/// do aliases in definitions of aliases, and operators in affine expressions.
///
/// Returns the place in a text that is nested too deep, or null. Skips strings
/// and comments. With a `splitMarker`, the text is a list of sources, as that
/// of `--split-input-file`.
const char *findDeepNesting(StringRef text, StringRef splitMarker = "");

/// Returns the message for such a place.
std::string getNestingError();

/// Prints an error with its location if a source is text that is nested too
/// deep.
LogicalResult checkNesting(const llvm::MemoryBuffer &source,
                           StringRef splitMarker = "");

/// Fails if a module holds modules of its own other than `gpu.module`s, or
/// these do: translation to LLVM IR leaves them out.
LogicalResult checkNestedModules(ModuleOp module);

/// Fails if an op is in no function, where nothing would run it.
LogicalResult checkInFunction(Operation *op);

/// Runs the main function of a tool of MLIR that reads its sources itself, on a
/// stack that suffices for a hundred thousand levels.
int runOnDeepStack(function_ref<int()> main);

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_NESTING_H
