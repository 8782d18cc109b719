//===- Pipelines.h - From kernels to the emulator ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_PIPELINES_H
#define KVCACHE_EMULATOR_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::kvcache {

/// Options of `kvcache-to-emulator`.
struct ToEmulatorOptions : PassPipelineOptions<ToEmulatorOptions> {
  ListOption<std::string> chips{
      *this, "chip",
      llvm::cl::desc("The chips to emulate for a gpu.module without "
                     "#nvvm.target, such as sm_90a")};
  Option<bool> overlapLaunches{
      *this, "overlap-launches",
      llvm::cl::desc("Let the kernels of ops on whole caches begin before "
                     "earlier launches of the stream have ended, from sm_90 "
                     "on"),
      llvm::cl::init(true)};
  Option<bool> sanitize{
      *this, "sanitize",
      llvm::cl::desc("Check memory accesses: bounds, order and "
                     "initialization"),
      llvm::cl::init(true)};
  Option<bool> meter{*this, "meter",
                     llvm::cl::desc("Count the memory traffic of kernels, for "
                                    "KVCACHE_EMULATOR_METER=1 and Python"),
                     llvm::cl::init(false)};
  Option<bool> tvmFFI{
      *this, "tvm-ffi",
      llvm::cl::desc("Create a TVM-FFI wrapper for each public function"),
      llvm::cl::init(false)};
};

/// Adds the passes that compile a module with cache ops to LLVM for the host.
/// Kernels take the passes of `kvcache-to-ptx` for a chip up to inline PTX, and
/// then become functions that libkvcache_emulator.so runs.
void buildToEmulatorPipeline(OpPassManager &pm,
                             const ToEmulatorOptions &options);

/// Options of `kvcache-kernels-to-emulator`.
struct KernelsToEmulatorOptions
    : PassPipelineOptions<KernelsToEmulatorOptions> {
  Option<std::string> chip{
      *this, "chip",
      llvm::cl::desc("The chip to emulate for a module without #nvvm.target, "
                     "such as sm_90a"),
      llvm::cl::init("")};
  Option<bool> sanitize{
      *this, "sanitize",
      llvm::cl::desc("Check memory accesses: bounds, order and "
                     "initialization"),
      llvm::cl::init(true)};
  Option<bool> meter{*this, "meter",
                     llvm::cl::desc("Count the memory traffic of kernels"),
                     llvm::cl::init(false)};
  Option<bool> assumeFences{
      *this, "assume-fences",
      llvm::cl::desc("Add the fences that PTX asks for and that chips do "
                     "without: of mbarriers' initialization and of tcgen05"),
      llvm::cl::init(false)};
};

/// Adds the passes that compile kernels of other compilers, at the level of the
/// NVVM and LLVM dialects, to functions that libkvcache_emulator.so runs. No
/// pass optimizes them: the emulator runs the instructions that are there.
void buildKernelsToEmulatorPipeline(OpPassManager &pm,
                                    const KernelsToEmulatorOptions &options);

/// Registers `kvcache-to-emulator` and `kvcache-kernels-to-emulator`. May be
/// called several times.
void registerEmulatorPipelines();

/// Registers the emulator's passes and pipelines, and LLVM IR as a format of
/// sources of kernels. May be called several times.
void registerEmulator();

} // namespace mlir::kvcache

#endif // KVCACHE_EMULATOR_PIPELINES_H
