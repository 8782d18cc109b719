//===- MatrixRegisters.h - Registers of a warp ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_MATRIXREGISTERS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_MATRIXREGISTERS_H

#include "Block.h"
#include "kvcache/Emulator/Matrices.h"

#include <vector>

namespace mlir::kvcache::emulator {

/// The registers of a warp that executes a program of matrix instructions.
class MatrixRegisters {
public:
  /// A register: a word of each lane.
  using Words = uint32_t *;

  /// `poisoned` is for the registers' own use.
  MatrixRegisters(const KVCacheMatrixProgram &program, char *memory,
                  std::vector<char> &poisoned);

  Words get(uint32_t number) const { return getPlane(0, number); }
  /// The address that a lane has in two registers.
  char *getAddress(uint32_t number, uint32_t lane) const {
    uint64_t low = get(number)[lane], high = get(number + 1)[lane];
    return reinterpret_cast<char *>(high << 32 | low);
  }

  //===--- Where accesses are checked ---===//

  /// Whether any lane's word has a poisoned bit.
  bool isPoisoned(uint32_t number) const { return poisoned[number]; }
  Words getPoison(uint32_t number) const { return getPlane(1, number); }
  /// Where that comes from, if there is any.
  Words getOrigins(uint32_t number) const { return getPlane(2, number); }
  /// The register has a new value. Its poison, of which there may be some, has
  /// yet to be written.
  void define(uint32_t number, bool mayBePoisoned);

private:
  Words getPlane(uint32_t plane, uint32_t number) const {
    return reinterpret_cast<Words>(memory +
                                   (plane * program.numRegisters + number) *
                                       uint64_t{KVCacheRegisterBytes});
  }

  const KVCacheMatrixProgram &program;
  char *memory;
  /// By number.
  std::vector<char> &poisoned;
};

//===--- Instructions ---===//
// The lanes of the warp are all there; `threads` are they.

/// All lanes of a warp, at an instruction of a program.
struct MatrixWarp {
  Block &block;
  Thread *const (&threads)[kWarpSize];
  MatrixRegisters &registers;
};

void loadMatrices(MatrixWarp &warp, const KVCacheMatrixInstruction &load);
void storeMatrices(MatrixWarp &warp, const KVCacheMatrixInstruction &store);
void multiplyMatrices(MatrixWarp &warp, const KVCacheMatrixInstruction &mma);

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_MATRIXREGISTERS_H
