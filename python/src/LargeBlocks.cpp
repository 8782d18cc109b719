//===- LargeBlocks.cpp - Blocks that take LLVM long -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LargeBlocks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace mlir::kvcache::python;

/// The size from which a block is large, and that of the blocks it becomes.
static constexpr unsigned kLargeBlock = 500, kSplitBlock = 50;

/// Blocks without calls keep vectors in registers, and stay whole.
static bool isLargeWithCalls(const llvm::BasicBlock &block) {
  return block.size() >= kLargeBlock &&
         llvm::any_of(block, [](const llvm::Instruction &instruction) {
           return llvm::isa<llvm::CallInst>(instruction) &&
                  !llvm::isa<llvm::IntrinsicInst>(instruction);
         });
}

/// Static variables must stay in the entry block.
static llvm::BasicBlock::iterator findSplitBegin(llvm::BasicBlock &block) {
  auto begin = block.getFirstNonPHIIt();
  for (auto it = begin; it != block.end(); ++it)
    if (llvm::isa<llvm::AllocaInst>(*it))
      begin = std::next(it);
  return begin;
}

static void splitLargeBlock(llvm::BasicBlock *block) {
  unsigned size = 0;
  for (auto it = findSplitBegin(*block); !it->isTerminator(); ++it) {
    if (++size <= kSplitBlock)
      continue;
    block = block->splitBasicBlock(it);
    // CodeGenPrepare merges blocks again, except those with an address.
    llvm::BlockAddress::get(block);
    it = block->begin();
    size = 1;
  }
}

void kvcache::python::splitLargeBlocks(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : llvm::make_early_inc_range(function))
      if (isLargeWithCalls(block))
        splitLargeBlock(&block);
}
