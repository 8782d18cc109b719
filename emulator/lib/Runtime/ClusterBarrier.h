//===- ClusterBarrier.h - The barrier of a cluster --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTERBARRIER_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTERBARRIER_H

#include "Order.h"
#include "Thread.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::kvcache::emulator {

class Cluster;

/// The barrier of a cluster, for all threads that have not ended. PTX
/// ISA, "barrier.cluster".
class ClusterBarrier : public Waitable {
public:
  explicit ClusterBarrier(Cluster &cluster) : cluster(cluster) {}

  void begin();
  std::string describe() const override;

  void arrive(Thread &thread, const KVCacheSite *site, bool isRelaxed);
  void wait(Thread &thread, const KVCacheSite *site);
  /// A thread has ended: the barrier waits for it no more.
  void noteExit(const Thread &thread) {
    if (!arrivals.empty())
      forget(thread);
  }

private:
  void forget(const Thread &thread);
  void update();

  Cluster &cluster;
  uint64_t phase = 0;
  /// The live threads that have arrived in this phase.
  uint32_t numArrived = 0;
  /// By thread: where it has arrived and not waited yet, and in which phase.
  struct Arrival {
    const KVCacheSite *site = nullptr;
    uint64_t phase = 0;
  };
  std::vector<Arrival> arrivals;
  /// The clocks of the threads that have arrived, in this phase and in the last
  /// one.
  ReleaseClock gathered, completed;
  Clocks gatheredPlaces, completedPlaces;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTERBARRIER_H
