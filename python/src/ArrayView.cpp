//===- ArrayView.cpp - Arrays of Python as tensors ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArrayView.h"
#include "PlainCalls.h"
#include "PythonAPI.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace nb = nanobind;
using namespace mlir::kvcache::python;
using namespace mlir::kvcache::runtime;

namespace {

/// The start of NumPy's PyArrayObject and PyArray_Descr, whose order is part of
/// its ABI.
struct NumPyArray {
  PyObject_HEAD;
  char *data;
  int rank;
  Py_ssize_t *sizes, *strides;
  PyObject *base, *dtype;
  int flags;
};
struct NumPyDtype {
  PyObject_HEAD;
  PyTypeObject *type;
  char kind, code, byteOrder, flags;
  int number;
};
constexpr int kWriteable = 0x400;

PyTypeObject *numPyType = nullptr;
/// By the numbers of dtypes; of no bits for others.
std::vector<ffi::DataType> numPyDtypes;

/// A type of tensors.
struct ArrayType {
  /// Null for a type without one.
  const ExchangeAPI *exchange;
  /// Whether it is that of TVM-FFI, which has no table.
  bool isTVMFFI;
};

} // namespace

void mlir::kvcache::python::registerNumPy(nb::handle type, nb::dict dtypes) {
  numPyType = reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr());
  for (auto [key, value] : dtypes) {
    size_t number = nb::cast<size_t>(key);
    numPyDtypes.resize(std::max(numPyDtypes.size(), number + 1),
                       ffi::DataType{0, 0, 1});
    numPyDtypes[number] = {nb::cast<uint8_t>(value[0]),
                           nb::cast<uint8_t>(value[1]), 1};
  }
}

