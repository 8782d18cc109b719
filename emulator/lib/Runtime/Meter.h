//===- Meter.h - What kernels ask of memory ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_METER_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_METER_H

#include "LaunchMeter.h"
#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// Counts what one block asks of memory. Nothing happens when it is off.
///
/// The lanes of a warp run one after another. The n-th execution of an
/// instruction by a lane is taken for a part of the n-th execution by its warp,
/// which is counted when all lanes have been there, or the block ends.
class Meter {
public:
  void begin(bool isOn, const Block &block);
  /// Counts accesses that waited for other lanes of a warp, and adds all to the
  /// launch.
  void end();

  /// An access by one thread, as part of one instruction of its warp; of
  /// several if it has more bytes than the alignment or than an instruction of
  /// a thread has: 16, and 32 in global memory from sm_100 on (PTX ISA, "ld").
  void accessGlobal(const Thread &thread, const KVCacheSite *site,
                    uint64_t address, int64_t bytes, uint32_t flags,
                    int64_t alignment = kMaxBytes);
  void accessShared(const Thread &thread, const KVCacheSite *site,
                    uint32_t offset, int64_t bytes, uint32_t flags,
                    int64_t alignment = kMaxBytes);
  /// A row of 16 bytes of a matrix of ldmatrix or stmatrix, when the warp has
  /// converged: 8 go together. `thread` is any of the warp.
  void accessMatrixRow(const Thread &thread, const KVCacheSite *site,
                       uint32_t matrix, uint32_t offset, uint32_t flags);

  /// A cp.async of one thread: one copy, and for the warp requests like those
  /// of a load and a store.
  void copyAsync(const Thread &thread, const KVCacheSite *site,
                 uint64_t address, int64_t sourceBytes, uint32_t offset,
                 int64_t bytes);
  /// One other copy instruction. The bytes in global memory are those that are
  /// in bounds.
  void copy(CopyKind kind, int64_t globalBytes, int64_t sharedBytes);
  /// A product of matrices m x k and k x n, which reads so many bytes of shared
  /// memory.
  void multiply(ProductKind kind, uint32_t m, uint32_t n, uint32_t k,
                int64_t sharedBytes);
  /// Global memory that a copy reads or writes in one piece, for its sectors.
  void copyGlobal(uint64_t address, int64_t bytes, bool isWrite);

  /// A phase of the mbarrier at `offset` has completed, for which so many bytes
  /// were expected.
  void completePhase(uint32_t offset, int64_t bytes);

private:
  /// The most bytes that one instruction of a thread accesses in shared memory.
  static constexpr int64_t kMaxBytes = 16;

  /// An access of one thread, in pieces of at most `unit` bytes.
  struct Access {
    uint64_t address;
    int64_t bytes;
    uint8_t lane, unit;
    bool isShared;
  };
  /// One execution by a warp, and the lanes that have been there.
  struct Request {
    uint32_t lanes = 0;
    std::vector<Access> accesses;
  };
  /// An instruction of a warp, with flags and, for matrices, their number.
  struct Stream {
    const KVCacheSite *site;
    uint32_t flags;
    /// The executions that are not counted, the first of which has a number,
    /// and how many each lane has made.
    std::deque<std::unique_ptr<Request>> requests;
    uint64_t first;
    uint64_t numByLane[32];
    /// The rows of a matrix, which come together.
    std::vector<Access> rows;
    /// The stream that followed this one in the warp last time.
    Stream *successor;
  };
  struct Warp {
    uint32_t allLanes = 0;
    /// The streams. Used ones come first; the others are of earlier blocks.
    std::vector<std::unique_ptr<Stream>> streams;
    size_t numStreams = 0;
    Stream *last = nullptr;
  };

  void access(const Thread &thread, const KVCacheSite *site,
              const Access &access, uint32_t flags);
  Stream &getStream(Warp &warp, const KVCacheSite *site, uint32_t flags);
  static Stream &addStream(Warp &warp, const KVCacheSite *site, uint32_t flags);
  Request *getRequest(Stream &stream, uint32_t lane);
  void countFirst(Stream &stream);
  void count(const std::vector<Access> &accesses, uint32_t flags);
  void countGlobal(const std::vector<Access> &pieces, uint32_t flags);
  void countShared(const std::vector<Access> &pieces);
  void countRows(Stream &stream, uint32_t matrix);
  uint64_t countPasses(const Access *begin, const Access *end);

  bool isOn = false;
  /// The most bytes of an access to global memory.
  int64_t maxGlobalBytes = kMaxBytes;
  LaunchMeter *launch = nullptr;
  MeterTotals totals;
  std::vector<Warp> warps;
  /// For reuse.
  std::vector<std::unique_ptr<Request>> freeRequests;
  std::vector<Access> globalPieces, sharedPieces, sharedByLane;
  std::vector<uint64_t> units;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_METER_H
