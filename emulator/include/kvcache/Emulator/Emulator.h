//===- Emulator.h - Additional functions of the emulator ----------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libkvcache_emulator.so implements the functions of Device.h and these. All
// functions are thread-safe.
//
// Environment variables of the library:
//   KVCACHE_EMULATOR_CHIP     the chip whose image is loaded, instead of the
//                             first
//   KVCACHE_EMULATOR_THREADS  the number of host threads that run blocks,
//                             instead of one per core
//   KVCACHE_EMULATOR_SEED     the seed of the schedule of threads; with 0, the
//                             default, threads run in the order of their
//                             numbers
//   KVCACHE_EMULATOR_TIMEOUT  the CPU time in seconds, 300 by default, after
//                             which a block that loops or waits is an error
//   KVCACHE_EMULATOR_METER    with 1, prints the memory traffic of kernels
//                             compiled with meter=true to stderr, as one table
//                             per launch
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_EMULATOR_H
#define KVCACHE_EMULATOR_EMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// Lets kernels access `bytes` of host memory like device memory. The memory
/// counts as initialized. Does nothing for 0 bytes. Ranges may overlap.
void kvcacheEmulatorRegister(const void *pointer, int64_t bytes);

/// Registers memory that kernels may read but not write.
void kvcacheEmulatorRegisterConstant(const void *pointer, int64_t bytes);

/// Unregisters one range that was registered at `pointer`.
void kvcacheEmulatorUnregister(const void *pointer);

/// Returns the launches of metered modules that this thread has made since its
/// last call of this function: a JSON array in the order of the launches. It is
/// valid until the next call of this thread.
///
/// Each launch is an object:
///   kernel                              "@module::@kernel"
///   chip                                "sm_100a"
///   grid, block                         three numbers
///   global_requests                     warp instructions
///   global_bytes_read, _written         bytes of threads and copies
///   global_sectors_read, _written       sectors of 32 bytes
///   shared_requests, shared_wavefronts  warp instructions; their passes
///   bank_conflicts                      passes beyond the minimum for the
///   bytes copies    kind -> {count, global_bytes, shared_bytes} barriers
///   offset in shared memory -> {phases, bytes}
const char *kvcacheEmulatorTakeMeter(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_EMULATOR_H
