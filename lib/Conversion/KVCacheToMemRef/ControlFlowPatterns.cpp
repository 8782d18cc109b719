//===- ControlFlowPatterns.cpp - Caches that travel -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions, calls, kernels, launches, selects, regions and branches that carry
// caches. Upstream's structural patterns expand most of them; functions are
// ours, because argument attributes must follow their arguments and kernels
// have attributions, and so are launches and selects.
//
//===----------------------------------------------------------------------===//

#include "ControlFlowPatterns.h"
#include "Bundle.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/ControlFlow/Transforms/StructuralTypeConversions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The attributes of one part of a cache: its name is the cache's with the
/// part's appended. All other attributes say something of memory, and hold for
/// the parts that are pointers.
DictionaryAttr getPartAttributes(MLIRContext *context, DictionaryAttr attrs,
                                 StringRef name, Part part) {
  NamedAttrList expanded;
  if (isa<MemRefType>(part.type))
    expanded.append(attrs.begin(), attrs.end());
  if (!name.empty())
    expanded.set(
        KVCacheDialect::kArgNameAttr,
        StringAttr::get(context, name + "." + stringifyPartKind(part.kind)));
  return expanded.getDictionary(context);
}

/// One dictionary per expanded argument or result, from one per original one;
/// null if there were none. The arguments of a kernel get names, because its
/// parameters are known to others by them.
ArrayAttr expandAttributes(MLIRContext *context, TypeRange types,
                           ArrayAttr attrs, bool isKernel) {
  if (!attrs && !isKernel)
    return {};
  auto none = DictionaryAttr::get(context);
  SmallVector<Attribute> expanded;
  for (auto [index, type] : llvm::enumerate(types)) {
    auto attr = attrs ? cast<DictionaryAttr>(attrs[index]) : none;
    std::string name = isKernel ? ("arg" + Twine(index)).str() : "";
    if (auto given = attr.getAs<StringAttr>(KVCacheDialect::kArgNameAttr))
      name = given.str();
    auto expandable = dyn_cast<ExpandableTypeInterface>(type);
    if (!expandable) {
      NamedAttrList named(attr);
      if (!name.empty())
        named.set(KVCacheDialect::kArgNameAttr, StringAttr::get(context, name));
      expanded.push_back(named.getDictionary(context));
      continue;
    }
    for (Part part : expandable.getParts())
      expanded.push_back(getPartAttributes(context, attr, name, part));
  }
  return ArrayAttr::get(context, expanded);
}

/// Expands the signature of a function or kernel. All arguments of the entry
/// block are converted at once: the inputs and, in a kernel, its attributions.
struct ExpandFunction : OpInterfaceConversionPattern<FunctionOpInterface> {
  using OpInterfaceConversionPattern::OpInterfaceConversionPattern;

  LogicalResult
  matchAndRewrite(FunctionOpInterface op, ArrayRef<Value>,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<FunctionType>(op.getFunctionType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "not a builtin function type");

    TypeConverter::SignatureConversion inputs(type.getNumInputs());
    SmallVector<Type> results;
    if (failed(typeConverter->convertSignatureArgs(type.getInputs(), inputs)) ||
        failed(typeConverter->convertTypes(type.getResults(), results)))
      return failure();
    auto expanded =
        FunctionType::get(getContext(), inputs.getConvertedTypes(), results);

    if (!op.getFunctionBody().empty()) {
      Block &entry = op.getFunctionBody().front();
      TypeConverter::SignatureConversion arguments(entry.getNumArguments());
      if (failed(typeConverter->convertSignatureArgs(entry.getArgumentTypes(),
                                                     arguments)))
        return failure();
      if (failed(rewriter.convertRegionTypes(&op.getFunctionBody(),
                                             *typeConverter, &arguments)))
        return failure();
    }
    auto kernel = dyn_cast<gpu::GPUFuncOp>(*op);
    ArrayAttr argAttrs =
        expandAttributes(getContext(), type.getInputs(), op.getArgAttrsAttr(),
                         /*isKernel=*/kernel && kernel.isKernel());
    ArrayAttr resAttrs =
        expandAttributes(getContext(), type.getResults(), op.getResAttrsAttr(),
                         /*isKernel=*/false);
    rewriter.modifyOpInPlace(op, [&] {
      op.setFunctionTypeAttr(TypeAttr::get(expanded));
      if (argAttrs)
        op.setArgAttrsAttr(argAttrs);
      if (resAttrs)
        op.setResAttrsAttr(resAttrs);
    });
    return success();
  }
};

SmallVector<Value> flatten(ArrayRef<ValueRange> values) {
  SmallVector<Value> flat;
  for (ValueRange range : values)
    llvm::append_range(flat, range);
  return flat;
}

/// Expands the operands that a launch passes to its kernel.
struct ExpandLaunch : OpConversionPattern<gpu::LaunchFuncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(gpu::LaunchFuncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> operands = flatten(adaptor.getKernelOperands());
    rewriter.modifyOpInPlace(
        op, [&] { op.getKernelOperandsMutable().assign(operands); });
    return success();
  }
};

