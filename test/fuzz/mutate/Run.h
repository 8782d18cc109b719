//===- Run.h - One mutant ---------------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TEST_FUZZ_MUTATE_RUN_H
#define KVCACHE_TEST_FUZZ_MUTATE_RUN_H

#include "Findings.h"
#include "TextMutator.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>

namespace mlir::kvcache::fuzz {

/// Makes mutants and runs them, in contexts that last for some of them.
class Runner {
public:
  /// `isBytecode`: mutants are damaged files of bytecode, which are only read.
  Runner(Progress &progress, bool isBytecode);
  ~Runner();

  void run(llvm::StringRef text, const TextMutator &mutator, Random &random);

private:
  std::string mutate(llvm::StringRef text, const TextMutator &mutator,
                     Random &random);
  bool mutateOps(llvm::StringRef text, uint64_t number);
  OwningOpRef<ModuleOp> parse(llvm::StringRef text);
  bool parsesElsewhere(llvm::StringRef text);
  void runPasses(ModuleOp module, llvm::StringRef passes);
  void roundTrip(ModuleOp module);
  void readDamaged(llvm::StringRef text, Random &random);
  void renewContext();

  Progress &progress;
  bool isBytecode;
  std::unique_ptr<MLIRContext> context;
  unsigned uses = 0;
  bool hasError = false;
};

} // namespace mlir::kvcache::fuzz

#endif // KVCACHE_TEST_FUZZ_MUTATE_RUN_H
