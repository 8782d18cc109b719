//===- KVCacheBytecode.h - The dialect in bytecode --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IR_KVCACHEBYTECODE_H
#define KVCACHE_LIB_IR_KVCACHEBYTECODE_H

namespace mlir::kvcache {
class KVCacheDialect;

/// Gives the dialect its encoding of types and attributes, and its version: it
/// reads the files of earlier versions, and rejects those of later ones.
void addBytecodeInterface(KVCacheDialect *dialect);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_KVCACHEBYTECODE_H
