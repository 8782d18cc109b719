# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations that the functions of this package return."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..checks import check_instance, check_integer, check_positive
from ..compilation.compiler import compile as compile_source
from ..compilation.modules import CompiledModule
from ..devices import cuda
from ..errors import CheckError
from ..execution.arrays import Array, Value, as_32_bits, check_32_bits
from ..execution.runtime import JitModule, jit
from ..pages.inputs import StepInputs
from .arguments import (
    check_apart,
    check_factor,
    check_given,
    check_given_positions,
    check_kv_lengths,
    check_layer,
    check_leading,
    check_pairs,
    check_positions,
    check_room,
    check_rows,
    check_slots,
    check_table,
    find_missing_page,
    get_sizes,
)
from .attention_options import AttentionSpec, Workspaces
from .cache_forms import CacheForm
from .sources import (
    LayerSpec,
    append_source,
    attention_source,
    copy_pages_source,
    gather_source,
    merge_states_source,
)

_CACHE = ("blocks", "scales")
_SEPARATE = ("key_blocks", "value_blocks", "key_scales", "value_scales")

Scale = float | Array | None
"""A static scale: a number, or float32 [heads]."""


@dataclass(frozen=True)
class ConstantArray:
    """A read-only array.

    Attributes:
        value: The element, or the elements of the last dimension.
        shape: The sizes.
        dtype: NumPy's name of the dtype.
    """

    value: float | tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str = "float32"

    def place(self, device: int | None) -> Array:
        """Places the array in the memory of a GPU or, for None, of the host."""
        if device is None:
            return _fill(self)
        tensor: Array = _fill_device(self, device).tensor
        return tensor


@functools.lru_cache(maxsize=1024)
def _fill(constant: ConstantArray) -> np.ndarray:
    return np.full(constant.shape, constant.value, constant.dtype)


@functools.lru_cache(maxsize=1024)
def _fill_device(constant: ConstantArray, device: int) -> cuda.DeviceArray:
    return cuda.DeviceArray(_fill(constant), device, "a number for a kernel")


_OFFSETS = ConstantArray((0, 2**31 - 1), (2,), "int32")
"""The offsets of a step without a table, in which all rows are new."""


def _make_table(kind: str) -> dict[str, ConstantArray]:
    """Makes the table of a step without one, for kernels that do not read it."""
    return {
        "lengths": ConstantArray(0, (1,), "int32"),
        "lut": ConstantArray(0, (1,) if kind == "csr" else (1, 1), "int32"),
        "table_index": ConstantArray(0, (2 if kind == "csr" else 1,), "int32"),
    }


@dataclass(frozen=True)
class Build:
    """The arguments of ``jit`` with which an operation is compiled."""

    target: str
    bounds_checks: bool = False
    threads: int | None = None


class Operation:
    """A compiled operation, which a function of this package returns.

    Attributes:
        source: The module's text, before the operation is expanded.
        functions: The names of its exported functions.
        target: The target, as in ``jit``.
        mutates: The arguments that it writes to.
        bounds_checks: Whether it is compiled with checks, as in ``jit``.
        threads: The number of threads of a call, as in ``jit``.
        write: A function that makes the source, from the spec, the dtype of rows and
            ``mutates``.
    """

    functions: tuple[str, ...]
    mutates: tuple[str, ...]
    write: ClassVar[Any]

    def __init__(self, source: str, build: Build, spec: Any) -> None:
        self.source = source
        self.target = build.target
        self.bounds_checks = build.bounds_checks
        self.threads = build.threads
        self._spec = spec

    @functools.cached_property
    def program(self) -> JitModule:
        """The compiled functions."""
        return jit(
            self.source,
            target=self.target,
            bounds_checks=self.bounds_checks,
            cached=True,
            threads=self.threads,
        )

    def compile(self, chip: str, format: str = "ptx") -> CompiledModule:
        """Compiles the kernels for a chip, as ``kvcache.compile`` does."""
        return compile_source(
            self.source,
            target=chip,
            format=format,
            bounds_checks=self.bounds_checks,
            cached=True,
        )

    def _call(self, *arguments: Value | ConstantArray) -> None:
        device = cuda.find_device(arguments) if self.target.startswith("cuda") else None
        placed = (
            argument.place(device) if isinstance(argument, ConstantArray) else argument
            for argument in arguments
        )
        self.program.call(self.functions[0], *placed)


