//===- Geometry.h - TMA geometry for Python ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_GEOMETRY_H
#define KVCACHE_PYTHON_GEOMETRY_H

#include <nanobind/nanobind.h>

namespace mlir::kvcache::python {

/// Adds the functions of `kvcache/TMA` to the extension. Swizzles are their
/// spans in bytes, and dtypes the bytes of an element.
void addGeometry(nanobind::module_ &module);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_GEOMETRY_H
