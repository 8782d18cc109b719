//===- Operations.cpp - Operations of the kvcache dialect -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Operations.h"

#include "Checks.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Sorts `operands` into the segments of an op.
static LogicalResult
sortIntoSegments(Location loc, StringRef op,
                 ArrayRef<StringLiteral> segmentNames,
                 ArrayRef<MlirStringRef> names, ArrayRef<MlirValue> operands,
                 MutableArrayRef<SmallVector<MlirValue>> segments) {
  for (auto [name, operand] : llvm::zip_equal(names, operands)) {
    const auto *segment = llvm::find_if(segmentNames, [&](StringRef segment) {
      return segment.rtrim("?*") == unwrap(name);
    });
    if (segment == segmentNames.end())
      return emitError(loc)
             << "expects no operand '" << unwrap(name) << "' of '" << op << "'";
    if (!mlirValueIsNull(operand))
      segments[segment - segmentNames.begin()].push_back(operand);
  }
  for (auto [name, segment] : llvm::zip_equal(segmentNames, segments)) {
    StringRef plain = name.rtrim("?*");
    if (segment.empty() && name == plain)
      return emitError(loc)
             << "expects an operand '" << plain << "' of '" << op << "'";
    if (segment.size() > 1 && !name.ends_with("*"))
      return emitError(loc) << "expects one operand '" << plain << "' of '"
                            << op << "', got " << segment.size();
  }
  return success();
}

MlirLogicalResult mlirKVCacheOperationStateAddNamedOperands(
    MlirOperationState *state, intptr_t numOperands, const MlirStringRef *names,
    const MlirValue *operands) {
  Location loc = unwrap(state->location);
  StringRef op = unwrap(state->name);
  if (failed(checkLoaded(loc)))
    return wrap(failure());
  std::optional<RegisteredOperationName> registered =
      RegisteredOperationName::lookup(op, loc.getContext());
  auto *named = registered
                    ? registered->getInterface<NamedOperandsOpInterface>()
                    : nullptr;
  if (!named)
    return wrap(LogicalResult(emitError(loc) << "expects an op of the dialect, "
                                             << "got '" << op << "'"));

  ArrayRef<StringLiteral> segmentNames = named->getOperandNames();
  SmallVector<SmallVector<MlirValue>> segments(segmentNames.size());
  if (failed(sortIntoSegments(loc, op, segmentNames,
                              ArrayRef(names, numOperands),
                              ArrayRef(operands, numOperands), segments)))
    return wrap(failure());
  SmallVector<int32_t> sizes;
  for (ArrayRef<MlirValue> segment : segments) {
    mlirOperationStateAddOperands(state, segment.size(), segment.data());
    sizes.push_back(segment.size());
  }
  if (registered->hasTrait<OpTrait::AttrSizedOperandSegments>()) {
    MLIRContext *context = loc.getContext();
    MlirNamedAttribute attribute = mlirNamedAttributeGet(
        mlirIdentifierGet(wrap(context), mlirStringRefCreateFromCString(
                                             "operandSegmentSizes")),
        wrap(DenseI32ArrayAttr::get(context, sizes)));
    mlirOperationStateAddAttributes(state, 1, &attribute);
  }
  return wrap(success());
}
