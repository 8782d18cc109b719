"""Reference cases: a cache in memory, questions about it, and their answers.

`data/oracle_cases.json` holds the answers of the released KV-cache types of Modular MAX on host
memory. A case describes a cache (`kind`, `dtype`, `num_heads`, ...), whose allocation of `nelem`
elements is filled with `((7i + 3) mod 15) - 7`. `expect` lists the answer to each question. The
`nscale` scales of a quantized cache are powers of two or thousandths, depending on `scale_fill`.
Comments below mark differences between our definition and the reference.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import devices
import numpy as np

from kvcache import dtypes

DATA = Path(__file__).parent / "answers" / "oracle_cases.json"


@dataclass
class Question:
    """A function of the module, its arguments after the cache's, and the answer."""

    function: str
    arguments: tuple[Any, ...]
    answer: Any


@dataclass
class Case:
    """A cache, and the module with a function for each question about it.

    With ``is_open``, the page size of a paged cache is only known at run time.
    """

    facts: dict[str, Any]
    is_open: bool = False
    functions: dict[str, str] = field(default_factory=dict)
    programs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        facts = self.facts
        self.is_paged = facts["kind"] == "paged"
        self.num_roles = 1 if facts["is_mla"] else 2
        self.block_tokens = facts["page_size" if self.is_paged else "max_seq"]
        self.row = facts["num_heads"] * facts["head_size"]
        self.dtype = dtypes.dtype(facts["dtype"])
        self.element = dtypes.mlir_name(self.dtype)
        layer = self.block_tokens * self.row
        packed = self.num_roles * facts["num_layers"] * layer
        given = facts.get("page_stride", -1)
        self.strides = (
            packed if given < 0 else given,
            facts["num_layers"] * layer,
            layer,
            self.row,
            facts["head_size"],
            1,
        )
        self.is_packed = self.strides[0] == packed
        self.is_quantized = bool(facts.get("scale_dtype"))
        if self.is_quantized:
            self._describe_scales()

    def _describe_scales(self):
        facts = self.facts
        self.groups = -(-facts["head_size"] // facts["granularity"])
        self.scale_dtype = dtypes.dtype(facts["scale_dtype"])
        self.scale = dtypes.mlir_name(self.scale_dtype)
        row = facts["num_heads"] * self.groups
        layer = self.block_tokens * row
        packed = self.num_roles * facts["num_layers"] * layer
        given = facts["scales_page_stride"]
        self.scale_strides = (
            packed if given < 0 else given,
            facts["num_layers"] * layer,
            layer,
            row,
            self.groups,
            1,
        )

    def __str__(self):
        facts = self.facts
        shape = f"h{facts['num_heads']}e{facts['head_size']}p{self.block_tokens}"
        mla = "-mla" if facts["is_mla"] else ""
        padded = "" if self.is_packed else "-padded"
        kind = f"{facts['id']}-{facts['kind']}-{facts['dtype']}"
        kind += "-open" if self.is_open else ""
        if self.is_quantized:
            kind += f"-{facts['scale_dtype']}g{facts['granularity']}"
        return f"{kind}-{shape}{mla}{padded}"

    # Memory

    def allocate(self):
        """The whole allocation, flat."""
        index = np.arange(self.facts["nelem"], dtype=np.int64)
        return ((index * 7 + 3) % 15 - 7).astype(np.float32).astype(self.dtype)

    def allocate_scales(self):
        """The whole allocation of the scales, flat; None for a plain cache."""
        if not self.is_quantized:
            return None
        index = np.arange(self.facts["nscale"], dtype=np.int64)
        if self.facts["scale_fill"] == "pow2":
            values = np.exp2(((index * 5 + 1) % 9 - 4).astype(np.float32))
        else:
            values = (index % 97 + 1).astype(np.float32) * np.float32(0.001)
        return values.astype(self.scale_dtype)

    def cache_arguments(self, memory, scales=None):
        """The first arguments of every function, with blocks in ``memory``."""
        facts = self.facts
        shape = (
            facts["num_blocks"],
            self.num_roles,
            facts["num_layers"],
            self.block_tokens,
            facts["num_heads"],
            facts["head_size"],
        )
        strides = [stride * memory.itemsize for stride in self.strides]
        return (
            np.lib.stride_tricks.as_strided(memory, shape, strides),
            np.array(facts["cache_lengths"], np.uint32),
            np.array(facts["lut"], np.uint32),
            facts["max_seq_length"],
            facts["max_cache_length"],
            *(self._scale_arguments(scales, shape) if self.is_quantized else ()),
        )

    def _scale_arguments(self, scales, shape):
        pages = scales.size // self.scale_strides[0]
        strides = [stride * scales.itemsize for stride in self.scale_strides]
        shape = (pages, *shape[1:-1], self.groups)
        yield np.lib.stride_tricks.as_strided(scales, shape, strides)
        if self.has_scales_table:
            yield np.array(self.facts["scales_lut"], np.uint32)

    @property
    def has_scales_table(self):
        return self.facts.get("scales_lut") is not None

    # Module

    @property
    def page_size(self):
        """The page size in the types of a paged cache."""
        return "?" if self.is_open else self.block_tokens

    @property
    def blocks_type(self):
        heads, head_size = self.facts["num_heads"], self.facts["head_size"]
        tokens = self.page_size if self.is_paged else "?"
        sizes = f"?x{self.num_roles}x?x{tokens}x{heads}x{head_size}"
        layout = ""
        if not (self.is_packed and self.is_paged):
            block = "?" if tokens == "?" else tokens * self.row
            layout = f", strided<[?, ?, {block}, {self.row}, {head_size}, 1]>"
        return f"memref<{sizes}x{self.element}{layout}>"

    @property
    def scales_type(self):
        heads, tokens = self.facts["num_heads"], self.page_size
        strides = ", ".join(map(str, self.scale_strides[3:]))
        strides = f"{'?' if self.is_open else self.scale_strides[2]}, {strides}"
        sizes = f"?x{self.num_roles}x?x{tokens}x{heads}x{self.groups}x{self.scale}"
        return f"memref<{sizes}, strided<[?, ?, {strides}]>>"

    @property
    def cache_type(self):
        return f"!kvcache.{self.facts['kind']}<{self._parameters}>"

    @property
    def rows_page_size(self):
        return f", page_size = {self.page_size}" if self.is_paged else ""

    @property
    def _parameters(self):
        facts = self.facts
        mla = ", is_mla = true" if facts["is_mla"] else ""
        parameters = (
            f"{self.element}, #kvcache.params<num_heads = {facts['num_heads']}, "
            f"head_size = {facts['head_size']}{mla}>{self.rows_page_size}"
        )
        if self.is_quantized:
            parameters += (
                f", scale = {self.scale}, granularity = {facts['granularity']}"
            )
        return parameters

    @property
    def _tensors(self):
        """The parameters after the maxima: keyword, name and type."""
        if self.is_quantized:
            yield "scales", "scales", self.scales_type
        if self.has_scales_table:
            yield "lookup", "scales_table", "memref<?x?xi32>"

    def add(self, name, parameters, body, results=""):
        """Adds a function over the view %k; its body ends with a return."""
        if name in self.functions:
            return name
        kind, facts = self.facts["kind"], self.facts
        table = "memref<?x?xi32>" if self.is_paged else "memref<?xi32>"
        collection = f"!kvcache.{kind}_collection<{self._parameters}>"
        role = "value" if facts["kv_idx"] else "key"
        arguments = "".join(f", %{name}: {type}" for _, name, type in self._tensors)
        arguments += "".join(f", %{parameter}" for parameter in parameters)
        operands = "".join(f" {word} %{name}" for word, name, _ in self._tensors)
        types = "".join(f", {type}" for _, _, type in self._tensors)
        self.functions[name] = f"""
func.func @{name}(%blocks: {self.blocks_type}, %lengths: memref<?xi32>, %table: {table},
                  %max_seq: i32, %max_cache: i32{arguments}) -> ({results}) {{
  %layer = arith.constant {facts["layer_idx"]} : index
  %c = kvcache.{kind}_collection %blocks, %lengths, %table, %max_seq, %max_cache{operands}
         : {self.blocks_type}, memref<?xi32>, {table}{types} -> {collection}
  %k = kvcache.{kind}_view {role} %c[%layer] : {collection}
{body}
}}
"""
        return name

    def module(self):
        return "".join(self.functions.values())

    def add_query(self, op, indices="", results="index"):
        """Adds a function that returns the result of an op on the cache."""
        names = [f"%{index}" for index in indices]
        operands = f"[{', '.join(names)}]" if names else ""
        values = [f"%r{i}" for i in range(len(results.split(", ")))]
        body = f"""  {", ".join(values)} = kvcache.{op} %k{operands} : {self.cache_type}
  return {", ".join(values)} : {results}"""
        return self.add(op, [f"{index}: index" for index in indices], body, results)

    # Questions

    @property
    def kinds(self):
        """All kinds of questions."""
        kinds = "queries tiles rows loads stores"
        quantized_kinds = " scale_queries scale_tiles raw_loads scale_stores"
        return kinds + (quantized_kinds if self.is_quantized else "")

    def questions(self, kinds):
        """The questions of some kinds, with their arguments."""
        return [q for kind in kinds.split() for q in getattr(self, kind)()]

    def compile(self, target):
        """Compiles the functions of all questions, once for each target."""
        if target not in self.programs:
            self.questions(self.kinds)
            # Other tests run optimized code, which compiles more slowly.
            self.programs[target] = devices.jit(self.module(), target, opt_level=0)
        return self.programs[target]

    def ask(self, kinds, memory, scales=None, target="cpu"):
        """Yields each question of some kinds with the compiled function's result."""
        program = self.compile(target)
        cache = self.cache_arguments(memory, scales)
        for question in self.questions(kinds):
            yield question, program.call(question.function, *cache, *question.arguments)

    def queries(self):
        """Questions about numbers of the view: sizes, lengths, rows, coordinates."""
        expect = self.facts["expect"]
        for op in ("num_kv_rows", "max_prompt_length", "max_context_length"):
            yield Question(self.add_query(op), (), expect[op])
        yield Question(
            self.add_query("empty_cache", results="i1"), (), expect["empty_cache"]
        )
        for batch, length in enumerate(expect["cache_length"]):
            yield Question(self.add_query("cache_length", "b"), (batch,), length)
        for batch, token, row in expect["row_idx"]:
            yield Question(self.add_query("row_index", "bt"), (batch, token), row)
        for encoded, row in expect["get_tma_row"]:
            # Ours forwards a sentinel; the reference calculates with it.
            answer = row if encoded >= 0 else encoded
            yield Question(self.add_query("tma_row", "e"), (encoded,), answer)
        # A continuous cache has no pages, so no coordinates.
        for batch, token, *coordinates in (
            expect["kv_tma_coords"] if self.is_paged else ()
        ):
            name = self.add_query("tma_coords", "bt", "index, index")
            yield Question(name, (batch, token), tuple(coordinates))

    def tiles(self):
        """Questions about the places of elements, counted from the first of the blocks."""
        tile = f"memref<1x1x{self.element}, strided<[{self.row}, 1], offset: ?>>"
        body = f"""
  %tile = kvcache.block_tile %k[%b, %h, %t, %d] : {self.cache_type} -> {tile}"""
        body += self._distance("%tile", tile, "%blocks", self.blocks_type, self.dtype)
        for *indices, offset in self.facts["expect"]["block_paged_offset"]:
            name = self.add("tile_offset", INDICES, body, "index")
            yield Question(name, tuple(indices), offset)

    @staticmethod
    def _distance(window, type, whole, whole_type, dtype):
        """The text that returns the distance of a window from its memory's start, in elements."""
        rank = type.split(", strided")[0].count("x")
        element = type.split(",")[0].rsplit("x", 1)[1]
        return f"""
  %m, %offset, %sizes:{rank}, %strides:{rank} = memref.extract_strided_metadata {window}
         : {type} -> memref<{element}>{", index" * (2 * rank + 1)}
  %window_address = memref.extract_aligned_pointer_as_index {window} : {type} -> index
  %address = memref.extract_aligned_pointer_as_index {whole} : {whole_type} -> index
  %bytes = arith.subi %window_address, %address : index
  %size = arith.constant {dtype.itemsize} : index
  %elements = arith.divui %bytes, %size : index
  %r = arith.addi %elements, %offset : index
  return %r : index"""

    def rows(self):
        """Questions about rows through populate, by offset, and of the first token of each page."""
        for entry in self.facts["expect"].get("populate", []):
            tokens, alignment = entry["BN"], entry["base_alignment"]
            if self.is_open and len(entry["rows"]) > 1:
                continue  # The number of pages is open, too.
            rows = f"!kvcache.row_indices<rows = {tokens}{self.rows_page_size}>"
            body = f"""
  %rows = kvcache.populate %k[%b, %base] {{base_alignment = {alignment}}}
            : {self.cache_type} -> {rows}
  %r = kvcache.get_row %rows[%o] : {rows}
  return %r : index"""
            name = self.add(
                f"rows_{tokens}_{alignment}",
                ["b: index", "base: index", "o: index"],
                body,
                "index",
            )
            pages = (
                (i * entry["eff_page"], row) for i, row in enumerate(entry["rows"])
            )
            for offset, row in (*entry["get_row"], *pages):
                yield Question(
                    name, (entry["batch"], entry["base_kv_row"], offset), row
                )

    def loads(self):
        """The last argument receives the answer."""
        expect = self.facts["expect"]
        for *indices, values in expect.get("load", []):
            result = dtypes.dtype(expect["load_dtype"])
            vector = f"{len(values)}x{dtypes.mlir_name(result)}"
            body = f"""
  %v = kvcache.load %k[%b, %h, %t, %d] : {self.cache_type} -> vector<{vector}>
  %c0 = arith.constant 0 : index
  vector.store %v, %o[%c0] : memref<{vector}>, vector<{vector}>
  return"""
            name = self.add("load", [*INDICES, f"o: memref<{vector}>"], body)
            output = np.zeros(len(values), result)
            yield Question(name, (*indices, output), values)

    def stores(self):
        """The answer is which elements of the allocation a store changes, in order."""
        for store in self.facts["expect"].get("store", []):
            values = np.array(store["values"], np.float32).astype(self.dtype)
            vector = f"{len(values)}x{self.element}"
            body = f"""
  %c0 = arith.constant 0 : index
  %v = vector.load %i[%c0] : memref<{vector}>, vector<{vector}>
  kvcache.store %v, %k[%b, %h, %t, %d] : vector<{vector}>, {self.cache_type}
  return"""
            parameters = [*INDICES, f"i: memref<{vector}>"]
            name = self.add(f"store_{len(values)}", parameters, body)
            indices = (store[key] for key in ("bs", "head", "tok", "dim"))
            yield Question(name, (*indices, values), store["changed"])

    # Questions about a quantized cache

    def scale_queries(self):
        """Questions about rows and coordinates of the scales."""
        expect = self.facts["expect"]
        name = self.add_query("num_scale_rows")
        yield Question(name, (), expect["num_scale_rows"])
        for *indices, row in expect["scale_row_idx"]:
            yield Question(self.add_query("scale_row_index", "bt"), tuple(indices), row)
        for batch, token, *coordinates in expect["scale_tma_coords"]:
            name = self.add_query("scale_tma_coords", "bt", "index, index")
            yield Question(name, (batch, token), tuple(coordinates))

    def scale_tiles(self):
        """Questions about the places of scales, counted from the first of all."""
        facts, expect = self.facts, self.facts["expect"]
        row = facts["num_heads"] * self.groups
        tile = f"memref<1x1x{self.scale}, strided<[{row}, 1], offset: ?>>"
        body = f"""
  %tile = kvcache.scales_block_tile %k[%b, %h, %t, %d] : {self.cache_type} -> {tile}"""
        whole = ("%scales", self.scales_type, self.scale_dtype)
        body += self._distance("%tile", tile, *whole)
        for *indices, offset in expect["scales_offset"]:
            name = self.add("scale_offset", INDICES, body, "index")
            yield Question(name, tuple(indices), offset)
        sizes = f"?x{self.page_size}x{facts['num_heads']}x{self.groups}"
        strides = f"[?, {row}, {self.groups}, 1]"
        window = f"memref<{sizes}x{self.scale}, strided<{strides}, offset: ?>>"
        body = f"""
  %window = kvcache.scales_base %k : {self.cache_type}"""
        body += self._distance("%window", window, *whole)
        name = self.add("scales_base", [], body, "index")
        yield Question(name, (), expect["scales_raw_offset"])

    def raw_loads(self):
        """The last argument receives the answer: stored elements, or a scale."""
        for op, dtype in (
            ("load_quantized", self.dtype),
            ("load_scale", self.scale_dtype),
        ):
            for *indices, values in self.facts["expect"][op]:
                count = len(values) if isinstance(values, list) else 1
                vector = f"{count}x{dtypes.mlir_name(dtype)}"
                body = f"""
  %v = kvcache.{op} %k[%b, %h, %t, %d] : {self.cache_type} -> vector<{vector}>
  %c0 = arith.constant 0 : index
  vector.store %v, %o[%c0] : memref<{vector}>, vector<{vector}>
  return"""
                name = self.add(op, [*INDICES, f"o: memref<{vector}>"], body)
                answer = np.array(values, np.float64).reshape(count).tolist()
                yield Question(name, (*indices, np.zeros(count, dtype)), answer)

    def scale_stores(self):
        """The answer is which scales a store changes, in order."""
        for store in self.facts["expect"]["store_scale"]:
            value = np.array([store["value"]], np.float32).astype(self.scale_dtype)
            memref = f"memref<1x{self.scale}>"
            body = f"""
  %c0 = arith.constant 0 : index
  %v = memref.load %i[%c0] : {memref}
  kvcache.store_scale %v, %k[%b, %h, %t, %d] : {self.scale}, {self.cache_type}
  return"""
            name = self.add("store_scale", [*INDICES, f"i: {memref}"], body)
            indices = (store[key] for key in ("bs", "head", "tok", "dim"))
            yield Question(name, (*indices, value), store["changed"])


INDICES = [f"{index}: index" for index in "bhtd"]


def _cases():
    return map(Case, json.loads(DATA.read_text())["cases"])


def open_cases(every):
    """Every ``every``-th paged case, with the page size only known at run time."""
    paged = [case.facts for case in _cases() if case.is_paged]
    return [Case(facts, is_open=True) for facts in paged[::every]]


def plain_cases():
    """The cases without quantization."""
    return [case for case in _cases() if not case.is_quantized]


def quantized_cases():
    return [case for case in _cases() if case.is_quantized]
