//===- CheckedCalls.cpp - Calls of operations with their checks -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallArguments.h"

#include <algorithm>
#include <limits>

using namespace mlir::kvcache::python;
using namespace mlir::kvcache::runtime;

namespace {

/// The checks of a call: each says whether it is surely right.
class CallChecks {
public:
  CallChecks(const CheckedOperation &operation, const CallArguments &arguments)
      : operation(operation), function(*operation.function),
        arguments(arguments), places(arguments.getPlaces()) {}

  bool checkSteps();
  bool checkParameters();
  bool areApart() const;

  int64_t countWorkspaceBytes() const {
    return operation.fixedWorkspaceBytes + batch * operation.workspaceBytes;
  }

private:
  bool checkHostSteps();
  bool checkOffsets(const ArrayView &starts);
  bool checkTotals(const ArrayView &totals);
  bool checkIndex() const;
  bool checkPages();
  bool checkParameter(const Parameter &parameter);
  bool checkRows(const ArrayView &view, int dimension);
  bool areOutside(const ArrayView &view, bool areColumns, int64_t least,
                  int64_t end) const;
  bool checkLengths(const ArrayView &view);

  /// The tokens that the pages of a sequence hold.
  uint64_t getRoom(int64_t sequence) const;
  uint64_t getNew(int64_t sequence) const {
    const uint32_t *starts = getView(operation.offsets).getInts();
    return starts[sequence + 1] - starts[sequence];
  }
  int64_t getPageSize() const {
    return getView(0).getSize(getView(0).getTensor().rank - 3);
  }
  const ArrayView &getView(int argument) const {
    return arguments.getView(argument);
  }

  const CheckedOperation &operation;
  const NativeFunction &function;
  const CallArguments &arguments;
  const CallArguments::Places &places;
  int64_t batch = 0;
  /// New tokens; negative until the first rows say it.
  int64_t total = -1;
  /// The most tokens of a sequence.
  uint64_t longest = 0;
};

} // namespace

/// Sizes of the step agree, and sequences have pages for their tokens.
bool CallChecks::checkSteps() {
  if (!arguments.hasStep())
    return true;
  const ArrayView &starts = getView(operation.offsets);
  if (!starts.isVectorOfInts() || starts.getSize(0) < 1 ||
      !getView(places.lengths).isVectorOfInts())
    return false;
  batch = starts.getSize(0) - 1;
  if (getView(places.lengths).getSize(0) != batch)
    return false;
  if (places.tableIndex >= 0 && !getView(places.tableIndex).isVectorOfInts())
    return false;
  const ArrayView &entries = getView(places.table);
  int rank = entries.getTensor().rank;
  bool isCSR = rank == 1 && places.tableIndex >= 0;
  if (!isCSR && rank != 2)
    return false;
  int64_t numRows = places.tableIndex < 0
                        ? entries.getSize(0)
                        : getView(places.tableIndex).getSize(0) - isCSR;
  if (numRows != batch)
    return false;
  if (function.isOnGPU())
    return checkHostSteps();
  return checkOffsets(starts) && checkIndex() && checkPages();
}

/// Reads offsets, which begin with 0 and do not decrease.
bool CallChecks::checkOffsets(const ArrayView &starts) {
  const uint32_t *first = starts.getInts();
  total = first[batch];
  return *first == 0 && std::is_sorted(first, first + batch + 1);
}

/// Checks what a step whose arrays are on a GPU has in host memory.
bool CallChecks::checkHostSteps() {
  ArrayView starts, totals;
  auto read = [](ArrayView &view, PyObject *array) {
    return view.read(array, /*precision=*/0, /*isWritten=*/false,
                     /*isOnGPU=*/false);
  };
  PyObject *hostOffsets = arguments.getHostOffsets();
  PyObject *hostTotals = arguments.getHostTotals();
  if (hostOffsets != Py_None &&
      (!read(starts, hostOffsets) || !starts.isVectorOfInts() ||
       starts.getSize(0) != batch + 1 || !checkOffsets(starts)))
    return false;
  return hostTotals == Py_None ||
         (read(totals, hostTotals) && totals.isVectorOfInts(/*bits=*/64) &&
          totals.getSize(0) == batch && checkTotals(totals));
}

