//===- Pipelines.h - From the kvcache dialect to a target -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PIPELINES_PIPELINES_H
#define KVCACHE_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::kvcache {

/// Options of `kvcache-to-ptx`.
struct ToPTXOptions : PassPipelineOptions<ToPTXOptions> {
  ListOption<std::string> chips{
      *this, "chip",
      llvm::cl::desc("The chips to compile a gpu.module without #nvvm.target "
                     "for, such as sm_90a")};
  Option<std::string> format{*this, "format",
                             llvm::cl::desc("ptx, cubin or fatbin"),
                             llvm::cl::init("ptx")};
  Option<int> optLevel{*this, "opt-level",
                       llvm::cl::desc("LLVM's optimization level, 0 to 3"),
                       llvm::cl::init(3)};
  Option<std::string> toolkit{
      *this, "toolkit",
      llvm::cl::desc("The folder of the CUDA toolkit, with bin/ptxas; not "
                     "needed for format=ptx")};
  Option<bool> noAlias{
      *this, "noalias",
      llvm::cl::desc(
          "Assume that distinct pointers of a kernel do not overlap"),
      llvm::cl::init(true)};
  Option<bool> overlapLaunches{
      *this, "overlap-launches",
      llvm::cl::desc("Let the kernels of ops on whole caches begin before "
                     "earlier launches of the stream have ended, from sm_90 "
                     "on"),
      llvm::cl::init(true)};
  Option<bool> host{
      *this, "host",
      llvm::cl::desc("Also lower host code to LLVM, with calls to the C "
                     "functions of kvcache/Runtime/Device.h that load modules, "
                     "launch kernels, create descriptors and manage memory"),
      llvm::cl::init(false)};
  Option<bool> tvmFFI{
      *this, "tvm-ffi",
      llvm::cl::desc("With 'host', create a TVM-FFI wrapper for each public "
                     "function. Work goes to the stream of the caller, who "
                     "waits for it"),
      llvm::cl::init(false)};
  Option<bool> capturable{
      *this, "capturable",
      llvm::cl::desc("With 'tvm-ffi', reject host code that a CUDA graph can't "
                     "capture"),
      llvm::cl::init(false)};
};

/// Adds the passes that compile a module with cache ops to `gpu.binary` ops:
/// parallel loops become kernels, and kernels become PTX. Host code stays at
/// the level of memref and gpu.launch_func; with the option `host`, it becomes
/// LLVM that calls the functions of kvcache/Runtime/Device.h.
void buildToPTXPipeline(OpPassManager &pm, const ToPTXOptions &options);

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

/// Options of `kvcache-to-cpu`.
struct ToCPUOptions : PassPipelineOptions<ToCPUOptions> {
  Option<bool> tvmFFI{
      *this, "tvm-ffi",
      llvm::cl::desc("Create a TVM-FFI wrapper for each public function"),
      llvm::cl::init(false)};
  Option<int> threads{
      *this, "threads",
      llvm::cl::desc("The most threads of a parallel loop, as in "
                     "kvcache-lower-parallel-loops"),
      llvm::cl::init(1)};
};

/// Adds the passes that compile the host functions of a module with cache ops
/// to LLVM, for MLIR's execution engine.
void buildToCPUPipeline(OpPassManager &pm, const ToCPUOptions &options);

/// Adds the passes of `kvcache-expand-copies`, which lower copies into tiles
/// and pipes: kvcache-choose-copies, kvcache-materialize-descriptors,
/// kvcache-lower-pipes and kvcache-lower-copies.
void buildExpandCopiesPipeline(OpPassManager &pm);

/// Registers `kvcache-to-ptx`, `kvcache-to-cpu`, `kvcache-to-emulator`,
/// `kvcache-kernels-to-emulator` and `kvcache-expand-copies`. May be called
/// several times.
void registerPipelines();

} // namespace mlir::kvcache

#endif // KVCACHE_PIPELINES_PIPELINES_H
