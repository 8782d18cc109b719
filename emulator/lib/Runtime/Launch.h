//===- Launch.h - A launch over the cores -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCH_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCH_H

#include "Grid.h"
#include "LaunchMeter.h"
#include "LaunchShadow.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::kvcache::emulator {

class Cluster;

/// A launch: it runs as many clusters at once as the machine has cores; of one
/// block each, unless it has others. If its kernel executes
/// griddepcontrol.launch_dependents, the last cluster stops there
/// until the launch is to end, so that a programmatic launch after it begins
/// before that.
class Launch {
public:
  /// Copies the parameters.
  explicit Launch(const Grid &grid);
  ~Launch();
  Launch(const Launch &) = delete;
  Launch &operator=(const Launch &) = delete;

  /// Runs clusters until all have ended, or the last one has stopped. A
  /// programmatic launch begins before the one that is `before` it on the
  /// stream has ended, if there is one, and ends that. Returns what is wrong
  /// with a kernel, of the first cluster of those in which anything is.
  std::optional<std::string> run(Launch *before);

  /// Runs what is left.
  std::optional<std::string> finish();

private:
  std::vector<std::unique_ptr<Cluster>> runAhead();
  std::optional<std::string> runClusters(Launch *before);
  std::optional<std::string> end(std::optional<std::string> error);

  Grid grid;
  std::vector<std::unique_ptr<std::byte[]>> values;
  std::vector<void *> params;
  LaunchMeter meter;
  std::optional<LaunchShadow> shadow;
  /// The last cluster, if it has stopped.
  std::unique_ptr<Cluster> stopped;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCH_H
