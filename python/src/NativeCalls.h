//===- NativeCalls.h - Calls without TVM-FFI's objects ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_NATIVECALLS_H
#define KVCACHE_PYTHON_NATIVECALLS_H

#include "ArrayView.h"
#include "JIT.h"

namespace mlir::kvcache::python {

/// The end of a call.
enum class CallResult {
  Done,
  /// The function has not run: another way must be tried, which also has the
  /// message of what is wrong. There is no exception.
  Refused,
  /// The function has raised an exception.
  Failed
};

using runtime::DirectCall;

/// The arguments of one call.
struct NativeArguments {
  static constexpr int kMost = 32;
  runtime::ffi::Any values[kMost];
  /// Views of the arrays among them, by argument.
  ArrayView views[kMost];
};

/// A function of a module for the CPU or a GPU without results.
class NativeFunction {
public:
  /// `kinds` has a letter for each argument: `m` for a memref, `i` for an
  /// integer, `f` for a float. `written` has a 1 for memrefs that the function
  /// writes to, and `precisions` is as for `needs_adapting`.
  NativeFunction(const JIT &jit, const std::string &name, std::string kinds,
                 std::string precisions, std::string written, bool isOnGPU);

  int getCount() const { return static_cast<int>(kinds.size()); }
  bool isArray(int index) const { return kinds[index] == 'm'; }
  bool isWritten(int index) const { return written[index] != 0; }
  /// Whether arrays are memory of a GPU.
  bool isOnGPU() const { return onGPU; }

  /// Gets the current stream of the first framework that has one. False,
  /// without an exception, if it can't say.
  bool findStream(const NativeArguments &arguments, DirectCall &direct) const;

  /// Reads an argument. False, without an exception, if another way must be
  /// tried.
  bool read(int index, PyObject *value, NativeArguments &arguments) const;

  /// Makes the array of an argument from a view that is already filled.
  void pass(int index, NativeArguments &arguments) const;

  /// Calls the function, while other threads of Python run.
  CallResult call(NativeArguments &arguments) const;

  /// Reads all arguments, and calls the function.
  CallResult call(PyObject *const *values, Py_ssize_t count) const;

private:
  int32_t (*function)(void *self, const void *arguments, int32_t count,
                      void *result);
  std::string kinds, precisions, written;
  bool onGPU;
};

/// The function of an object; null if it is none.
const NativeFunction *getNativeFunction(PyObject *object);

/// Adds `native_function` and `register_native` to the extension.
void addNativeCalls(nanobind::module_ &module);

/// Adds `checked_call` and `bound_call` to the extension.
void addCheckedCalls(nanobind::module_ &module);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_NATIVECALLS_H