class LayerOperation(Operation):
    """An operation on the keys and values of a layer, with optional static scales."""

    def _layer(self) -> LayerSpec:
        """The spec of the layer."""
        spec: LayerSpec = self._spec
        return spec

    def _call_on_layer(
        self,
        inputs: StepInputs,
        layer: int,
        step: _Step,
        *arguments: Value | ConstantArray,
    ) -> None:
        """Calls the function; an error also names a page that does not exist."""
        try:
            self._call(*step.operands, *arguments)
        except CheckError as error:
            missing = find_missing_page(inputs, layer, step.blocks)
            if not missing:
                raise
            raise CheckError(f"{error}\n{missing}") from error

    def _scales(self, key_scale: Scale, value_scale: Scale) -> tuple[Any, ...]:
        """The static scales as arguments: f32 [heads] each."""
        spec = self._layer()
        given: list[tuple[str, Scale]] = [("key_scale", key_scale)]
        if not spec.cache.params.is_mla:
            given.append(("value_scale", value_scale))
        elif value_scale is not None:
            raise ValueError("a latent cache takes no 'value_scale'")
        for name, scale in given:
            check_given(name, scale, spec.static_scales)
        if not spec.static_scales:
            return ()
        heads = spec.cache.params.n_kv_heads_per_device
        return tuple(_expand_scale(name, scale, heads) for name, scale in given)


def _expand_scale(name: str, scale: Scale, heads: int) -> Any:
    """Expands a scale to f32 [heads]."""
    if isinstance(scale, int | float | np.number):
        return ConstantArray(check_factor(name, scale), (heads,))
    return scale


class Append(LayerOperation):
    write = staticmethod(append_source)
    functions = ("append",)
    mutates = (*_CACHE, *_SEPARATE, "queries")

    def __init__(self, source: str, build: Build, spec: LayerSpec) -> None:
        super().__init__(source, build, spec)
        head_dim = spec.cache.params.head_dim
        self._extra = frozenset(spec.options.extra(head_dim, ""))

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        keys: Array,
        values: Array | None = None,
        queries: Array | None = None,
        device: int = 0,
        *,
        latent_rope: Array | None = None,
        slots: Array | None = None,
        norm: Array | None = None,
        query_norm: Array | None = None,
        rope: Array | None = None,
        positions: Array | None = None,
        key_scale: Scale = None,
        value_scale: Scale = None,
    ) -> None:
        """Writes the pending tokens of a step to a layer.

        Calls give exactly the optional arguments that the operation was made with. Keys
        are normed, roped and rounded, in this order; values are rounded.
        ``queries`` and the cache share no memory with each other or with another array.

        Args:
            inputs: The inputs of a manager, or of ``StepInputs.of``.
            layer: The index of the layer in the cache.
            keys: New keys [total, heads, head_dim], in the order of the inputs' tokens;
                without the elements of ``latent_rope``.
            values: New values, as ``keys``; None for a latent cache.
            queries: Queries [total, query_heads, head_dim], normed and roped in place.
            device: The device whose tensors it writes.
            latent_rope: The last elements of latent rows, [total, 1, elements].
            slots: The slot of each row, page * page_size + offset, [total]. A row with
                a negative slot is skipped, but its queries are not. Lengths and table
                of the inputs are not read. A slot in host memory that the cache lacks
                is an error. Rows with equal slots are undefined, and an error with
                ``bounds_checks``.
            norm: The weights of the RMS norm of each head of keys, [norm], of the dtype
                of rows.
            query_norm: The weights of the RMS norm of queries, [query_norm].
            rope: Cosines and sines, float32 [positions, elements]: for each position
                elements / 2 cosines, then elements / 2 sines.
            positions: The row of ``rope`` for each token, [total], or [axes, total]
                with ``rope_axes``. Without it, the position of a token in its sequence.
                One in host memory that ``rope`` has no row for is an error.
            key_scale: The divisor of keys, if the operation was made with static
                scales: a number, or float32 [heads].
            value_scale: The divisor of values; None for a latent cache.
        """
        given = {
            "latent_rope": latent_rope,
            "slots": slots,
            "norm": norm,
            "query_norm": query_norm,
            "rope": rope,
            "positions": positions,
            "queries": queries,
        }
        for name, array in given.items():
            check_given(name, array, name in self._extra)
        scales = self._scales(key_scale, value_scale)
        step = _take_step(
            inputs, self._spec.cache, layer, device, needs_table=slots is None
        )
        if slots is None:
            check_table(inputs, step.blocks)
        check_rows(
            inputs.row_offsets,
            keys=keys,
            values=values,
            latent_rope=latent_rope,
            slots=slots,
            positions=positions,
            queries=queries,
        )
        if rope is not None and positions is None:
            check_positions(inputs, rope)
        if not self.bounds_checks:
            check_slots("slots", slots, inputs.row_offsets, step.blocks)
            used = slots if queries is None else None
            check_given_positions(positions, inputs.row_offsets, rope, used)
        read: dict[str, Any] = {
            **given,
            "keys": keys,
            "values": values,
            "key_scale": key_scale,
            "value_scale": value_scale,
            **step.tables,
        }
        written = {"queries": read.pop("queries")}
        check_apart(written, {**read, **step.tensors})
        for name, tensor in step.tensors.items():
            check_apart({name: tensor}, read)
        dense = (keys,) if values is None else (keys, values)
        if latent_rope is not None:
            dense = (*dense, given.pop("latent_rope"))
        self._call_on_layer(
            inputs,
            layer,
            step,
            *dense,
            step.offsets,
            *(array for array in given.values() if array is not None),
            *scales,
        )


