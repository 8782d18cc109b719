//===- mask-bounds.cpp - Checks bounds of masks against all pairs ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Draws masks and boxes of rows, and compares bounds of the tokens that are
// admitted with an interpreter on each pair. Boxes are constants, so bounds
// fold to constants. Masks of causal attention, windows and chunks have exact
// bounds. Prints the first wrong bounds, and how many there are.
//
//===----------------------------------------------------------------------===//

#include "MaskBounds.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/InitAll.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <random>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

constexpr int64_t kMasks = 3000, kBoxes = 3, kMostPrinted = 10;

/// A box of rows, and some tokens.
struct Box {
  int64_t tokens, sequence, head[2], query[2], token[2];
};

/// Computes the integers of a mask for one pair.
class Interpreter {
public:
  bool run(Region &mask, ArrayRef<int64_t> arguments) {
    values.clear();
    for (auto [argument, value] :
         llvm::zip_equal(mask.getArguments(), arguments))
      values[argument] = value;
    for (Operation &op : mask.front().without_terminator())
      values[op.getResult(0)] = wrap(op.getResult(0), compute(&op));
    return get(mask.front().getTerminator()->getOperand(0));
  }

private:
  int64_t get(Value value) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return value.getType().isInteger(1) ? constant.getZExtValue()
                                          : constant.getSExtValue();
    return values.at(value);
  }
  static int64_t wrap(Value value, int64_t number) {
    if (value.getType().isInteger(32))
      return static_cast<int32_t>(number);
    return value.getType().isInteger(1) ? number & 1 : number;
  }
  static uint64_t toUnsigned(Value value, int64_t number) {
    return value.getType().isInteger(32) ? static_cast<uint32_t>(number)
                                         : static_cast<uint64_t>(number);
  }

  int64_t compute(Operation *op) {
    auto in = llvm::map_to_vector(op->getOperands(),
                                  [&](Value value) { return get(value); });
    if (in.empty())
      return get(op->getResult(0));
    auto u = [&](unsigned i) { return toUnsigned(op->getOperand(i), in[i]); };
    return TypeSwitch<Operation *, int64_t>(op)
        .Case([&](arith::AddIOp) { return in[0] + in[1]; })
        .Case([&](arith::SubIOp) { return in[0] - in[1]; })
        .Case([&](arith::MulIOp) { return in[0] * in[1]; })
        .Case([&](arith::DivSIOp) { return in[0] / in[1]; })
        .Case([&](arith::FloorDivSIOp) {
          return in[0] / in[1] - (in[0] % in[1] != 0 && in[0] < 0);
        })
        .Case([&](arith::DivUIOp) { return u(0) / u(1); })
        .Case([&](arith::ShRUIOp) { return u(0) >> u(1); })
        .Case([&](arith::RemSIOp) { return in[0] % in[1]; })
        .Case([&](arith::RemUIOp) { return u(0) % u(1); })
        .Case([&](arith::AndIOp) { return in[0] & in[1]; })
        .Case([&](arith::OrIOp) { return in[0] | in[1]; })
        .Case([&](arith::XOrIOp) { return in[0] ^ in[1]; })
        .Case([&](arith::MinSIOp) { return std::min(in[0], in[1]); })
        .Case([&](arith::MaxSIOp) { return std::max(in[0], in[1]); })
        .Case([&](arith::MinUIOp) { return std::min(u(0), u(1)); })
        .Case([&](arith::MaxUIOp) { return std::max(u(0), u(1)); })
        .Case([&](arith::IndexCastOp) { return in[0]; })
        .Case([&](arith::IndexCastUIOp) { return u(0); })
        .Case([&](arith::SelectOp) { return in[0] ? in[1] : in[2]; })
        .Case([&](arith::CmpIOp compare) {
          unsigned width = compare.getLhs().getType().isInteger(32) ? 32 : 64;
          return arith::applyCmpPredicate(
              compare.getPredicate(), APInt(width, u(0)), APInt(width, u(1)));
        });
  }

  DenseMap<Value, int64_t> values;
};

class Checker {
public:
  explicit Checker(MLIRContext *context)
      : builder(context), loc(UnknownLoc::get(context)), b(builder, loc) {}

  int run() {
    for (int64_t i = 0; i < kMasks; ++i) {
      begin();
      Value condition = draw(3);
      YieldOp::create(builder, loc, condition);
      for (int64_t box = 0; box < kBoxes; ++box)
        check(drawBox());
    }
    llvm::outs() << "bounds: " << kMasks * kBoxes
                 << ", with fewer tokens: " << tight
                 << ", with tokens of all rows: " << shared << "\n";
    checkExact();
    llvm::outs() << "failures: " << failures << "\n";
    return failures ? 1 : 0;
  }

private:
  int64_t pick(int64_t from, int64_t to) {
    return from + static_cast<int64_t>(random() % (to - from + 1));
  }