/// Expands the results of a function of a GPU module.
struct ExpandReturn : OpConversionPattern<gpu::ReturnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(gpu::ReturnOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<gpu::ReturnOp>(op,
                                               flatten(adaptor.getOperands()));
    return success();
  }
};

/// Selects between two caches part by part.
struct ExpandSelect : OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::SelectOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value condition = getSingle(adaptor.getCondition());
    SmallVector<Value> parts;
    for (auto [ifTrue, ifFalse] :
         llvm::zip_equal(adaptor.getTrueValue(), adaptor.getFalseValue()))
      parts.push_back(rewriter.createOrFold<arith::SelectOp>(
          op.getLoc(), condition, ifTrue, ifFalse));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

/// Expands the arguments of a switch's destinations.
struct ExpandSwitch : OpConversionPattern<cf::SwitchOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(cf::SwitchOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<SmallVector<Value>> caseOperands;
    for (ArrayRef<ValueRange> operands : adaptor.getCaseOperands())
      caseOperands.push_back(flatten(operands));
    SmallVector<ValueRange> caseRanges(caseOperands.begin(),
                                       caseOperands.end());
    rewriter.replaceOpWithNewOp<cf::SwitchOp>(
        op, getSingle(adaptor.getFlag()), op.getDefaultDestination(),
        flatten(adaptor.getDefaultOperands()), op.getCaseValuesAttr(),
        op.getCaseDestinations(), caseRanges);
    return success();
  }
};

/// Expands the results of a region that is executed where it stands.
struct ExpandExecuteRegion : OpConversionPattern<scf::ExecuteRegionOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(scf::ExecuteRegionOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto expanded = ExpandedResults::get(*typeConverter, op.getResultTypes());
    if (failed(expanded))
      return failure();
    auto made =
        scf::ExecuteRegionOp::create(rewriter, op.getLoc(), expanded->types);
    made->setAttrs(op->getAttrs());
    rewriter.inlineRegionBefore(op.getRegion(), made.getRegion(),
                                made.getRegion().end());
    if (failed(rewriter.convertRegionTypes(&made.getRegion(), *typeConverter)))
      return failure();
    rewriter.replaceOpWithMultiple(op, expanded->split(made.getResults()));
    return success();
  }
};

/// A cache that is never used, part by part.
struct ExpandPoison : OpConversionPattern<ub::PoisonOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ub::PoisonOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<ExpandableTypeInterface>(op.getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "not of a cache type");
    SmallVector<Value> parts;
    for (Part part : type.getParts())
      parts.push_back(ub::PoisonOp::create(rewriter, op.getLoc(), part.type));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

/// Reports an op that no other pattern lowers.
struct ReportOthers : ConversionPattern {
  ReportOthers(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/0,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value>,
                  ConversionPatternRewriter &rewriter) const override {
    auto isIllegal = [&](Type type) {
      return !getTypeConverter()->isLegal(type);
    };
    SmallVector<Type> types(op->getOperandTypes());
    llvm::append_range(types, op->getResultTypes());
    auto illegal = llvm::find_if(types, isIllegal);
    if (isa_and_present<KVCacheDialect>(op->getDialect()) ||
        illegal == types.end())
      return rewriter.notifyMatchFailure(op, "has a pattern of its own");
    return op->emitOpError("expects no value of type ")
           << *illegal
           << ": only ops of this dialect use one, and functions, calls, "
              "branches and regions of 'scf' ops pass one on";
  }
};

} // namespace

FailureOr<ExpandedResults> ExpandedResults::get(const TypeConverter &converter,
                                                TypeRange types) {
  ExpandedResults expanded;
  for (Type type : types) {
    size_t before = expanded.types.size();
    if (failed(converter.convertType(type, expanded.types)))
      return failure();
    expanded.counts.push_back(expanded.types.size() - before);
  }
  return expanded;
}

SmallVector<ValueRange> ExpandedResults::split(ValueRange results) const {
  SmallVector<ValueRange> parts;
  for (size_t count : counts) {
    parts.push_back(results.take_front(count));
    results = results.drop_front(count);
  }
  return parts;
}

void kvcache::populateControlFlowPatterns(const TypeConverter &converter,
                                          RewritePatternSet &patterns,
                                          ConversionTarget &target) {
  patterns.add<ExpandExecuteRegion, ExpandFunction, ExpandLaunch, ExpandPoison,
               ExpandReturn, ExpandSelect, ExpandSwitch, ReportOthers>(
      converter, patterns.getContext());
  populateCallOpTypeConversionPattern(patterns, converter);
  populateReturnOpTypeConversionPattern(patterns, converter);
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  cf::populateCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                     target);

  // Upstream's patterns convert every scf.yield, but ask only for some.
  target.addDynamicallyLegalOp<scf::YieldOp, scf::ExecuteRegionOp>(
      [&](Operation *op) { return converter.isLegal(op); });

  target.markUnknownOpDynamicallyLegal([&](Operation *op) {
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      return converter.isLegal(function.getArgumentTypes()) &&
             converter.isLegal(function.getResultTypes()) &&
             converter.isLegal(&function.getFunctionBody());
    return converter.isLegal(op);
  });
}