class Gather(LayerOperation):
    write = staticmethod(gather_source)
    functions = ("gather",)
    mutates = ("keys", "values")

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        keys_out: Array,
        values_out: Array | None = None,
        device: int = 0,
        *,
        output_offsets: Array | None = None,
        key_scale: Scale = None,
        value_scale: Scale = None,
    ) -> None:
        """Copies all tokens, including those of this step, to dense arrays.

        The outputs share no memory with each other or with another array.

        Args:
            inputs: As for ``append``.
            layer: The index of the layer in the cache.
            keys_out: The output of keys, [batch, longest, heads, head_dim], with zeros
                after a sequence's end. Ragged: [total, heads, head_dim]. A sequence that
                does not fit is an error if lengths are in host memory; otherwise its
                last tokens are left out.
            values_out: The output of values, as ``keys_out``; None for a latent cache.
            device: The device whose tensors it reads.
            output_offsets: Ragged: the first row of each sequence in the outputs, and
                the end of the last one, int32 [batch + 1]. Zeros follow a sequence with
                fewer tokens.
            key_scale: The factor of keys, if the operation was made with static scales:
                a number, or float32 [heads].
            value_scale: The factor of values; None for a latent cache.
        """
        check_given("output_offsets", output_offsets, self._spec.ragged)
        ragged = () if output_offsets is None else (output_offsets,)
        scales = self._scales(key_scale, value_scale)
        dense = (keys_out,) if values_out is None else (keys_out, values_out)
        step = _take_step(inputs, self._spec.cache, layer, device)
        check_table(inputs, step.blocks)
        self._check_outputs(step.offsets, output_offsets, *dense)
        check_room(inputs, keys_out, output_offsets)
        check_apart(
            {"keys_out": keys_out, "values_out": values_out},
            {
                **step.tensors,
                **step.tables,
                "output_offsets": output_offsets,
                "key_scale": key_scale,
                "value_scale": value_scale,
            },
        )
        self._call_on_layer(
            inputs,
            layer,
            step,
            *dense,
            step.offsets,
            *ragged,
            *scales,
        )

    def _check_outputs(
        self,
        row_offsets: Array,
        output_offsets: Array | None,
        keys: Array,
        values: Array | None = None,
    ) -> None:
        """Raises ``ValueError`` for sizes that contradict each other."""
        sequences, name = get_sizes(keys)[:1], "keys_out"
        if self._spec.ragged:
            sequences, name = get_sizes(output_offsets)[:1], "output_offsets"
            sequences = tuple(size - 1 for size in sequences)
        batch = row_offsets.shape[0] - 1
        if sequences and not 0 <= sequences[0] <= batch:
            raise ValueError(
                f"expects {name!r} to be for at most {batch} sequences, got "
                f"{sequences[0]}"
            )
        leading = get_sizes(keys)[: 1 if self._spec.ragged else 2]
        check_leading(leading, "'keys_out'", values_out=values)