/// Sequences have pages for their tokens, where their number is known.
bool CallChecks::checkTotals(const ArrayView &totals) {
  const ArrayView &entries = getView(places.table);
  bool isCSR = entries.getTensor().rank == 1;
  auto *counts = reinterpret_cast<const uint64_t *>(totals.getAddress());
  for (int64_t b = 0; b < batch; ++b) {
    longest = std::max(longest, counts[b]);
    if (operation.needsPages && !isCSR && counts[b] > getRoom(b))
      return false;
  }
  return true;
}

/// Sequences have entries or a row of the table.
bool CallChecks::checkIndex() const {
  if (places.tableIndex < 0)
    return true;
  const ArrayView &entries = getView(places.table);
  const uint32_t *index = getView(places.tableIndex).getInts();
  if (entries.getTensor().rank == 1)
    return std::is_sorted(index, index + batch + 1) &&
           index[batch] <= entries.getSize(0);
  return std::all_of(index, index + batch,
                     [&](uint32_t row) { return row < entries.getSize(0); });
}

bool CallChecks::checkPages() {
  const uint32_t *counts = getView(places.lengths).getInts();
  for (int64_t b = 0; b < batch; ++b) {
    uint64_t tokens = uint64_t(counts[b]) + getNew(b);
    longest = std::max(longest, tokens);
    if (operation.needsPages && tokens > getRoom(b))
      return false;
  }
  return true;
}

uint64_t CallChecks::getRoom(int64_t sequence) const {
  const ArrayView &entries = getView(places.table);
  if (entries.getTensor().rank != 1)
    return entries.getSize(1) * getPageSize();
  const uint32_t *starts = getView(places.tableIndex).getInts();
  return uint64_t(starts[sequence + 1] - starts[sequence]) * getPageSize();
}

bool CallChecks::checkParameters() {
  bool hasPositions = false;
  for (const Parameter &parameter : operation.parameters) {
    if (parameter.argument < 0)
      continue;
    hasPositions |= parameter.kind == ParameterKind::Positions;
    if (function.isArray(parameter.argument) && !checkParameter(parameter))
      return false;
  }
  if (places.rope >= 0 && getView(places.rope).getTensor().rank != 2)
    return false;
  return places.rope < 0 || hasPositions ||
         longest <= static_cast<uint64_t>(getView(places.rope).getSize(0));
}

/// Arrays have a row for each new token.
bool CallChecks::checkRows(const ArrayView &view, int dimension) {
  if (view.getTensor().rank <= dimension)
    return false;
  int64_t rows = view.getSize(dimension);
  if (total < 0)
    total = rows;
  return rows >= total;
}

/// Whether the integers of the first `rows` rows, or columns of the last
/// dimension, are in [least, end). As kernels read them, integers are signed.
static bool areBetween(const ArrayView &view, int64_t rows, bool areColumns,
                       int64_t least, int64_t end) {
  const ffi::DLTensor &tensor = view.getTensor();
  if (tensor.dtype.code > 1 || tensor.dtype.lanes != 1 || tensor.rank < 1 ||
      tensor.rank > 2 || (tensor.dtype.bits != 32 && tensor.dtype.bits != 64))
    return false;
  bool isWide = tensor.dtype.bits == 64, isMatrix = tensor.rank == 2;
  int inner = isMatrix ? 1 : 0;
  int64_t outerSize = isMatrix ? view.getSize(0) : 1;
  int64_t innerSize = view.getSize(inner);
  int64_t outerStride = isMatrix ? view.getStride(0) : 0;
  int64_t innerStride = view.getStride(inner);
  if (areColumns || !isMatrix)
    innerSize = std::min(innerSize, rows);
  else
    outerSize = std::min(outerSize, rows);
  auto *numbers = reinterpret_cast<const char *>(view.getAddress());
  for (int64_t i = 0; i < outerSize; ++i)
    for (int64_t j = 0; j < innerSize; ++j) {
      int64_t place = i * outerStride + j * innerStride;
      int64_t number = isWide
                           ? reinterpret_cast<const int64_t *>(numbers)[place]
                           : reinterpret_cast<const int32_t *>(numbers)[place];
      if (number < least || number >= end)
        return false;
    }
  return true;
}

