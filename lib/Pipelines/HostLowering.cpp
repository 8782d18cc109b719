//===- HostLowering.cpp - From memref, vector and scf to LLVM -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "CleanUp.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/LLVMIR/Passes.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/Transforms/RequestCWrappers.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::kvcache;

/// All arithmetic on bf16 becomes arithmetic on f32, and what is left of narrow
/// floats are moves of their bits.
static void addFloatLowering(OpPassManager &pm) {
  math::MathExtendToSupportedTypesOptions extendMath;
  extendMath.extraTypeStrs = {"f16"};
  pm.addPass(math::createMathExtendToSupportedTypes(extendMath));
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16"};
  emulate.targetTypeStr = "f32";
  pm.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  pm.addPass(createNarrowFloats());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  FloatsAsBitsOptions asBits;
  asBits.bf16 = true;
  pm.addPass(createFloatsAsBits(asBits));
}

void kvcache::addHostLowering(OpPassManager &pm) {
  addCleanUp(pm);
  addFloatLowering(pm);
  addCleanUp(pm);
  ExpandForLLVMOptions expand;
  expand.gpuMath = false;
  pm.addPass(createExpandForLLVM(expand));
  pm.addPass(createConvertMathToFuncs());
  pm.addPass(createLowerControlFlow());
  pm.addNestedPass<func::FuncOp>(LLVM::createLLVMRequestCWrappersPass());
  // What LLVM has intrinsics for goes first; the math library has the rest.
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertToLLVMPass());
  addCleanUp(pm);
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createDropHints());
  pm.addPass(createTrackHostMemory());
  pm.addPass(createVerifyIR());
  pm.addPass(createCheckLowered());
}
