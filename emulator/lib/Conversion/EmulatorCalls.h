//===- EmulatorCalls.h - Calls of the emulator from kernels --- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_EMULATORCALLS_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_EMULATORCALLS_H

#include "kvcache/Support/RuntimeCalls.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {

/// Creates calls of the functions in `kvcache/Emulator`, for the lowering of
/// one gpu.module. Functions have their thread as argument 0.
class EmulatorCalls {
public:
  EmulatorCalls(RuntimeCalls &runtime, const Chip &chip, bool isSanitized,
                bool isMetered);

  /// Calls `function` with the thread, the site of `op` and `operands`, before
  /// `op`. Types are as C has them: pointers of any space, i32 and
  /// i64, f32 and f64. Returns the result, null for none.
  Value call(Operation *op, StringRef function, Type resultType,
             ValueRange operands);
  /// Creates the call at another place.
  Value call(OpBuilder &builder, Operation *op, StringRef function,
             Type resultType, ValueRange operands);

  /// Creates the call for an op with this name at `loc`, in the function of
  /// `op`.
  Value call(OpBuilder &builder, Operation *op, Location loc, StringRef name,
             StringRef function, Type resultType, ValueRange operands);

  /// Replaces an op by such a call; the result type is the op's own.
  void replaceByCall(Operation *op, StringRef function, ValueRange operands);

  /// The KVCacheThread that runs the function around `op`.
  Value getThread(Operation *op);
  /// The KVCacheSite of `op`.
  Value getSite(Operation *op);
  /// A site for an op at `loc`, from code at `builder`.
  Value getSite(OpBuilder &builder, Location loc, StringRef name);
  /// The fields of a site.
  std::pair<Value, Value> describeSite(OpBuilder &builder, Location loc,
                                       StringRef name);

  /// The field of the thread at a byte offset.
  Value loadField(Operation *op, int64_t offset, Type type);

  /// The field of the thread's KVCacheCluster at a byte offset.
  Value loadClusterField(Operation *op, int64_t offset, Type type);

  /// Memory in the frame of the function, for results that are structures.
  Value createSlot(Operation *op, Type type);

  Value getI32(Operation *op, int64_t value);
  Value getI64(Operation *op, int64_t value);

  RuntimeCalls &runtime;
  const Chip &chip;
  const bool isSanitized, isMetered;
  /// Whether threads of a block may store equal values to shared memory.
  bool mayRewrite = false;
  LLVM::LLVMPointerType pointerType;
  IntegerType i1, i8, i16, i32, i64;
  Type f32;

private:
  Value loadAt(Operation *op, Value base, int64_t offset, Type type);

  llvm::StringMap<LLVM::GlobalOp> sites;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_EMULATORCALLS_H
