//===- Pipelines.h - From the kvcache dialect to a target -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PIPELINES_PIPELINES_H
#define KVCACHE_PIPELINES_PIPELINES_H

#include "kvcache/Target/HostMma.h"

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
      llvm::cl::desc("The folder of the CUDA toolkit, with bin/ptxas and "
                     "nvvm/libdevice; searched for where it is not given")};
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
  Option<int64_t> vectorBits{
      *this, "vector-bits",
      llvm::cl::desc("Bits of the CPU's vector registers, as in "
                     "kvcache-expand-ops"),
      llvm::cl::init(128)};
  Option<HostMma> mma{
      *this, "mma",
      llvm::cl::desc("The CPU's matrix instructions, as in kvcache-expand-ops"),
      llvm::cl::init(HostMma::FMA),
      llvm::cl::values(
          clEnumValN(HostMma::FMA, "fma", "Multiply-adds of f32"),
          clEnumValN(HostMma::Dot, "dot", "Dot products of pairs of bf16"),
          clEnumValN(HostMma::AMX, "amx", "Products of tiles of bf16"))};
  Option<bool> emulateTiles{
      *this, "emulate-tiles",
      llvm::cl::desc("Compute products of tiles by vectors, for tests on CPUs "
                     "without AMX"),
      llvm::cl::init(false)};
  Option<bool> fma{
      *this, "fma",
      llvm::cl::desc("Whether the CPU has fused multiply-adds; otherwise "
                     "kvcache-expand-fma computes those of f32"),
      llvm::cl::init(true)};
};

/// Adds the passes that compile the host functions of a module with cache ops
/// to LLVM, for MLIR's execution engine.
void buildToCPUPipeline(OpPassManager &pm, const ToCPUOptions &options);

/// Adds the passes of `kvcache-expand-copies`, which lower copies into tiles
/// and pipes: kvcache-choose-copies, kvcache-materialize-descriptors,
/// kvcache-lower-pipes and kvcache-lower-copies.
void buildExpandCopiesPipeline(OpPassManager &pm);

/// Registers `kvcache-to-ptx`, `kvcache-to-cpu` and `kvcache-expand-copies`.
/// May be called several times.
void registerPipelines();

} // namespace mlir::kvcache

#endif // KVCACHE_PIPELINES_PIPELINES_H
