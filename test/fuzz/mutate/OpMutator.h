//===- OpMutator.h - Other modules ------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TEST_FUZZ_MUTATE_OPMUTATOR_H
#define KVCACHE_TEST_FUZZ_MUTATE_OPMUTATOR_H

#include "TextMutator.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::kvcache::fuzz {

/// Changes some ops of a module: deletes, repeats and moves them, and changes
/// their attributes, operands, types and nesting. What is left need not verify.
void mutate(ModuleOp module, Random &random);

} // namespace mlir::kvcache::fuzz

#endif // KVCACHE_TEST_FUZZ_MUTATE_OPMUTATOR_H