/// Whether the i32 numbers of each of the first `rows` rows do not decrease.
static bool areSorted(const ArrayView &view, int64_t rows) {
  if (view.getTensor().dtype.bits != 32)
    return false;
  auto *numbers = reinterpret_cast<const int32_t *>(view.getAddress());
  int64_t ranges = view.getSize(1);
  for (int64_t i = 0, end = std::min(rows, view.getSize(0)); i < end; ++i)
    for (int64_t k = 0; k < ranges && ranges > 1; ++k) {
      auto get = [&](int64_t range, int64_t side) {
        return numbers[i * view.getStride(0) + range * view.getStride(1) +
                       side * view.getStride(2)];
      };
      if (get(k, 1) < get(k, 0) || (k && get(k, 0) < get(k - 1, 1)))
        return false;
    }
  return true;
}

/// Whether the integers of an array may be read, and are not in [least, end).
bool CallChecks::areOutside(const ArrayView &view, bool areColumns,
                            int64_t least, int64_t end) const {
  return !function.isOnGPU() &&
         !areBetween(view, total, areColumns, least, end);
}

bool CallChecks::checkParameter(const Parameter &parameter) {
  const ArrayView &view = getView(parameter.argument);
  constexpr int64_t any = std::numeric_limits<int64_t>::min();
  switch (parameter.kind) {
  case ParameterKind::OptionalRows:
    return parameter.argument == places.missingRows || checkRows(view, 0);
  case ParameterKind::Rows:
    return checkRows(view, 0);
  case ParameterKind::Slots:
  case ParameterKind::SeenSlots:
    return checkRows(view, 0) &&
           !areOutside(view, false, any, getView(0).getSize(0) * getPageSize());
  case ParameterKind::Positions:
    return view.getTensor().rank > 0 &&
           checkRows(view, view.getTensor().rank - 1) && places.rope >= 0 &&
           getView(places.rope).getTensor().rank == 2 &&
           !areOutside(view, true, 0, getView(places.rope).getSize(0));
  case ParameterKind::Ranges:
    return view.getTensor().rank == 3 && checkRows(view, 0) &&
           (function.isOnGPU() || areSorted(view, total));
  case ParameterKind::Lengths:
    return checkLengths(view);
  case ParameterKind::RegionArray:
    return !view.isEmpty() && view.getTensor().dtype.code != 1;
  case ParameterKind::UnsignedArray:
    return !view.isEmpty() && view.getTensor().dtype.code != 0;
  case ParameterKind::Workspace:
    return parameter.argument == places.newWorkspace ||
           (view.getTensor().rank == 1 &&
            view.getSize(0) >= countWorkspaceBytes());
  default:
    return true;
  }
}

bool CallChecks::checkLengths(const ArrayView &view) {
  if (!view.isVectorOfInts() || view.getSize(0) != batch)
    return false;
  for (int64_t b = 0; b < batch && !function.isOnGPU(); ++b) {
    uint64_t length = view.getInts()[b];
    if (length > getRoom(b) || length > std::numeric_limits<int32_t>::max())
      return false;
  }
  return true;
}

/// No array that is written shares memory with another one, except for tensors
/// of the cache among themselves.
bool CallChecks::areApart() const {
  auto isOfCache = [&](int argument) {
    return argument < static_cast<int>(operation.operands.size()) &&
           operation.operands[argument] == 'c';
  };
  for (int written = 0; written < function.getCount(); ++written) {
    if (!function.isArray(written) || !function.isWritten(written))
      continue;
    for (int other = 0; other < function.getCount(); ++other) {
      if (other == written || !function.isArray(other) ||
          (isOfCache(written) && isOfCache(other)))
        continue;
      if (getView(written).mayOverlap(getView(other)))
        return false;
    }
  }
  return true;
}

CallResult CheckedOperation::call(PyObject *inputs, PyObject *layer,
                                  PyObject *const *values) const {
  CallArguments arguments(*this);
  if (!arguments.readInputs(inputs, layer) || !arguments.readParameters(values))
    return CallResult::Refused;
  CallChecks checks(*this, arguments);
  bool isRight = checks.checkSteps() && checks.checkParameters() &&
                 arguments.findWorkspace(checks.countWorkspaceBytes()) &&
                 checks.areApart();
  return isRight ? arguments.call() : CallResult::Refused;
}
