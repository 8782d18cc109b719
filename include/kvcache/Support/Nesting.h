//===- Nesting.h - Sources that end a process, and modules ------*- C++ -*-===//
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

#include <optional>
#include <string>

namespace llvm {
class MemoryBuffer;
} // namespace llvm

namespace mlir::kvcache {

/// A place in a text, and why MLIR can't read it.
struct Unreadable {
  const char *place;
  std::string reason;
};

/// MLIR's parser, printer and verifier recurse with the nesting of the source,
/// and a source that is nested too deep ends the process. Brackets nest, and so
/// do aliases in definitions of aliases, and operators in affine expressions.
/// An array attribute of indices ends it too, and so does a position in a
/// struct that 31 bits can't hold.
///
/// Returns the first such place in a text, if there is one. Skips strings and
/// comments. With a `splitMarker`, the text is a list of sources, as that of
/// `--split-input-file`.
std::optional<Unreadable> findUnreadable(StringRef text,
                                         StringRef splitMarker = "");

/// Prints an error with its location if a source is text with such a place.
LogicalResult checkReadable(const llvm::MemoryBuffer &source,
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
