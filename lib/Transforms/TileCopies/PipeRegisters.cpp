//===- PipeRegisters.cpp - Registers of producers and consumers -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipeRegisters.h"

#include "Blocks.h"
#include "kvcache/Support/Threads.h"
#include "kvcache/Target/Registers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Returns the branch that has all of `ops` and none of `others`: the body of
/// an `scf.if` that is not in a loop. Null if there is none.
static Block *findBranch(ArrayRef<Operation *> ops,
                         ArrayRef<Operation *> others) {
  Block *branch = nullptr;
  for (Block *block = ops.front()->getBlock();;) {
    auto isInBlock = [&](Operation *op) {
      return block->findAncestorOpInBlock(*op) != nullptr;
    };
    Operation *parent = block->getParentOp();
    if (isa<FunctionOpInterface>(parent))
      return branch;
    if (isa<LoopLikeOpInterface>(parent))
      branch = nullptr;
    else if (isa<scf::IfOp>(parent) && llvm::all_of(ops, isInBlock) &&
             llvm::none_of(others, isInBlock))
      branch = block;
    block = parent->getBlock();
  }
}

static LogicalResult checkThreads(PipeOp pipe, std::optional<int64_t> threads) {
  constexpr int64_t warpgroup = 128;
  if (threads && *threads % warpgroup == 0)
    return success();
  InFlightDiagnostic error =
      pipe.emitOpError("with registers expects a known block size that is a "
                       "multiple of 128");
  if (threads)
    return error << ", got " << *threads;
  return error;
}

/// Checks that all fits into the registers with which the threads begin.
static LogicalResult checkSum(PipeOp pipe, int64_t threads, int64_t initial) {
  int64_t producers =
      pipe.getPipe().getType().getProducers() * BlockBuilder::kWarp;
  int64_t producerRegisters = *pipe.getProducerRegisters(),
          consumerRegisters = *pipe.getConsumerRegisters();
  int64_t sum =
      producers * producerRegisters + (threads - producers) * consumerRegisters;
  if (sum <= threads * initial)
    return success();
  return pipe.emitOpError("expects at most ")
         << threads * initial << " registers, " << initial << " for each of "
         << threads << " threads, got " << sum << ": " << producerRegisters
         << " for each of " << producers << " producers, and "
         << consumerRegisters << " for each of " << threads - producers
         << " consumers";
}

static void setRegisters(Location loc, Block *branch, int64_t count,
                         int64_t initial) {
  if (count == initial)
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(branch);
  NVVM::SetMaxRegisterOp::create(builder, loc, count,
                                 count > initial
                                     ? NVVM::SetMaxRegisterAction::increase
                                     : NVVM::SetMaxRegisterAction::decrease);
}

/// Whether another pipe of the kernel has registers, or threads that set them
/// by hand.
static bool hasOthers(PipeOp pipe, gpu::GPUFuncOp kernel) {
  return kernel
      .walk([&](Operation *op) {
        auto other = dyn_cast<PipeOp>(op);
        bool sets = isa<NVVM::SetMaxRegisterOp>(op) ||
                    (other && other != pipe && other.getProducerRegisters());
        return sets ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool kvcache::setsRegisters(gpu::GPUFuncOp kernel) {
  return kernel
      .walk([](NVVM::SetMaxRegisterOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Bounds the registers of a thread, unless the kernel has a bound.
static void setBound(gpu::GPUFuncOp kernel, int64_t registers) {
  if (!getInitialRegisters(kernel))
    kernel->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(),
                    Builder(kernel.getContext())
                        .getI32IntegerAttr(static_cast<int32_t>(registers)));
}

int64_t kvcache::boundByBlock(gpu::GPUFuncOp kernel, int64_t threads) {
  std::optional<int64_t> initial = getInitialRegisters(kernel);
  if (!initial) {
    initial = getMaxRegisters(threads, /*blocks=*/1);
    setBound(kernel, *initial);
  }
  return *initial;
}

LogicalResult kvcache::setRegisters(PipeOp pipe, gpu::GPUFuncOp kernel,
                                    const Chip &chip) {
  if (!pipe.getProducerRegisters()) {
    if (std::optional<uint64_t> most = pipe.getConsumerRegisters())
      setBound(kernel, *most);
    return success();
  }
  if (!hasSetMaxRegisters(chip))
    return success();
  std::optional<int64_t> threads = getKnownThreads(kernel);
  if (failed(checkThreads(pipe, threads)))
    return failure();
  if (hasOthers(pipe, kernel))
    return pipe.emitOpError("expects nothing else in its kernel to set the "
                            "number of registers");
  SmallVector<Operation *> produces, consumes;
  for (Operation *user : pipe.getPipe().getUsers())
    (isa<ProduceOp>(user) ? produces : consumes).push_back(user);
  if (produces.empty() || consumes.empty())
    return success();
  Block *producers = findBranch(produces, consumes),
        *consumers = findBranch(consumes, produces);
  if (!producers || !consumers)
    return pipe.emitOpError("with registers expects its producers and its "
                            "consumers each in a branch of an 'scf.if' that is "
                            "not in a loop");
  int64_t initial = boundByBlock(kernel, *threads);
  if (failed(checkSum(pipe, *threads, initial)))
    return failure();
  ::setRegisters(pipe.getLoc(), producers, *pipe.getProducerRegisters(),
                 initial);
  ::setRegisters(pipe.getLoc(), consumers, *pipe.getConsumerRegisters(),
                 initial);
  return success();
}
