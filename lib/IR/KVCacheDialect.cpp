//===- KVCacheDialect.cpp - The kvcache dialect ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KVCacheBytecode.h"
#include "OpFamilies.h"

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

#include "kvcache/IR/KVCacheAttrInterfaces.cpp.inc"
#include "kvcache/IR/KVCacheDialect.cpp.inc"
#include "kvcache/IR/KVCacheEnums.cpp.inc"
#include "kvcache/IR/KVCacheOpInterfaces.cpp.inc"
#include "kvcache/IR/KVCacheTypeInterfaces.cpp.inc"

namespace {

/// Prints `#kvcache.params` once per module, as `#kv`.
struct KVCacheAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    if (!isa<ParamsAttr>(attr))
      return AliasResult::NoAlias;
    os << "kv";
    return AliasResult::OverridableAlias;
  }
};

/// All ops may be inlined anywhere, and any op into their regions; verifiers
/// check the contents of regions.
struct KVCacheInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

} // namespace

void KVCacheDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerAccessOps(this);
  registerAttentionOps(this);
  registerCheckOps(this);
  registerCopyOps(this);
  registerFragmentOps(this);
  registerFragmentProductOps(this);
  registerFragmentRowOps(this);
  registerFragmentTileOps(this);
  registerMatrixOps(this);
  registerPageTableOps(this);
  registerPartOps(this);
  registerPipeOps(this);
  registerQuantizationOps(this);
  registerQueryOps(this);
  registerScalesOps(this);
  registerSelectionOps(this);
  registerSplitOps(this);
  registerTensorMapOps(this);
  registerTensorMemoryOps(this);
  registerTileOps(this);
  registerTMAOps(this);
  registerViewOps(this);
  registerWholeCacheOps(this);
  addInterfaces<KVCacheAsmInterface, KVCacheInlinerInterface>();
  addBytecodeInterface(this);
}

Operation *KVCacheDialect::materializeConstant(OpBuilder &builder,
                                               Attribute value, Type type,
                                               Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult
KVCacheDialect::verifyOperationAttribute(Operation *op,
                                         NamedAttribute attribute) {
  if (attribute.getName() != kScheduleAttr)
    return success();
  if (!isa<scf::ForOp>(op))
    return op->emitOpError("expects no '")
           << kScheduleAttr
           << "', which only 'scf.for' has: passes that replace such loops go "
              "after 'kvcache-schedule-attention'";
  if (!isa<ScheduleAttr>(attribute.getValue()))
    return op->emitOpError("expects '")
           << kScheduleAttr << "' to be a #kvcache.schedule, got "
           << attribute.getValue();
  return success();
}

LogicalResult
KVCacheDialect::verifyRegionArgAttribute(Operation *op, unsigned regionIndex,
                                         unsigned argIndex,
                                         NamedAttribute attribute) {
  if (attribute.getName() == kArgNameAttr &&
      !isa<StringAttr>(attribute.getValue()))
    return op->emitError("expects '")
           << kArgNameAttr << "' of argument " << argIndex
           << " to be a string, got " << attribute.getValue();
  return success();
}

Type kvcache::getLaneType(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getElementType() : type;
}

Type kvcache::withLane(Type type, Type lane) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(lane) : lane;
}

int64_t kvcache::getNumLanes(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}
