# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source of attention over a paged cache, on the CPU.

One pass over the keys for a block of query rows: the rows of all heads that share a
head of the cache, of one or several tokens. Keys and values are converted to f32 once
for all rows of the block, TILE tokens at a time. Softmax is online and in base 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

TILE = 8
"""Tokens whose scores one vector has."""

_LANES = 16
_BLOCK_BYTES = 1 << 16  # of the queries and sums of a block of rows
_LOG2E = math.log2(math.e)


@dataclass(frozen=True)
class AttentionSpec:
    """What is fixed when attention is compiled.

    Attributes:
        query_heads: A multiple of the heads of the cache.
        causal: Whether a query sees no later tokens.
        window: How many tokens a query sees at most, itself included; None for all.
        soft_cap: Scores are ``soft_cap * tanh(score / soft_cap)``; None for none.
        sinks: Whether each head has a logit that joins the denominator.
        value_dim: Elements of a row of values that are read.
    """

    query_heads: int
    causal: bool
    window: int | None
    soft_cap: float | None
    sinks: bool
    value_dim: int


@dataclass(frozen=True)
class CacheSpec:
    """What the source says of a cache."""

    heads: int
    head_dim: int
    view_type: str
    granularity: int | None
    is_mla: bool


def attention_arguments(spec: AttentionSpec, cache: CacheSpec, dtype: str) -> str:
    """The arguments behind those of the collection and the layer."""
    heads = spec.query_heads
    sinks = f", %sinks: memref<{heads}xf32>" if spec.sinks else ""
    return (
        f"%q: {_dense(heads, cache.head_dim, dtype)}, %rows: memref<?xi32>,\n"
        f"    %out: {_dense(heads, spec.value_dim, dtype)}, %lse: memref<?x{heads}xf32>,"
        f" %scale: f32{sinks}"
    )


def attention_body(spec: AttentionSpec, cache: CacheSpec, dtype: str) -> str:
    """The body of a function with the views ``%key_view`` and ``%value_view``."""
    return _Builder(spec, cache, dtype).build()


def attention_helpers() -> str:
    """The functions that the body calls."""
    vector = f"vector<{TILE}xf32>"
    return "\n".join(
        [
            _exp2_function("exp2", "f32", "i32"),
            _exp2_function("exp2_of_scores", vector, f"vector<{TILE}xi32>"),
            _tanh_function("tanh_of_scores", vector),
        ]
    )


def _dense(heads: int, width: int, dtype: str) -> str:
    return f"memref<?x{heads}x{width}x{dtype}>"


