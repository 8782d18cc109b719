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
#include "mlir/Dialect/Math/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::kvcache;

/// All arithmetic on bf16 becomes arithmetic on f32, and what is left of narrow
/// floats are moves of their bits. Passes that concern globals, too, are of the
/// module; those of functions don't look at kernels for the emulator, which are
/// of the LLVM dialect by now.
static void addFloatLowering(OpPassManager &pm) {
  OpPassManager &functions = pm.nest<func::FuncOp>();
  math::MathExtendToSupportedTypesOptions extendMath;
  extendMath.extraTypeStrs = {"f16"};
  functions.addPass(math::createMathExtendToSupportedTypes(extendMath));
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16"};
  emulate.targetTypeStr = "f32";
  functions.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  pm.addPass(createNarrowFloats());
  pm.addNestedPass<func::FuncOp>(createExpandClamps());
  pm.addNestedPass<func::FuncOp>(createExpandBF16Truncations());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addNestedPass<func::FuncOp>(arith::createArithExpandOpsPass(expand));
  FloatsAsBitsOptions asBits;
  asBits.bf16 = true;
  pm.addPass(createFloatsAsBits(asBits));
}

void kvcache::addHostLowering(OpPassManager &pm, int32_t threads) {
  addCleanUp(pm.nest<func::FuncOp>());
  pm.addNestedPass<func::FuncOp>(createOverlapScales());
  pm.addPass(createLowerPrints());
  addFloatLowering(pm);
  addCleanUp(pm.nest<func::FuncOp>());
  ExpandForLLVMOptions expand;
  expand.gpuMath = false;
  pm.addPass(createExpandForLLVM(expand));
  pm.addPass(createLowerMath());
  pm.addPass(createLowerParallelLoops({threads}));
  pm.addPass(createLowerControlFlow());
  pm.addPass(createLowerX86Vectors());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createAnnotateLoops());
  addCleanUp(pm);
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createDropHints());
  pm.addPass(createTrackHostMemory());
  pm.addPass(createInlineChecks());
  pm.addPass(createVerifyIR());
  pm.addPass(createCheckLowered());
}