  //===--------------------------------------------------------------------===//
  // Masks
  //===--------------------------------------------------------------------===//

  /// Begins a mask: its arguments, as indices or i32.
  void begin() {
    code.clear();
    mask = std::make_unique<Region>();
    Block &block = mask->emplaceBlock();
    builder.setInsertionPointToStart(&block);
    is32 = pick(0, 1);
    integers.clear();
    for (int i = 0; i < 4; ++i) {
      Value argument = block.addArgument(builder.getIndexType(), loc);
      if (is32)
        argument = pick(0, 1) ? cast<arith::IndexCastOp>(argument)
                              : cast<arith::IndexCastUIOp>(argument);
      integers.push_back(argument);
    }
  }
  template <typename OpTy> Value cast(Value value) {
    return OpTy::create(builder, loc, builder.getI32Type(), value);
  }

  Value castToIndex(Value value) {
    Type index = builder.getIndexType();
    if (pick(0, 1))
      return arith::IndexCastOp::create(builder, loc, index, value);
    return arith::IndexCastUIOp::create(builder, loc, index, value);
  }

  Value number(int64_t value) { return is32 ? b.i32(value) : b.index(value); }

  template <typename OpTy> Value binary(Value lhs, Value rhs) {
    return OpTy::create(builder, loc, lhs, rhs);
  }

  Value drawInteger(int depth) {
    int64_t kind = depth ? pick(0, 15) : pick(0, 1);
    if (kind == 0)
      return number(pick(0, 20) ? pick(-4, 30) : 0x7ffffff0);
    if (kind <= 3)
      return integers[pick(0, 5) % 4 ? pick(2, 3) : pick(0, 3)];
    Value lhs = drawInteger(depth - 1);
    Value small = number(pick(1, 9));
    switch (kind) {
    case 4:
      return binary<arith::AddIOp>(lhs, drawInteger(depth - 1));
    case 5:
      return binary<arith::SubIOp>(lhs, drawInteger(depth - 1));
    case 6:
      return binary<arith::MulIOp>(lhs, number(pick(-3, 3)));
    case 7:
      return binary<arith::DivSIOp>(lhs, small);
    case 8:
      return binary<arith::FloorDivSIOp>(lhs, small);
    case 9:
      return binary<arith::DivUIOp>(lhs, small);
    case 10:
      return pick(0, 1) ? binary<arith::RemSIOp>(lhs, small)
                        : binary<arith::RemUIOp>(lhs, small);
    case 11:
      return pick(0, 1) ? binary<arith::ShRUIOp>(lhs, number(pick(0, 4)))
                        : binary<arith::AndIOp>(lhs, number(7));
    case 12:
      return binary<arith::MinSIOp>(lhs, drawInteger(depth - 1));
    case 13:
      return binary<arith::MaxSIOp>(lhs, drawInteger(depth - 1));
    case 14:
      return pick(0, 1) ? binary<arith::MinUIOp>(lhs, drawInteger(depth - 1))
                        : binary<arith::MaxUIOp>(lhs, drawInteger(depth - 1));
    default:
      return arith::SelectOp::create(builder, loc, draw(depth - 1), lhs,
                                     drawInteger(depth - 1));
    }
  }