class CopyPages(Operation):
    write = staticmethod(copy_pages_source)
    functions = ("copy_pages",)
    mutates = _CACHE

    def __call__(self, inputs: StepInputs, pairs: Array, device: int = 0) -> None:
        """Copies pages: all layers, keys and values, with their scales.

        No page is both read and written, or written twice: a chain of copies takes one
        call for each link. Pairs in host memory are checked.

        Args:
            inputs: As for ``append``; their sequences are ignored.
            pairs: The source and target page of each copy, int32 [n, 2]; a negative
                number skips a pair.
            device: The device whose tensors it changes.
        """
        step = _take_step(inputs, self._spec.cache, None, device, needs_table=False)
        check_pairs(pairs, None if self.bounds_checks else step.blocks)
        for name, tensor in step.tensors.items():
            check_apart({name: tensor}, {"pairs": pairs})
        self._call(*step.operands, pairs)


class MergeStates(Operation):
    write = staticmethod(merge_states_source)
    functions = ("merge_states",)
    mutates = ("out", "lse")

    def __call__(self, outs: Array, lses: Array, out: Array, lse: Array) -> None:
        """Merges attention over splits of the keys.

        The outputs share no memory with each other or with the inputs: an output in place
        of a split would be read after it was written.

        Args:
            outs: The outputs of the splits, [splits, total, heads, head_dim].
            lses: The ``lse`` of the splits, float32 [splits, total, heads]: natural
                logarithms of the sums of exponentials; -inf for a split without keys.
            out: The merged output, [total, heads, head_dim], written.
            lse: The merged ``lse``, float32 [total, heads], written.
        """
        splits = get_sizes(outs)[:3]
        check_leading(splits, "'outs'", lses=lses)
        check_leading(splits[1:], "each of 'outs'", out=out, lse=lse)
        check_apart({"out": out, "lse": lse}, {"outs": outs, "lses": lses})
        self._call(outs, lses, out, lse)