/// The table of a type that declares one itself: subclasses may give their
/// memory another meaning. Null for others.
static const ExchangeAPI *findExchangeAPI(PyTypeObject *type) {
  static PyObject *const name =
      PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  const ExchangeAPI *api = nullptr;
  nb::object attributes = nb::steal(
      PyObject_GetAttrString(reinterpret_cast<PyObject *>(type), "__dict__"));
  nb::object capsule;
  if (attributes.ptr())
    capsule = nb::steal(PyObject_GetItem(attributes.ptr(), name));
  if (capsule.ptr() && PyCapsule_CheckExact(capsule.ptr()))
    api = static_cast<const ExchangeAPI *>(
        PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  PyErr_Clear();
  return api && api->major == 1 && api->view ? api : nullptr;
}

static bool isTensorOfTVMFFI(PyTypeObject *type) {
  PyObject *modules = PyImport_GetModuleDict();
  PyObject *module = PyDict_GetItemString(modules, "tvm_ffi");
  nb::object tensor;
  if (module)
    tensor = nb::steal(PyObject_GetAttrString(module, "Tensor"));
  PyErr_Clear();
  return tensor.ptr() == reinterpret_cast<PyObject *>(type);
}

static ArrayType describeType(PyTypeObject *type) {
  static std::unordered_map<PyTypeObject *, ArrayType> known;
  auto found = known.find(type);
  if (found != known.end())
    return found->second;
  Py_INCREF(reinterpret_cast<PyObject *>(type));
  return known[type] = {findExchangeAPI(type), isTensorOfTVMFFI(type)};
}

bool ArrayView::read(PyObject *object, char precision, bool isWritten,
                     bool isOnGPU) {
  bool isRead = Py_TYPE(object) == numPyType
                    ? !isOnGPU && readNumPy(object, isWritten)
                    : readTensor(object, precision, isOnGPU);
  // Checks read integers, and PyTorch can free the memory of a tensor.
  if (!isRead || getAddress() % getBytes() != 0 ||
      (getAddress() == 0 && !isEmpty()))
    return false;
  computeRange();
  return true;
}

bool ArrayView::readNumPy(PyObject *object, bool isWritten) {
  auto *array = reinterpret_cast<NumPyArray *>(object);
  auto *dtype = reinterpret_cast<NumPyDtype *>(array->dtype);
  if (array->rank > kMostRank || (isWritten && !(array->flags & kWriteable)) ||
      dtype->number < 0 ||
      static_cast<size_t>(dtype->number) >= numPyDtypes.size() ||
      (dtype->byteOrder != '=' && dtype->byteOrder != '|'))
    return false;
  ffi::DataType type = numPyDtypes[dtype->number];
  if (type.bits == 0)
    return false;
  int64_t bytes = (type.bits + 7) / 8;
  for (int i = 0; i < array->rank; ++i) {
    if (array->strides[i] % bytes != 0)
      return false;
    strides[i] = array->strides[i] / bytes;
  }
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  tensor = {array->data,
            {ffi::kCPU, 0},
            array->rank,
            type,
            reinterpret_cast<int64_t *>(array->sizes),
            strides,
            0};
  return true;
}

/// The tensor of an object of TVM-FFI; null, without an exception, for none.
static const ffi::DLTensor *getTensorOfTVMFFI(PyObject *object) {
  static PyObject *const name = PyUnicode_InternFromString("__chandle__");
  nb::object address = nb::steal(callMethod(object, name));
  void *handle = address.ptr() ? PyLong_AsVoidPtr(address.ptr()) : nullptr;
  PyErr_Clear();
  auto *held = static_cast<const ffi::Tensor *>(handle);
  return held && held->type == ffi::kTensor ? &held->tensor : nullptr;
}

/// Whether memory is of a GPU.
static bool isOfGPU(ffi::Device device) {
  return device.type == ffi::kCUDA || device.type == ffi::kCUDAManaged;
}

static bool isOfHost(ffi::Device device) {
  return device.type == ffi::kCPU || device.type == ffi::kCUDAHost;
}

bool ArrayView::readTensor(PyObject *object, char precision, bool isOnGPU) {
  ArrayType type = describeType(Py_TYPE(object));
  if (type.isTVMFFI) {
    const ffi::DLTensor *held = getTensorOfTVMFFI(object);
    if (!held)
      return false;
    tensor = *held;
  } else {
    if (!type.exchange || isSpecialTensor(object, precision))
      return false;
    if (type.exchange->view(object, &tensor) != 0) {
      PyErr_Clear();
      return false;
    }
    exchange = type.exchange;
  }
  return tensor.rank <= kMostRank &&
         (isOnGPU ? isOfGPU(tensor.device) : isOfHost(tensor.device));
}

bool ArrayView::getStream(void *&stream) const {
  int32_t type = tensor.device.type, number = tensor.device.id;
  bool isFound = exchange->getStream(type, number, &stream) == 0;
  PyErr_Clear();
  return isFound;
}

void ArrayView::fill(float *values, int64_t size, ffi::Device device) {
  sizes[0] = values ? size : 0;
  sizes[1] = size;
  tensor = {values,     device, values ? 1 : 2,
            {2, 32, 1}, sizes,  /*strides=*/nullptr,
            0};
  computeRange();
}

int64_t ArrayView::getStride(int dimension) const {
  if (tensor.strides)
    return tensor.strides[dimension];
  int64_t stride = 1;
  for (int inner = dimension + 1; inner < tensor.rank; ++inner)
    stride *= tensor.shape[inner];
  return stride;
}

bool ArrayView::isEmpty() const {
  return std::find(tensor.shape, tensor.shape + tensor.rank, 0) !=
         tensor.shape + tensor.rank;
}

bool ArrayView::isVectorOfInts(int bits) const {
  return tensor.rank == 1 && tensor.dtype.bits == bits &&
         tensor.dtype.code <= 1 && tensor.dtype.lanes == 1 &&
         (tensor.shape[0] <= 1 || getStride(0) == 1);
}

void ArrayView::computeRange() {
  low = high = getAddress();
  if (isEmpty())
    return;
  high += getBytes();
  for (int i = 0; i < tensor.rank; ++i) {
    int64_t reach = (tensor.shape[i] - 1) * getStride(i) * getBytes();
    (reach < 0 ? low : high) += reach;
  }
}

/// Whether rows of two arrays, which are equally far apart, have no byte in
/// common: those of each fit in the gaps of the other.
static bool areInterleaved(const ArrayView &a, const ArrayView &b) {
  const ffi::DLTensor &first = a.getTensor(), &second = b.getTensor();
  if (first.rank < 2 || second.rank < 2 || first.shape[0] < 2)
    return false;
  int64_t pitch = a.getStride(0) * a.getBytes();
  if (pitch <= 0 || pitch != b.getStride(0) * b.getBytes())
    return false;
  auto getWidth = [&](const ArrayView &view, int64_t rows) {
    return static_cast<int64_t>(view.high - view.low) - (rows - 1) * pitch;
  };
  int64_t width = getWidth(a, first.shape[0]);
  int64_t otherWidth = getWidth(b, second.shape[0]);
  auto distance = static_cast<int64_t>(b.low - a.low) % pitch;
  if (distance < 0)
    distance += pitch;
  return width <= distance && distance + otherWidth <= pitch;
}

bool ArrayView::mayOverlap(const ArrayView &other) const {
  return low < other.high && other.low < high && !areInterleaved(*this, other);
}
