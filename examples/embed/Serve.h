//===- Serve.h - The dialect of a serving engine -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SERVE_H
#define SERVE_H

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

#include "ServeDialect.h.inc"

#define GET_OP_CLASSES
#include "ServeOps.h.inc"

namespace serve {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ServePasses.h.inc"
} // namespace serve

#endif // SERVE_H
