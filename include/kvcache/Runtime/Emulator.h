//===- Emulator.h - The emulator's own functions ------------------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libkvcache_emulator.so implements the functions of Device.h and these. All
// may be called from any thread.
//
// Environment variables of the library:
//   KVCACHE_EMULATOR_CHIP     the chip whose image is taken, in place of the
//                             first
//   KVCACHE_EMULATOR_THREADS  the threads of the host that run blocks, in place
//                             of one per core
//   KVCACHE_EMULATOR_SEED     the order of what has none: 0, the default, for
//                             that of the numbers of threads
//   KVCACHE_EMULATOR_TIMEOUT  the seconds of a processor, 300 without it, after
//                             which a block that loops or waits is an error
//   KVCACHE_EMULATOR_METER    1 prints what kernels that are compiled with
//                             meter=true ask of memory to stderr, as a table
//                             per launch
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_EMULATOR_H
#define KVCACHE_RUNTIME_EMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// Lets kernels access `bytes` of the host's memory, which count as written,
/// like memory of the device. Nothing happens for 0 bytes. Ranges may overlap.
void kvcacheEmulatorRegister(const void *pointer, int64_t bytes);

/// The same of memory that kernels must not write.
void kvcacheEmulatorRegisterConstant(const void *pointer, int64_t bytes);

/// Ends that for one range that was registered at `pointer`.
void kvcacheEmulatorUnregister(const void *pointer);

/// The launches that this thread has made since the last such call, of modules
/// that are metered: a JSON array in the order of the launches. It is valid
/// until this thread calls the function again.
///
/// Each launch is an object:
///   kernel                              "@module::@kernel"
///   chip                                "sm_100a"
///   grid, block                         three numbers
///   global_requests                     instructions of warps
///   global_bytes_read, _written         of threads and copies, in bytes
///   global_sectors_read, _written       32 bytes each
///   shared_requests, shared_wavefronts  instructions of warps; their passes
///   bank_conflicts                      passes more than the bytes need
///   copies    kind -> {count, global_bytes, shared_bytes}
///   barriers  offset in shared memory -> {phases, bytes}
const char *kvcacheEmulatorTakeMeter(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_RUNTIME_EMULATOR_H
