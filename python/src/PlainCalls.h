//===- PlainCalls.h - Calls that need no Python -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_PLAINCALLS_H
#define KVCACHE_PYTHON_PLAINCALLS_H

#include <nanobind/nanobind.h>

namespace mlir::kvcache::python {

/// Whether the memory of a tensor of PyTorch may not be its value. `precision`
/// is the argument's; see `needs_adapting` in _kvcache.pyi.
bool isSpecialTensor(PyObject *tensor, char precision);

/// Adds `needs_adapting` and `plain_method` to the extension.
void addPlainCalls(nanobind::module_ &module);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_PLAINCALLS_H
