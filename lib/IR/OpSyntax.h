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

/// custom<AttentionModifiers>: `score {…} mask {…} sinks %sinks mask %mask`,
/// each of them optional. The region `mask` begins with a brace, the operand
/// does not.
ParseResult
parseAttentionModifiers(OpAsmParser &parser,
                        SmallVectorImpl<std::unique_ptr<Region>> &regions,
                        std::optional<OpAsmParser::UnresolvedOperand> &sinks,
                        std::optional<OpAsmParser::UnresolvedOperand> &mask);
void printAttentionModifiers(OpAsmPrinter &p, Operation *op, RegionRange,
                             Value sinks, Value mask);

/// custom<SplitAttributes>: an attribute dictionary, in which the names of
/// earlier versions are fields of `split`, with a warning.
ParseResult parseSplitAttributes(OpAsmParser &parser,
                                 NamedAttrList &attributes);
void printSplitAttributes(OpAsmPrinter &p, Operation *,
                          DictionaryAttr attributes);

/// custom<AttentionAttributes>: an attribute dictionary, in which the names of
/// earlier versions are fields of `split` and `config`, with a warning.
ParseResult parseAttentionAttributes(OpAsmParser &parser,
                                     NamedAttrList &attributes);
void printAttentionAttributes(OpAsmPrinter &p, Operation *op,
                              DictionaryAttr attributes);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_OPSYNTAX_H
