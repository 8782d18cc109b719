//===- OpSyntax.h - Parts of assembly formats -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IR_OPSYNTAX_H
#define KVCACHE_LIB_IR_OPSYNTAX_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::kvcache {

/// custom<ResultTypes>: nothing, `-> f32` or `-> (f32, f32)`.
ParseResult parseResultTypes(OpAsmParser &parser, SmallVectorImpl<Type> &types);
void printResultTypes(OpAsmPrinter &p, Operation *, TypeRange types);

/// custom<AttentionOperands>: `%q, %keys, %values, %row_offsets, %scale`, where
/// a latent cache has no values.
ParseResult
parseAttentionOperands(OpAsmParser &parser, OpAsmParser::UnresolvedOperand &q,
                       OpAsmParser::UnresolvedOperand &keys,
                       std::optional<OpAsmParser::UnresolvedOperand> &values,
                       OpAsmParser::UnresolvedOperand &rowOffsets,
                       OpAsmParser::UnresolvedOperand &scale);
void printAttentionOperands(OpAsmPrinter &p, Operation *, Value q, Value keys,
                            Value values, Value rowOffsets, Value scale);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_OPSYNTAX_H
