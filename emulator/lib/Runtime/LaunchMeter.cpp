//===- LaunchMeter.cpp - What a launch asks of memory ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchMeter.h"
#include "Grid.h"
#include "kvcache/Emulator/Emulator.h"
#include "kvcache/Runtime/Support.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <vector>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

/// By `CopyKind`.
static constexpr const char *kCopyNames[kNumCopyKinds] = {
    "async_copy",   "tensor_load",     "tensor_gather4",
    "tensor_store", "tensor_scatter4", "bulk_load",
    "bulk_store",   "prefetch",        "tensor_memory_copy"};
/// By `ProductKind`.
static constexpr const char *kProductNames[kNumProductKinds] = {"wgmma",
                                                                "tcgen05"};

void MeterTotals::add(const MeterTotals &other) {
  globalRead.add(other.globalRead.bytes, other.globalRead.sectors);
  globalWritten.add(other.globalWritten.bytes, other.globalWritten.sectors);
  globalRequests += other.globalRequests;
  sharedRequests += other.sharedRequests;
  sharedWavefronts += other.sharedWavefronts;
  bankConflicts += other.bankConflicts;
  for (size_t i = 0; i < kNumCopyKinds; ++i)
    copies[i].add(other.copies[i].count, other.copies[i].globalBytes,
                  other.copies[i].sharedBytes);
  for (size_t i = 0; i < kNumProductKinds; ++i)
    products[i].add(other.products[i].count, other.products[i].operations,
                    other.products[i].sharedBytes);
  for (const auto &[offset, phases] : other.barriers)
    barriers[offset].add(phases.phases, phases.bytes);
}