class Attention(LayerOperation):
    write = staticmethod(attention_source)
    functions = ("attention",)
    mutates = ("out", "lse", "workspace")

    def __init__(
        self,
        source: str,
        build: Build,
        subject: tuple[CacheForm, AttentionSpec],
    ) -> None:
        cache, spec = subject
        super().__init__(source, build, spec)
        self._layer_spec = LayerSpec(cache, static_scales=spec.static_scales)
        self._workspaces = Workspaces(spec, build.target)

    def _layer(self) -> LayerSpec:
        return self._layer_spec

    def workspace_size(self, batch: int) -> int:
        """The bytes of the workspace for ``batch`` sequences; 0 without splits."""
        check_positive(batch=batch)
        return self._spec.count_bytes(int(batch))

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        q: Array,
        *,
        out: Array,
        lse: Array | None = None,
        scale: float,
        sinks: Array | None = None,
        mask: Array | None = None,
        rows: Array | None = None,
        kv_lengths: Array | None = None,
        workspace: Array | None = None,
        key_scale: Scale = None,
        value_scale: Scale = None,
        query_scale: Scale = None,
        out_scale: Scale = None,
        device: int = 0,
        **arrays: Array,
    ) -> None:
        """Attends to all tokens, including those of this step: append them first.

        ``out``, ``lse`` and ``workspace`` share no memory with each other or with another
        array, ``q`` included.

        Args:
            inputs: As for ``append``.
            layer: The index of the layer in the cache.
            q: The queries, [total, query_heads, head_dim], in the order of the inputs'
                tokens.
            out: The output, [total, query_heads, value_dim], written; zeros for a query
                that sees no token.
            lse: The natural logarithm of the denominator, float32 [total, query_heads],
                written unless None; -inf for a query that sees no token.
            scale: The factor of scores.
            sinks: The logits of the sinks, float32 [query_heads], if the operation was
                made with sinks.
            mask: The mask, int32 [total, words], if it was made with one: bit j is set
                if the query sees the j-th new token of its sequence. All tokens of
                earlier steps are seen.
            rows: The slots of the tokens that each query sees, page * page_size +
                offset, int32 [total, n], if it was made with rows. Negative ones are
                skipped. One in host memory that the cache lacks is an error.
            kv_lengths: The number of tokens of each sequence, int32 [batch], if it was
                made with them. The lengths of the inputs are ignored then. Each call
                copies int64 ones.
            workspace: The workspace, int8 [bytes], if it was made with splits. It has
                at least ``workspace_size`` bytes, aligned to 16, and is zeroed once and
                after each call that raises. Operations may share it, one call at a
                time. By default, the operation keeps one for each stream of a GPU, or
                for each thread of the CPU. A call for more sequences replaces it.
            key_scale: The factor of keys, if the operation was made with static scales:
                a number, or float32 [heads].
            value_scale: The factor of values; None for a latent cache.
            query_scale: The factor of fp8 queries: a number, or float32 [query_heads];
                1 by default.
            out_scale: The divisor of fp8 outputs, as ``query_scale``.
            device: The device whose tensors it reads.
            arrays: The arrays of ``score`` and ``mask``, by name. An index outside of
                one, of a key that is seen, reads its nearest element.
        """
        cache = self._layer_spec.cache
        step = _take_step(inputs, cache, layer, device)
        region_arrays = self._spec.regions.take(arrays)
        if rows is None and kv_lengths is None:
            check_table(inputs, step.blocks)
        batch = step.offsets.shape[0] - 1
        workspaces = self._workspaces.take(workspace, batch, (q, out))
        if kv_lengths is not None:
            kv_lengths = _narrow("kv_lengths", kv_lengths)
        given = {"sinks": sinks, "mask": mask, "rows": rows, "kv_lengths": kv_lengths}
        for name, array in given.items():
            made = name in self._spec.extra
            if (array is not None) != made:
                raise ValueError(
                    f"this operation was made with {name}={made}: expects "
                    f"{'' if made else 'no '}'{name}'"
                )
        check_rows(inputs.row_offsets, q=q, out=out, lse=lse, mask=mask, rows=rows)
        if not self.bounds_checks:
            check_slots("rows", rows, inputs.row_offsets, step.blocks)
        page_size = cache.params.page_size or 0
        starts = inputs.row_offsets if self._spec.has_positions else None
        check_kv_lengths(kv_lengths, inputs, page_size, starts)
        check_apart(
            {"out": out, "lse": lse, "workspace": workspace},
            {
                "q": q,
                **given,
                **step.tensors,
                **step.tables,
                "key_scale": key_scale,
                "value_scale": value_scale,
                "query_scale": query_scale,
                "out_scale": out_scale,
                **arrays,
            },
        )
        more = [array for array in given.values() if array is not None]
        logarithms = (
            ConstantArray(0, (0, self._spec.query_heads)) if lse is None else lse
        )
        dense = q, step.offsets, out, logarithms, check_factor("scale", scale), *workspaces, *more
        scales = self._scales(key_scale, value_scale)
        row_scales = self._get_row_scales(query_scale=query_scale, out_scale=out_scale)
        try:
            self._call_on_layer(
                inputs, layer, step, *dense, *scales, *row_scales, *region_arrays
            )
        except BaseException:
            self._workspaces.drop()
            raise

    def _get_row_scales(self, **scales: Scale) -> tuple[Any, ...]:
        for name, scale in scales.items():
            if scale is not None and name not in self._spec.scaled_rows:
                raise ValueError(f"expects {name!r} only for fp8")
        given = ((name, scales[name]) for name in self._spec.scaled_rows)
        return tuple(
            _expand_scale(name, 1.0 if scale is None else scale, self._spec.query_heads)
            for name, scale in given
        )


