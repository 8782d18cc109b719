//===- ArrayView.h - Arrays of Python as tensors ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_ARRAYVIEW_H
#define KVCACHE_PYTHON_ARRAYVIEW_H

#include "kvcache/Runtime/FFI.h"
#include <nanobind/nanobind.h>

namespace mlir::kvcache::python {

/// DLPack's DLPackExchangeAPI, a table of functions of a type of tensors.
struct ExchangeAPI {
  uint32_t major, minor;
  ExchangeAPI *previous;
  void *allocate, *toManaged, *fromManaged;
  int (*view)(void *object, runtime::ffi::DLTensor *tensor);
  int (*getStream)(int32_t deviceType, int32_t device, void **stream);
};

/// The memory of an array of NumPy, PyTorch or TVM-FFI as a tensor, for one
/// call.
class ArrayView {
public:
  static constexpr int kMostRank = 8;

  /// Reads an array. False, without an exception, if another way must be tried:
  /// the array has another type, its memory may not be its value, is of the
  /// host although `isOnGPU` or the other way round, or is read-only although
  /// `isWritten`.
  ///
  /// `precision` is the argument's; see `needs_adapting` in _kvcache.pyi.
  bool read(PyObject *object, char precision, bool isWritten, bool isOnGPU);

  /// Makes a packed array of `size` elements of f32 at `values`; of no row of
  /// `size` elements if `values` is null.
  void fill(float *values, int64_t size, runtime::ffi::Device device);

  /// Whether the framework of the array has a current stream.
  bool hasStream() const { return exchange && exchange->getStream; }
  /// Gets the current stream of the framework on the array's GPU. False,
  /// without an exception, if there is none.
  bool getStream(void *&stream) const;

  const runtime::ffi::DLTensor &getTensor() const { return tensor; }
  runtime::ffi::DLTensor &getTensor() { return tensor; }
  int64_t getSize(int dimension) const { return tensor.shape[dimension]; }
  /// The distance along a dimension, in elements.
  int64_t getStride(int dimension) const;
  int64_t getBytes() const { return (tensor.dtype.bits + 7) / 8; }
  bool isEmpty() const;

  /// Whether it is a vector of integers of 32 bits side by side.
  bool isVectorOfInts() const { return isVectorOfInts(32); }
  bool isVectorOfInts(int bits) const;
  const uint32_t *getInts() const {
    return reinterpret_cast<const uint32_t *>(getAddress());
  }

  /// The addresses of the first byte and after the last one.
  uintptr_t getAddress() const {
    return reinterpret_cast<uintptr_t>(tensor.data) + tensor.byteOffset;
  }
  uintptr_t low = 0, high = 0;

  /// Whether it may share a byte with another one. Slices of rows that lie side
  /// by side, as those of a fused projection, do not.
  bool mayOverlap(const ArrayView &other) const;

private:
  bool readNumPy(PyObject *object, bool isWritten);
  bool readTensor(PyObject *object, char precision, bool isOnGPU);
  void computeRange();

  /// The table of the array's type; null for none.
  const ExchangeAPI *exchange = nullptr;
  runtime::ffi::DLTensor tensor;
  int64_t sizes[2];
  int64_t strides[kMostRank];
};

/// Registers NumPy's type of arrays, and DLPack's codes and bits by the numbers
/// of NumPy's dtypes.
void registerNumPy(nanobind::handle type, nanobind::dict dtypes);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_ARRAYVIEW_H