void LaunchMeter::add(const MeterTotals &block) {
  std::lock_guard<std::mutex> lock(mutex);
  totals.add(block);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// Symbols of MLIR can hold any character.
static std::string quote(const std::string &text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", c);
      quoted += escaped;
      continue;
    }
    if (c == '"' || c == '\\')
      quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

static std::string toJSON(const uint32_t (&sides)[3]) {
  std::ostringstream os;
  os << "[" << sides[0] << ", " << sides[1] << ", " << sides[2] << "]";
  return os.str();
}

static std::string toJSON(const Grid &grid, const MeterTotals &totals) {
  std::ostringstream os;
  os << "{\"kernel\": " << quote(grid.name)
     << ", \"chip\": " << quote(grid.chip)
     << ", \"grid\": " << toJSON(grid.blocks)
     << ", \"block\": " << toJSON(grid.threads)
     << ", \"global_requests\": " << totals.globalRequests
     << ", \"global_bytes_read\": " << totals.globalRead.bytes
     << ", \"global_bytes_written\": " << totals.globalWritten.bytes
     << ", \"global_sectors_read\": " << totals.globalRead.sectors
     << ", \"global_sectors_written\": " << totals.globalWritten.sectors
     << ", \"shared_requests\": " << totals.sharedRequests
     << ", \"shared_wavefronts\": " << totals.sharedWavefronts
     << ", \"bank_conflicts\": " << totals.bankConflicts << ", \"copies\": {";
  const char *separator = "";
  for (size_t i = 0; i < kNumCopyKinds; ++i) {
    const MeterTotals::Copies &copies = totals.copies[i];
    if (!copies.count)
      continue;
    os << separator << quote(kCopyNames[i]) << ": {\"count\": " << copies.count
       << ", \"global_bytes\": " << copies.globalBytes
       << ", \"shared_bytes\": " << copies.sharedBytes << "}";
    separator = ", ";
  }
  os << "}, \"products\": {";
  separator = "";
  for (size_t i = 0; i < kNumProductKinds; ++i) {
    const MeterTotals::Products &products = totals.products[i];
    if (!products.count)
      continue;
    os << separator << quote(kProductNames[i])
       << ": {\"count\": " << products.count
       << ", \"operations\": " << products.operations
       << ", \"shared_bytes\": " << products.sharedBytes << "}";
    separator = ", ";
  }
  os << "}, \"barriers\": {";
  separator = "";
  for (const auto &[offset, phases] : totals.barriers) {
    os << separator << "\"" << offset << "\": {\"phases\": " << phases.phases
       << ", \"bytes\": " << phases.bytes
       << ", \"place\": " << quote(grid.sharedVariables.describeOffset(offset))
       << "}";
    separator = ", ";
  }
  os << "}}";
  return os.str();
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {
/// Rows of a name, a number and its unit, aligned.
class Table {
public:
  template <typename Number>
  void add(std::string name, Number number, const char *unit) {
    rows.push_back({std::move(name), std::to_string(number), unit});
    nameWidth = std::max(nameWidth, rows.back().name.size());
    numberWidth = std::max(numberWidth, rows.back().number.size());
  }

  std::string format() const {
    std::string text;
    for (const Row &row : rows) {
      text += "  " + row.name;
      text.append(nameWidth - row.name.size() + 2, ' ');
      text.append(numberWidth - row.number.size(), ' ');
      text += row.number + (*row.unit ? " " : "") + row.unit + "\n";
    }
    return text;
  }

private:
  struct Row {
    std::string name, number;
    const char *unit;
  };
  std::vector<Row> rows;
  size_t nameWidth = 0, numberWidth = 0;
};
} // namespace

static std::string describe(const uint32_t (&sides)[3]) {
  return std::to_string(sides[0]) + " x " + std::to_string(sides[1]) + " x " +
         std::to_string(sides[2]);
}

static std::string makeTable(const Grid &grid, const MeterTotals &totals) {
  Table table;
  table.add("global read", totals.globalRead.bytes, "bytes");
  table.add("", totals.globalRead.sectors, "sectors");
  table.add("global written", totals.globalWritten.bytes, "bytes");
  table.add("", totals.globalWritten.sectors, "sectors");
  table.add("global requests", totals.globalRequests, "");
  table.add("shared requests", totals.sharedRequests, "");
  table.add("shared wavefronts", totals.sharedWavefronts, "");
  table.add("bank conflicts", totals.bankConflicts, "");
  for (size_t i = 0; i < kNumCopyKinds; ++i) {
    const MeterTotals::Copies &copies = totals.copies[i];
    if (!copies.count)
      continue;
    std::string name = kCopyNames[i];
    std::replace(name.begin(), name.end(), '_', ' ');
    table.add(name, copies.count, "instructions");
    table.add("", copies.globalBytes, "bytes in global memory");
    table.add("", copies.sharedBytes, "bytes in shared memory");
  }
  for (size_t i = 0; i < kNumProductKinds; ++i) {
    const MeterTotals::Products &products = totals.products[i];
    if (!products.count)
      continue;
    table.add(kProductNames[i], products.count, "instructions");
    table.add("", products.operations, "operations");
    table.add("", products.sharedBytes, "bytes in shared memory");
  }
  for (const auto &[offset, phases] : totals.barriers) {
    table.add("mbarrier at " + grid.sharedVariables.describeOffset(offset),
              phases.phases, "phases");
    table.add("", phases.bytes, "bytes");
  }
  return grid.name + " on " + grid.chip + ": " + describe(grid.blocks) +
         " blocks of " + describe(grid.threads) + " threads\n" + table.format();
}

//===----------------------------------------------------------------------===//
// The launches of a thread
//===----------------------------------------------------------------------===//

/// The counters that were read last, and those after them, as JSON.
static thread_local std::string taken;
static thread_local std::vector<std::string> launches;

/// A thread that never takes its launches keeps no more than these.
static constexpr size_t kMaxLaunches = 1 << 16;

void LaunchMeter::finish(const Grid &grid) const {
  const char *wanted = runtime::getEnvironment("KVCACHE_EMULATOR_METER");
  if (wanted && std::strcmp(wanted, "0") != 0)
    std::fputs(makeTable(grid, totals).c_str(), stderr);
  if (launches.size() < kMaxLaunches)
    launches.push_back(toJSON(grid, totals));
}

const char *kvcacheEmulatorTakeMeter() {
  taken = "[";
  for (const std::string &launch : launches)
    taken += (taken.size() > 1 ? ", " : "") + launch;
  taken += "]";
  launches.clear();
  return taken.c_str();
}
