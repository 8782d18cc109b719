//===- CheckedCalls.h - Calls of operations with their checks ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_CHECKEDCALLS_H
#define KVCACHE_PYTHON_CHECKEDCALLS_H

#include "NativeCalls.h"

#include <string>
#include <vector>

namespace mlir::kvcache::python {

/// The check of a parameter of an operation.
enum class ParameterKind : char {
  Array = 'a',
  /// A factor of scores.
  Number = 'n',
  /// Rows of new tokens.
  Rows = 'r',
  /// Rows, or None for an array without rows.
  OptionalRows = 'o',
  /// The slots of new tokens.
  Slots = 's',
  /// The slots that each new token sees.
  SeenSlots = 'v',
  /// The rows of the rope table.
  Positions = 'p',
  Rope = 'c',
  Lengths = 'l',
  /// The ranges of tokens that each new token sees.
  Ranges = 'b',
  /// An array of f32 for each head, or a number for all.
  Scale = 'f',
  /// Likewise; 1 if it is None.
  OptionalScale = 'e',
  /// The array of a region, which has elements; of signed or of unsigned ones,
  /// if they are integers.
  RegionArray = 'g',
  UnsignedArray = 'u',
  /// The workspace of a step; that of the stream if it is None.
  Workspace = 'w'
};

struct Parameter {
  /// The index of the argument of the function; negative for a parameter that
  /// must be None.
  int argument;
  ParameterKind kind;
  /// The elements of a row of `OptionalRows`, or of a `Scale`.
  int64_t size;
};

/// An operation on a layer of a cache, and what its calls are checked for. They
/// are the checks of kvcache.ops, which has the messages: a call that is not
/// surely right is left to it.
struct CheckedOperation {
  const NativeFunction *function;
  /// Parameters after the layer, in their order.
  std::vector<Parameter> parameters;
  std::vector<std::string> names;
  /// The letters of the inputs' operands, as arguments from 0 on: `c` for a
  /// tensor of the cache, `n` for lengths, `t` for a table, `x` for its index,
  /// `i` for a number.
  std::string operands;
  /// The kinds of inputs that are taken, as `StepInputs` names them.
  std::string form, formWithoutTable;
  /// The argument of the layer; negative if each has operands of its own.
  int layer;
  /// The argument of the row offsets.
  int offsets;
  /// Whether sequences must have pages for all tokens.
  bool needsPages;
  /// The bytes of a workspace for each sequence, and those for all.
  int64_t workspaceBytes, fixedWorkspaceBytes;
  /// See `checked_call` in _kvcache.pyi.
  PyObject *placeScale, *findWorkspace;

  /// Calls the function, if the call is surely right. `values` are those of the
  /// parameters.
  CallResult call(PyObject *inputs, PyObject *layer,
                  PyObject *const *values) const;
};

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_CHECKEDCALLS_H