class _Builder:
    def __init__(self, spec: AttentionSpec, cache: CacheSpec, dtype: str) -> None:
        self.spec, self.cache, self.dtype = spec, cache, dtype
        self.group = spec.query_heads // cache.heads
        width = 4 * (cache.head_dim + spec.value_dim)
        self.block = max(_BLOCK_BYTES // width, 1)
        self.q_type = _dense(spec.query_heads, cache.head_dim, dtype)
        self.out_type = _dense(spec.query_heads, spec.value_dim, dtype)
        self.key_lanes = self._lanes(cache.head_dim)
        self.value_lanes = self._lanes(spec.value_dim)
        self.queries = f"memref<{self.block}x{cache.head_dim}xf32>"
        self.sums = f"memref<{self.block}x{spec.value_dim}xf32>"
        self.scalars = f"memref<{self.block}xf32>"
        self.key_tile = f"memref<{TILE}x{cache.head_dim}xf32>"
        self.value_tile = self.key_tile
        if not cache.is_mla:
            self.value_tile = f"memref<{TILE}x{spec.value_dim}xf32>"

    def _lanes(self, width: int) -> int:
        return math.gcd(_LANES, width, self.cache.granularity or _LANES)

    def build(self) -> str:
        cache, spec = self.cache, self.spec
        sizes = sorted(
            {
                0,
                1,
                TILE,
                self.block,
                self.group,
                cache.heads,
                cache.head_dim,
                spec.value_dim,
            }
            | {self.key_lanes, self.value_lanes, spec.window or 0}
        )
        tiles = [f"%key_tile = memref.alloca() {{alignment = 64}} : {self.key_tile}"]
        if not cache.is_mla:
            tiles += [
                f"%value_tile = memref.alloca() {{alignment = 64}} : {self.value_tile}"
            ]
        return "\n  ".join(
            [
                *(f"%c{size} = arith.constant {size} : index" for size in sizes),
                "%zero = arith.constant 0.0 : f32",
                "%one = arith.constant 1.0 : f32",
                "%infinity = arith.constant 0xFF800000 : f32",
                "%lowest = arith.constant -1.0e30 : f32",
                f"%log2e = arith.constant {_LOG2E!r} : f32",
                f"%ln2 = arith.constant {math.log(2)!r} : f32",
                f"%queries = memref.alloca() {{alignment = 64}} : {self.queries}",
                f"%sums = memref.alloca() {{alignment = 64}} : {self.sums}",
                f"%maxima = memref.alloca() : {self.scalars}",
                f"%totals = memref.alloca() : {self.scalars}",
                *tiles,
                *self._factor(),
                "%batch = memref.dim %lengths, %c0 : memref<?xi32>",
                "%lse_rows = memref.dim %lse, %c0 : memref<?x"
                f"{spec.query_heads}xf32>",
                self._sequences(),
            ]
        )

    def _factor(self) -> list[str]:
        """What queries are multiplied by: scores are in base 2, or of a tanh."""
        if self.spec.soft_cap is None:
            return ["%factor = arith.mulf %scale, %log2e : f32"]
        return [
            f"%cap = arith.constant {float(self.spec.soft_cap)!r} : f32",
            "%factor = arith.divf %scale, %cap : f32",
            "%cap_log2 = arith.mulf %cap, %log2e : f32",
            f"%caps = vector.broadcast %cap_log2 : f32 to vector<{TILE}xf32>",
        ]

    def _sequences(self) -> str:
        return f"""scf.for %b = %c0 to %batch step %c1 {{
    %b_next = arith.addi %b, %c1 : index
    %begin_i32 = memref.load %rows[%b] : memref<?xi32>
    %end_i32 = memref.load %rows[%b_next] : memref<?xi32>
    %begin = arith.index_castui %begin_i32 : i32 to index
    %end = arith.index_castui %end_i32 : i32 to index
    %new = arith.subi %end, %begin : index
    %length = kvcache.cache_length %key_view[%b] : {self.cache.view_type}
    %all = arith.addi %length, %new : index
    %all_rows = arith.muli %new, %c{self.group} : index
    scf.for %h = %c0 to %c{self.cache.heads} step %c1 {{
      scf.for %r0 = %c0 to %all_rows step %c{self.block} {{
        %left = arith.subi %all_rows, %r0 : index
        %count = arith.minsi %left, %c{self.block} : index
        %after = arith.addi %r0, %count : index
        %r_last = arith.subi %after, %c1 : index
        %i_first = arith.divui %r0, %c{self.group} : index
        %i_last = arith.divui %r_last, %c{self.group} : index
        {self._seen("first", "i_first")}
        {self._seen("last", "i_last")}
        {self._begin_rows()}
        %last_token = arith.subi {self._to("last")}, %c1 : index
        scf.for %t0 = {self._from("first")} to {self._to("last")} step %c{TILE} {{
          {self._load_tile("key")}
          {"" if self.cache.is_mla else self._load_tile("value")}
          {self._add_tile()}
        }}
        {self._end_rows()}
      }}
    }}
  }}"""

    def _to(self, name: str) -> str:
        return f"%{name}_next" if self.spec.causal else "%all"

    def _from(self, name: str) -> str:
        return f"%{name}_from" if self.spec.window else "%c0"

    def _seen(self, name: str, token: str) -> str:
        """Which tokens a new token sees: ``_from`` to ``_to`` of this name."""
        lines = [
            f"%{name}_own = arith.addi %length, %{token} : index",
            f"%{name}_next = arith.addi %{name}_own, %c1 : index",
        ]
        if self.spec.window:
            lines += [
                f"%{name}_behind = arith.subi %{name}_next, %c{self.spec.window} : index",
                f"%{name}_from = arith.maxsi %{name}_behind, %c0 : index",
            ]
        return "\n        ".join(lines)

    def _row(self) -> str:
        """Where a row of the block is among queries and outputs."""
        return f"""%row_of_all = arith.addi %r0, %r : index
          %i = arith.divui %row_of_all, %c{self.group} : index
          %g = arith.remui %row_of_all, %c{self.group} : index
          %row = arith.addi %begin, %i : index
          %first_head = arith.muli %h, %c{self.group} : index
          %head = arith.addi %first_head, %g : index"""

    def _begin_rows(self) -> str:
        n, m = self.key_lanes, self.value_lanes
        q = f"vector<{n}x{self.dtype}>"
        raw, convert = "%x", ""
        if self.dtype != "f32":
            raw, convert = "%raw", f"%x = arith.extf %raw : {q} to vector<{n}xf32>"
        return f"""scf.for %r = %c0 to %count step %c1 {{
          {self._row()}
          %factors = vector.broadcast %factor : f32 to vector<{n}xf32>
          scf.for %d = %c0 to %c{self.cache.head_dim} step %c{n} {{
            {raw} = vector.load %q[%row, %head, %d] : {self.q_type}, {q}
            {convert}
            %scaled = arith.mulf %x, %factors : vector<{n}xf32>
            vector.store %scaled, %queries[%r, %d] : {self.queries}, vector<{n}xf32>
          }}
          %zeros = arith.constant dense<0.0> : vector<{m}xf32>
          scf.for %d = %c0 to %c{self.spec.value_dim} step %c{m} {{
            vector.store %zeros, %sums[%r, %d] : {self.sums}, vector<{m}xf32>
          }}
          memref.store %lowest, %maxima[%r] : {self.scalars}
          memref.store %zero, %totals[%r] : {self.scalars}
        }}"""

    def _load_tile(self, role: str) -> str:
        width, n, tile = {
            "key": (self.cache.head_dim, self.key_lanes, self.key_tile),
            "value": (self.spec.value_dim, self.value_lanes, self.value_tile),
        }[role]
        return f"""scf.for %j = %c0 to %c{TILE} step %c1 {{
            %t_j = arith.addi %t0, %j : index
            %t = arith.minsi %t_j, %last_token : index
            scf.for %d = %c0 to %c{width} step %c{n} {{
              %x = kvcache.load %{role}_view[%b, %h, %t, %d] : {self.cache.view_type} -> vector<{n}xf32>
              vector.store %x, %{role}_tile[%j, %d] : {tile}, vector<{n}xf32>
            }}
          }}"""

    def _add_tile(self) -> str:
        return f"""scf.for %r = %c0 to %count step %c1 {{
            {self._row()}
            {self._seen("row", "i")}
            %t_end = arith.addi %t0, %c{TILE} : index
            %begins = arith.cmpi slt, %t0, {self._to("row")} : index
            %ends = arith.cmpi sgt, %t_end, {self._from("row")} : index
            %any = arith.andi %begins, %ends : i1
            scf.if %any {{
              {self._scores()}
              {self._weights()}
              {self._add_values()}
            }}
          }}"""

    def _scores(self) -> str:
        n = self.key_lanes
        vector = f"vector<{n}xf32>"
        tokens = range(TILE)
        lines = [f"%none = arith.constant dense<0.0> : {vector}"]
        lines += [f"%j{j} = arith.constant {j} : index" for j in tokens]
        carried = ", ".join(f"%p{j} = %none" for j in tokens)
        lines += [
            f"%dots:{TILE} = scf.for %d = %c0 to %c{self.cache.head_dim} step %c{n}",
            f"    iter_args({carried}) -> ({', '.join([vector] * TILE)}) {{",
            f"  %x = vector.load %queries[%r, %d] : {self.queries}, {vector}",
        ]
        for j in tokens:
            lines += [
                f"  %k{j} = vector.load %key_tile[%j{j}, %d] : {self.key_tile}, {vector}",
                f"  %s{j} = math.fma %x, %k{j}, %p{j} : {vector}",
            ]
        sums = ", ".join(f"%s{j}" for j in tokens)
        lines += [f"  scf.yield {sums} : {', '.join([vector] * TILE)}", "}"]
        lines += [
            f"%dot{j} = vector.reduction <add>, %dots#{j} fastmath<reassoc> : {vector} into f32"
            for j in tokens
        ]
        scores = f"vector<{TILE}xf32>"
        dots = ", ".join(f"%dot{j}" for j in tokens)
        if self.spec.soft_cap is None:
            lines += [f"%scores = vector.from_elements {dots} : {scores}"]
        else:
            lines += [
                f"%products = vector.from_elements {dots} : {scores}",
                f"%bent = func.call @tanh_of_scores(%products) : ({scores}) -> {scores}",
                f"%scores = arith.mulf %bent, %caps : {scores}",
            ]
        return "\n              ".join(lines)

    def _weights(self) -> str:
        scores, index = f"vector<{TILE}xf32>", f"vector<{TILE}xindex>"
        flags = f"vector<{TILE}xi1>"
        return f"""%steps = arith.constant dense<[{', '.join(map(str, range(TILE)))}]> : {index}
              %t0s = vector.broadcast %t0 : index to {index}
              %tokens = arith.addi %t0s, %steps : {index}
              %froms = vector.broadcast {self._from("row")} : index to {index}
              %tos = vector.broadcast {self._to("row")} : index to {index}
              %is_behind = arith.cmpi sge, %tokens, %froms : {index}
              %is_before = arith.cmpi slt, %tokens, %tos : {index}
              %is_seen = arith.andi %is_behind, %is_before : {flags}
              %lows = vector.broadcast %lowest : f32 to {scores}
              %seen = arith.select %is_seen, %scores, %lows : {flags}, {scores}
              %old_max = memref.load %maxima[%r] : {self.scalars}
              %old_total = memref.load %totals[%r] : {self.scalars}
              %tile_max = vector.reduction <maxnumf>, %seen : {scores} into f32
              %max = arith.maxnumf %old_max, %tile_max : f32
              %change = arith.subf %old_max, %max : f32
              %shrink = func.call @exp2(%change) : (f32) -> f32
              %maxes = vector.broadcast %max : f32 to {scores}
              %distances = arith.subf %seen, %maxes : {scores}
              %powers = func.call @exp2_of_scores(%distances) : ({scores}) -> {scores}
              %nothing = arith.constant dense<0.0> : {scores}
              %weights = arith.select %is_seen, %powers, %nothing : {flags}, {scores}
              %tile_total = vector.reduction <add>, %weights fastmath<reassoc> : {scores} into f32
              %total = math.fma %old_total, %shrink, %tile_total : f32
              memref.store %max, %maxima[%r] : {self.scalars}
              memref.store %total, %totals[%r] : {self.scalars}"""

    def _add_values(self) -> str:
        m = self.value_lanes
        vector = f"vector<{m}xf32>"
        tile = "key_tile" if self.cache.is_mla else "value_tile"
        tokens = range(TILE)
        lines = [f"%shrinks = vector.broadcast %shrink : f32 to {vector}"]
        for j in tokens:
            lines += [
                f"%weight{j} = vector.extract %weights[{j}] : f32 from vector<{TILE}xf32>",
                f"%w{j} = vector.broadcast %weight{j} : f32 to {vector}",
            ]
        lines += [
            f"scf.for %d = %c0 to %c{self.spec.value_dim} step %c{m} {{",
            f"  %old = vector.load %sums[%r, %d] : {self.sums}, {vector}",
            f"  %a0 = arith.mulf %old, %shrinks : {vector}",
        ]
        for j in tokens:
            lines += [
                f"  %v{j} = vector.load %{tile}[%j{j}, %d] : {self.value_tile}, {vector}",
                f"  %a{j + 1} = math.fma %w{j}, %v{j}, %a{j} : {vector}",
            ]
        lines += [
            f"  vector.store %a{TILE}, %sums[%r, %d] : {self.sums}, {vector}",
            "}",
        ]
        return "\n              ".join(lines)

    def _end_rows(self) -> str:
        m = self.value_lanes
        vector, out = f"vector<{m}xf32>", f"vector<{m}x{self.dtype}>"
        rounded, convert = "%mean", ""
        if self.dtype != "f32":
            rounded, convert = "%y", f"%y = arith.truncf %mean : {vector} to {out}"
        lse = f"memref<?x{self.spec.query_heads}xf32>"
        return f"""scf.for %r = %c0 to %count step %c1 {{
          {self._row()}
          {self._denominator()}
          %keeps = vector.broadcast %kept : f32 to {vector}
          scf.for %d = %c0 to %c{self.spec.value_dim} step %c{m} {{
            %sum = vector.load %sums[%r, %d] : {self.sums}, {vector}
            %mean = arith.mulf %sum, %keeps : {vector}
            {convert}
            vector.store {rounded}, %out[%row, %head, %d] : {self.out_type}, {out}
          }}
          %has_lse = arith.cmpi slt, %row, %lse_rows : index
          scf.if %has_lse {{
            %log_total = math.log2 %total : f32
            %log2_sum = arith.addf %max, %log_total : f32
            %log_sum = arith.mulf %log2_sum, %ln2 : f32
            %result = arith.select %is_empty, %infinity, %log_sum : f32
            memref.store %result, %lse[%row, %head] : {lse}
          }}
        }}"""

    def _denominator(self) -> str:
        """``%total``, relative to ``%max``, and what the sums are multiplied by."""
        names = ("seen_max", "seen_total") if self.spec.sinks else ("max", "total")
        lines = [
            f"%{names[0]} = memref.load %maxima[%r] : {self.scalars}",
            f"%{names[1]} = memref.load %totals[%r] : {self.scalars}",
        ]
        numerator = "%one"
        if self.spec.sinks:
            numerator = "%shrink"
            lines += [
                f"%sink = memref.load %sinks[%head] : memref<{self.spec.query_heads}xf32>",
                "%sink_log2 = arith.mulf %sink, %log2e : f32",
                "%max = arith.maxnumf %seen_max, %sink_log2 : f32",
                "%change = arith.subf %seen_max, %max : f32",
                "%shrink = func.call @exp2(%change) : (f32) -> f32",
                "%sink_distance = arith.subf %sink_log2, %max : f32",
                "%sink_weight = func.call @exp2(%sink_distance) : (f32) -> f32",
                "%total = math.fma %seen_total, %shrink, %sink_weight : f32",
            ]
        lines += [
            "%is_empty = arith.cmpf oeq, %total, %zero : f32",
            f"%quotient = arith.divf {numerator}, %total : f32",
            "%kept = arith.select %is_empty, %zero, %quotient : f32",
        ]
        return "\n          ".join(lines)


def _exp2_function(name: str, type_: str, bits: str) -> str:
    """2 to a power that is not positive; below -126 it is 2^-126.

    The series of e^(f ln 2) for |f| <= 0.5 is within 1 ulp.
    """

    def constant(name: str, value: float) -> str:
        written = f"{value!r}" if type_ == "f32" else f"dense<{value!r}>"
        return f"  %{name} = arith.constant {written} : {type_}"

    terms = [math.log(2) ** k / math.factorial(k) for k in range(8)]
    flags = "" if type_ == "f32" else f"vector<{TILE}xi1>, "
    shift, bias = ((f"{n}" if type_ == "f32" else f"dense<{n}>") for n in (23, 127))
    lines = [
        f"func.func private @{name}(%x: {type_}) -> {type_} {{",
        constant("least", -126.0),
        *(constant(f"c{k}", term) for k, term in enumerate(terms)),
        f"  %shift = arith.constant {shift} : {bits}",
        f"  %bias = arith.constant {bias} : {bits}",
        f"  %above = arith.maxnumf %x, %least : {type_}",
        f"  %whole = math.roundeven %above : {type_}",
        f"  %f = arith.subf %above, %whole : {type_}",
        f"  %p6 = math.fma %c7, %f, %c6 : {type_}",
        *(
            f"  %p{k} = math.fma %p{k + 1}, %f, %c{k} : {type_}"
            for k in range(5, -1, -1)
        ),
        f"  %n = arith.fptosi %whole : {type_} to {bits}",
        f"  %exponent = arith.addi %n, %bias : {bits}",
        f"  %scale_bits = arith.shli %exponent, %shift : {bits}",
        f"  %power = arith.bitcast %scale_bits : {bits} to {type_}",
        f"  %number = arith.mulf %p0, %power : {type_}",
        f"  %is_nan = arith.cmpf uno, %x, %x : {type_}",
        f"  %y = arith.select %is_nan, %x, %number : {flags}{type_}",
        f"  return %y : {type_}",
        "}",
    ]
    return "\n".join(lines)


def _tanh_function(name: str, type_: str) -> str:
    """tanh x is (1 - e) / (1 + e) with e = 2^(-2 |x| log2 e), with the sign of x."""
    return f"""func.func private @{name}(%x: {type_}) -> {type_} {{
  %one = arith.constant dense<1.0> : {type_}
  %factor = arith.constant dense<{-2 * _LOG2E!r}> : {type_}
  %size = math.absf %x : {type_}
  %power = arith.mulf %size, %factor : {type_}
  %e = func.call @exp2_of_scores(%power) : ({type_}) -> {type_}
  %above = arith.subf %one, %e : {type_}
  %below = arith.addf %one, %e : {type_}
  %ratio = arith.divf %above, %below : {type_}
  %y = math.copysign %ratio, %x : {type_}
  return %y : {type_}
}}"""
