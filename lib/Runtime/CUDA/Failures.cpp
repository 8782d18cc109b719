//===- Failures.cpp - Why kernels have trapped ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Failures.h"

#include "kvcache/Runtime/Support.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;
using namespace mlir::kvcache::runtime::cuda;

namespace {
using Memory = std::unique_ptr<void, decltype(&std::free)>;

/// The driver registers whole pages of the host.
constexpr size_t kPageBytes = 4096;
constexpr size_t kRecordBytes =
    (sizeof(FailureRecord) + kPageBytes - 1) / kPageBytes * kPageBytes;

/// The records of all loaded modules with checks.
struct Records {
  std::mutex mutex;
  std::set<FailureRecord *> records;
  /// Every call of the driver reports a failure, from then on.
  std::string last;

  // Never destroyed, because compiled code may unload its modules at exit.
  static Records &get() {
    static Records &records = *new Records;
    return records;
  }
};
} // namespace

int32_t cuda::addFailureRecord(const Driver &driver, CUmodule module,
                               const char *subject, FailureRecord *&record) {
  record = nullptr;
  CUdeviceptr variable;
  size_t bytes;
  if (driver.cuModuleGetGlobal(&variable, &bytes, module,
                               kFailureRecordVariable) != CUDA_SUCCESS)
    return kSuccess;

  // Memory of this process, which outlives a destroyed context.
  Memory memory(std::aligned_alloc(kPageBytes, kRecordBytes), &std::free);
  if (!memory)
    return fail("no memory for the messages of " + std::string(subject));
  std::memset(memory.get(), 0, kRecordBytes);
  if (int32_t status =
          driver.check(driver.cuMemHostRegister(memory.get(), kRecordBytes,
                                                CU_MEMHOSTREGISTER_DEVICEMAP),
                       "cuMemHostRegister", subject))
    return status;
  CUdeviceptr address;
  int32_t status =
      driver.check(driver.cuMemHostGetDevicePointer(&address, memory.get(), 0),
                   "cuMemHostGetDevicePointer", subject);
  if (!status)
    status =
        driver.check(driver.cuMemcpyHtoD(variable, &address, sizeof(address)),
                     "cuMemcpyHtoD", subject);
  if (status) {
    driver.cuMemHostUnregister(memory.get());
    return status;
  }
  record = static_cast<FailureRecord *>(memory.release());
  std::lock_guard<std::mutex> lock(Records::get().mutex);
  Records::get().records.insert(record);
  return kSuccess;
}

void cuda::removeFailureRecord(const Driver &driver, FailureRecord *record) {
  std::lock_guard<std::mutex> lock(Records::get().mutex);
  Records::get().records.erase(record);
  // A device that failed may still have the memory.
  if (driver.cuMemHostUnregister(record) == CUDA_SUCCESS)
    std::free(record);
}

std::string cuda::getLastFailure() {
  Records &known = Records::get();
  std::lock_guard<std::mutex> lock(known.mutex);
  for (FailureRecord *record : known.records)
    if (__atomic_exchange_n(&record->isComplete, 0, __ATOMIC_ACQUIRE))
      known.last = std::string(record->file) + ":" +
                   std::to_string(record->line) + ": " + record->message;
  return known.last;
}