def _narrow(name: str, numbers: Any) -> Any:
    """Copies int64 numbers as int32; returns others as they are."""
    if str(getattr(numbers, "dtype", "")).rpartition(".")[2] != "int64":
        return numbers
    check_32_bits(**{name: numbers})
    return as_32_bits(name, numbers)


@dataclass(frozen=True)
class _Step:
    """The arguments of a function that a step gives.

    Attributes:
        operands: The first arguments, as ``CacheForm.arguments`` lists them.
        offsets: The offsets of rows, for kernels.
        tensors: The tensors of the cache, by name.
        tables: The arrays of integers, by name.
    """

    operands: tuple[Any, ...]
    offsets: Any
    tensors: dict[str, Any]
    tables: dict[str, Any]

    @property
    def blocks(self) -> Any:
        """The blocks of the cache, or those of the keys."""
        return self.operands[0]


def _take_step(
    inputs: StepInputs,
    form: CacheForm,
    layer: int | None,
    device: int,
    needs_table: bool = True,
) -> _Step:
    """Takes the arguments that a step gives, for a layer or for all layers."""
    check_instance(StepInputs, inputs=inputs)
    _check_form(inputs, form, needs_table)
    given = _take_cache(inputs, form, layer, device)
    names = [*form.blocks, "lengths", "lut", "max_seq", "max_cache", *form.scales]
    if inputs.table_index is not None:
        names.insert(names.index("lut") + 1, "table_index")
    if len(given) != len(names):
        found = len(given) - len(names) + len(form.scales)
        raise ValueError(
            f"expects inputs with {len(form.scales)} tensors of scales, got {found}"
        )
    values: dict[str, Any] = {**dict(zip(names, given)), "layer": layer}
    offsets = inputs.placed_offsets
    if not inputs.has_table:
        values |= _make_table(form.table)
        offsets = _OFFSETS
    arguments = [name for name in form.arguments if values[name] is not None]
    return _Step(
        tuple(values[name] for name in arguments),
        offsets,
        {name: values[name] for name in form.tensors},
        {"lengths": inputs.lengths, "lut": inputs.lut, "row_offsets": offsets},
    )


def _take_cache(
    inputs: StepInputs, form: CacheForm, layer: int | None, device: int
) -> tuple[Any, ...]:
    """Takes the tensors and the table of a step. Checks layer and device."""
    if not form.separate:
        given = inputs.collection(device)
        if layer is not None:
            check_layer(layer, given[0])
        return given
    check_integer(device=device)
    if device:
        raise ValueError(
            f"expects 'device' to be 0 for keys and values by layer, got {device}"
        )
    check_integer(layer=layer)
    return inputs.views(layer or 0)


def _check_form(inputs: StepInputs, form: CacheForm, needs_table: bool) -> None:
    """Raises ``ValueError`` for inputs of another form than that of an operation."""
    if inputs.is_separate != form.separate:
        expected, found = "'blocks'", "'keys'"
        if form.separate:
            expected, found = found, expected
        raise ValueError(
            f"this operation was made with separate={form.separate}: expects inputs of "
            f"{expected}, got {found}"
        )
    if form.separate and len(form.roles) != 1 + bool(inputs.value_blocks):
        raise ValueError(
            f"expects inputs {'with' if len(form.roles) > 1 else 'without'} 'values'"
        )
    if not inputs.has_table:
        if needs_table:
            raise ValueError(
                "expects inputs with 'lengths', 'lut' and 'row_offsets', got none: only "
                "'append' with slots and 'copy_pages' need none"
            )
    elif inputs.table != form.table:
        raise ValueError(
            f"this operation was made with table={form.table!r}: expects inputs with "
            f"such a table, got {inputs.table!r}"
        )
