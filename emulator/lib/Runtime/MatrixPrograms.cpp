//===- MatrixPrograms.cpp - Matrix instructions of a warp -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatrixRegisters.h"
#include "WarpConvergence.h"

#include <algorithm>
#include <numeric>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

MatrixRegisters::MatrixRegisters(const KVCacheMatrixProgram &program,
                                 char *memory, std::vector<char> &poisoned)
    : program(program), memory(memory), poisoned(poisoned) {
  poisoned.assign(program.numRegisters, false);
  for (int64_t i = 0; i < program.numPoisonable; ++i) {
    uint32_t number = program.poisonable[i];
    const uint32_t *words = getPoison(number);
    poisoned[number] = std::accumulate(words, words + kWarpSize, uint32_t{0},
                                       std::bit_or<uint32_t>()) != 0;
  }
}

void MatrixRegisters::define(uint32_t number, bool mayBePoisoned) {
  poisoned[number] = mayBePoisoned;
  if (!mayBePoisoned)
    std::fill_n(getPoison(number), kWarpSize, 0);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {
struct ProgramLane : WarpLane {
  const KVCacheMatrixProgram *program = nullptr;
};
} // namespace

static void runMatrices(Block &block, WarpConvergence &convergence) {
  const KVCacheMatrixProgram &program =
      *convergence.get<ProgramLane>(0).program;
  Thread *threads[kWarpSize];
  convergence.forEach<WarpLane>(
      [&](uint32_t number, WarpLane &lane) { threads[number] = lane.thread; });
  MatrixRegisters registers(program, threads[0]->registers,
                            block.warps.getScratch());
  MatrixWarp warp{block, threads, registers};
  for (int64_t i = 0; i < program.numInstructions; ++i) {
    const KVCacheMatrixInstruction &instruction = program.instructions[i];
    switch (instruction.kind) {
    case KVCacheMatrixLoad:
      loadMatrices(warp, instruction);
      break;
    case KVCacheMatrixStore:
      storeMatrices(warp, instruction);
      break;
    default:
      multiplyMatrices(warp, instruction);
    }
  }
}

void kvcacheEmulatorRunMatrices(KVCacheThread *self,
                                const KVCacheMatrixProgram *program) {
  Thread &thread = Thread::get(self);
  ProgramLane lane;
  lane.program = program;
  // The site is one of the program's own: no other instruction has it.
  thread.block->warps.converge(thread, &program->site, kAllLanes, runMatrices,
                               lane, WarpRule::AllLanes);
}
