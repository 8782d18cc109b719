//===- Copies.cpp - Copies beside kernels ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Copies.h"
#include "Driver.h"
#include "kvcache/Runtime/Support.h"

using namespace mlir::kvcache::runtime;
using namespace mlir::kvcache::runtime::cuda;

int32_t kvcacheHostPin(void *memory, int64_t bytes) {
  if (int32_t status = checkBytes(bytes))
    return status;
  if (bytes == 0)
    return kSuccess;
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  return driver->check(
      driver->cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE),
      "cuMemHostRegister", (std::to_string(bytes) + " bytes").c_str());
}

int32_t kvcacheHostUnpin(void *memory) {
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  return driver->check(driver->cuMemHostUnregister(memory),
                       "cuMemHostUnregister");
}

int32_t kvcacheCopyStreamCreate(void **stream) {
  return createStream(stream, CU_STREAM_NON_BLOCKING);
}

/// Lets the stream wait for `other`, copy, and reach the event.
static int32_t enqueue(const Driver &driver, CUstream stream, CUstream other,
                       const KVCacheCopy *copies, int64_t count,
                       CUevent event) {
  if (int32_t status =
          driver.check(driver.cuEventRecord(event, other), "cuEventRecord"))
    return status;
  if (int32_t status = driver.check(driver.cuStreamWaitEvent(stream, event, 0),
                                    "cuStreamWaitEvent"))
    return status;
  for (int64_t i = 0; i < count; ++i) {
    const KVCacheCopy &copy = copies[i];
    if (int32_t status = driver.check(driver.cuMemcpyAsync(toAddress(copy.to),
                                                           toAddress(copy.from),
                                                           copy.bytes, stream),
                                      "cuMemcpyAsync"))
      return status;
  }
  return driver.check(driver.cuEventRecord(event, stream), "cuEventRecord");
}

int32_t kvcacheCopiesBegin(void *stream, void *other, const KVCacheCopy *copies,
                           int64_t count, void **event) {
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  CUevent created;
  if (int32_t status = driver->check(
          driver->cuEventCreate(&created, CU_EVENT_DISABLE_TIMING),
          "cuEventCreate"))
    return status;
  auto *own = static_cast<CUstream>(stream);
  if (int32_t status = enqueue(*driver, own, static_cast<CUstream>(other),
                               copies, count, created)) {
    // Those that have begun are waited for; the first failure is the one to
    // report.
    driver->cuStreamSynchronize(own);
    driver->cuEventDestroy(created);
    return status;
  }
  *event = created;
  return kSuccess;
}

int32_t kvcacheCopiesQuery(void *event, int32_t *hasEnded) {
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  CUresult result = driver->cuEventQuery(static_cast<CUevent>(event));
  *hasEnded = result == CUDA_SUCCESS;
  if (result == CUDA_ERROR_NOT_READY)
    return kSuccess;
  return driver->check(result, "cuEventQuery");
}

int32_t kvcacheCopiesEnd(void *event) {
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  auto *ended = static_cast<CUevent>(event);
  int32_t status =
      driver->check(driver->cuEventSynchronize(ended), "cuEventSynchronize");
  int32_t freed =
      driver->check(driver->cuEventDestroy(ended), "cuEventDestroy");
  return status ? status : freed;
}
