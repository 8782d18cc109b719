//===- build-ops.cpp - Builds ops on whole caches in a module -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a module, and puts an op at the beginning of each function that has the
// name of one in the attribute `builds`, by the op's builder in C++, which
// takes the arguments of the function. A result goes in place of the last
// argument.
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/SelectionOps.h"
#include "kvcache/IR/SplitOps.h"
#include "kvcache/IR/WholeCacheOps.h"
#include "kvcache/InitAll.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

static Operation *build(OpBuilder &builder, Location loc, StringRef name,
                        ValueRange args) {
  if (name == "append")
    return kvcache::AppendOp::create(builder, loc, args[0], args[1], args[2],
                                     args[3], args[4]);
  if (name == "attention")
    return kvcache::AttentionOp::create(builder, loc, args[0], args[1], args[2],
                                        args[3], args[4], args[5]);
  if (name == "gather") {
    auto gather = kvcache::GatherOp::create(builder, loc, args[0], args[1],
                                            args[2], args[3]);
    gather.setBlockThreads(512);
    gather.setHeadsPerThread(8);
    return gather;
  }
  if (name == "gather_keys")
    return kvcache::GatherOp::create(builder, loc, args[0], Value(), args[1],
                                     Value());
  if (name == "copy")
    return kvcache::CopyOp::create(builder, loc, args[0], args[1]);
  if (name == "merge_states")
    return kvcache::MergeStatesOp::create(builder, loc, args[0], args[1],
                                          args[2], args[3]);
  if (name == "remap_rows")
    return kvcache::RemapRowsOp::create(builder, loc, args[0], args[1], args[2],
                                        args[3]);
  if (name == "index_scores") {
    auto index = kvcache::IndexScoresOp::create(builder, loc, args[0], args[1],
                                                args[2], args[3]);
    index.setSumHeads(true);
    return index;
  }
  if (name == "pool")
    return kvcache::PoolOp::create(builder, loc, args[0], args[1], args[2], 4);
  if (name == "top_rows")
    return kvcache::TopRowsOp::create(builder, loc, args[0], args[1], args[2],
                                      args[3], args[4]);
  return nullptr;
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  kvcache::registerAllDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module =
      argc == 2 ? parseSourceFile<ModuleOp>(argv[1], &context) : nullptr;
  if (!module)
    return 1;
  WalkResult result = module->walk([&](func::FuncOp function) {
    auto name = function->getAttrOfType<StringAttr>("builds");
    if (!name)
      return WalkResult::advance();
    function->removeAttr("builds");
    OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
    Operation *op =
        build(builder, function.getLoc(), name, function.getArguments());
    if (!op) {
      function.emitError("builds an unknown op");
      return WalkResult::interrupt();
    }
    if (op->getNumResults())
      function.getArguments().back().replaceAllUsesExcept(
          op->getResults().back(), op);
    return WalkResult::advance();
  });
  if (result.wasInterrupted() || failed(verify(*module)))
    return 1;
  module->print(llvm::outs());
}