  Value draw(int depth) {
    int64_t kind = depth > 0 ? pick(0, 7) : 0;
    if (kind <= 3) {
      auto predicate = static_cast<arith::CmpIPredicate>(pick(0, 9));
      Value lhs = drawInteger(depth), rhs = drawInteger(depth);
      if (is32 && pick(0, 1)) {
        lhs = castToIndex(lhs);
        rhs = castToIndex(rhs);
      }
      return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
    }
    Value lhs = draw(depth - 1);
    if (kind == 7)
      return binary<arith::XOrIOp>(
          lhs,
          arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true)));
    Value rhs = draw(depth - 1);
    return kind == 6 ? binary<arith::OrIOp>(lhs, rhs)
                     : binary<arith::AndIOp>(lhs, rhs);
  }

  //===--------------------------------------------------------------------===//
  // Boxes
  //===--------------------------------------------------------------------===//

  Box drawBox() {
    Box box;
    box.tokens = pick(1, 40);
    box.sequence = pick(0, 3);
    auto drawRange = [&](int64_t (&range)[2], int64_t most) {
      range[0] = pick(0, most - 1);
      range[1] = pick(0, 2) ? pick(range[0], most - 1) : range[0];
    };
    drawRange(box.head, 4);
    drawRange(box.query, box.tokens);
    drawRange(box.token, box.tokens);
    return box;
  }

  RowBox build(const Box &box) {
    code.clear();
    builder.setInsertionPointToEnd(&code);
    auto bounds = [&](const int64_t (&range)[2]) {
      Value lo = b.index(range[0]);
      return IndexBounds{lo, range[0] == range[1] ? lo : b.index(range[1])};
    };
    return {b.index(box.sequence), bounds(box.head), bounds(box.query),
            b.index(box.tokens)};
  }

  int64_t getNumber(Value value) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return constant.getSExtValue();
    fail("bounds are no constants");
    return 0;
  }

  void fail(StringRef what) {
    if (++failures > kMostPrinted)
      return;
    llvm::outs() << "failed: " << what << "\n";
    for (Operation &op : mask->front())
      llvm::outs() << "  " << op << "\n";
  }

  /// Calls `body` with each pair of a row of the box and a token.
  void forPairs(const Box &box, int64_t first, int64_t last,
                function_ref<void(int64_t token, bool isSeen)> body) {
    for (int64_t head = box.head[0]; head <= box.head[1]; ++head)
      for (int64_t query = box.query[0]; query <= box.query[1]; ++query)
        for (int64_t token = first; token <= last; ++token)
          body(token,
               interpreter.run(*mask, {box.sequence, head, query, token}));
  }

  void check(const Box &box) {
    RowBox rows = build(box);
    AdmittedTokens tokens = computeTokens(b, *mask, rows);
    int64_t from = getNumber(tokens.any.from), to = getNumber(tokens.any.to);
    int64_t allFrom = getNumber(tokens.all.from),
            allTo = getNumber(tokens.all.to);
    tight += to - from < box.tokens;
    shared += allFrom < allTo;
    bool isSound = true;
    forPairs(box, 0, box.tokens - 1, [&](int64_t token, bool isSeen) {
      if (isSeen)
        isSound &= from <= token && token < to;
      else
        isSound &= token < allFrom || allTo <= token;
    });
    if (!isSound)
      fail("tokens");
    Value lo = b.index(box.token[0]);
    AdmittedPairs pairs = computePairs(
        b, *mask, rows,
        {lo, box.token[0] == box.token[1] ? lo : b.index(box.token[1])});
    bool any = getNumber(pairs.any), all = getNumber(pairs.all);
    forPairs(box, box.token[0], box.token[1],
             [&](int64_t, bool isSeen) { isSound &= isSeen ? any : !all; });
    if (!isSound)
      fail("pairs");
  }

  //===--------------------------------------------------------------------===//
  // Exact bounds
  //===--------------------------------------------------------------------===//

  /// Bounds of a causal mask with a window or chunks of 8 tokens, in all boxes
  /// of 40 tokens.
  void checkExact() {
    int64_t count = 0;
    for (bool hasChunks : {false, true}) {
      begin();
      Value query = integers[2], token = integers[3], eight = number(8);
      Value condition = compare(arith::CmpIPredicate::sle, token, query);
      condition = binary<arith::AndIOp>(
          condition, hasChunks ? compare(arith::CmpIPredicate::eq,
                                         binary<arith::DivUIOp>(token, eight),
                                         binary<arith::DivUIOp>(query, eight))
                               : compare(arith::CmpIPredicate::sgt, token,
                                         binary<arith::SubIOp>(query, eight)));
      YieldOp::create(builder, loc, condition);
      for (int64_t lo = 0; lo < 40; ++lo)
        for (int64_t hi = lo; hi < 40; ++hi, ++count) {
          auto getBegin = [&](int64_t row) {
            return hasChunks ? row / 8 * 8 : std::max<int64_t>(row - 7, 0);
          };
          AdmittedTokens tokens =
              computeTokens(b, *mask, build({40, 0, {0, 3}, {lo, hi}, {0, 0}}));
          int64_t end = hasChunks ? std::min(lo + 1, lo / 8 * 8 + 8) : lo + 1;
          if (getNumber(tokens.any.from) != getBegin(lo) ||
              getNumber(tokens.any.to) != hi + 1 ||
              getNumber(tokens.all.from) != getBegin(hi) ||
              getNumber(tokens.all.to) != end)
            fail("exact bounds");
        }
    }
    llvm::outs() << "exact: " << count << "\n";
  }

  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }

  OpBuilder builder;
  Location loc;
  IndexBuilder b;
  std::mt19937 random{7};
  std::unique_ptr<Region> mask;
  bool is32 = false;
  SmallVector<Value> integers;
  /// The code of bounds.
  Block code;
  Interpreter interpreter;
  int64_t tight = 0, shared = 0, failures = 0;
};

} // namespace

int main() {
  DialectRegistry registry;
  kvcache::registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  return Checker(&context).run();
}
