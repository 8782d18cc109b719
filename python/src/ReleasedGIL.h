//===- ReleasedGIL.h - Other Python threads run meanwhile -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_RELEASEDGIL_H
#define KVCACHE_PYTHON_RELEASEDGIL_H

#include <chrono>
#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <thread>

namespace mlir::kvcache::python {

/// Lets other threads of Python run while it lives.
///
/// A daemon thread that would continue after the end of the interpreter stops
/// for good, as it does from Python 3.14 on. Older ones end it with
/// `pthread_exit`, which unwinds the stack, and thereby ends the process:
/// nanobind and destructors let nothing through.
class ReleasedGIL {
public:
  ReleasedGIL() : state(PyEval_SaveThread()) {}
  ReleasedGIL(const ReleasedGIL &) = delete;
  ReleasedGIL &operator=(const ReleasedGIL &) = delete;

  ~ReleasedGIL() {
    try {
      PyEval_RestoreThread(state);
    } catch (abi::__forced_unwind &) {
      while (true)
        std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }

private:
  PyThreadState *state;
};

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_RELEASEDGIL_H
