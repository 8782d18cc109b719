# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations that the functions of this package return."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .._native import extension
from ..checks import check_instance
from ..devices import cuda
from ..errors import CheckError
from ..execution.arrays import Array, Value
from ..execution.options import parse_target
from ..execution.runtime import JitModule, jit
from ..pages.inputs import StepInputs
from .arguments import check_given
from .array_checks import (
    check_leading,
    check_pairs,
    check_room,
    check_table,
    find_missing_page,
    get_sizes,
)
from .checked_calls import make_checked_call
from .constant_arrays import ConstantArray, Scale, expand_divisor, expand_scale
from .overlaps import check_apart
from .sources import (
    LayerSpec,
    copy_pages_source,
    gather_source,
    merge_states_source,
)
from .steps import Step, take_step

if TYPE_CHECKING:
    from ..compilation.modules import CompiledModule

_CACHE = ("blocks", "scales")


@dataclass(frozen=True)
class Build:
    """The arguments of ``jit`` with which an operation is compiled.

    ``uses_tuning`` is whether kernels have the configs of this machine's tuning file.
    """

    target: str
    bounds_checks: bool = False
    threads: int | None = None
    uses_tuning: bool = True


class Operation:
    """An operation on a cache, which a function of ``kvcache.ops`` returns.

    The first call compiles it, or reads it from the disk. A wrong argument of a call
    raises ``TypeError`` or ``ValueError``, which names it. A failed check of the code
    raises ``CheckError``.

    Attributes:
        source: The module's text, before the operation is expanded, for a chip that has
            all that the options ask for.
        functions: The names of its exported functions.
        target: The target, as in ``jit``.
        build: The arguments of ``jit``, with the target.
        mutates: The arguments that it writes to.
        bounds_checks: Whether it is compiled with checks, as in ``jit``.
        threads: The number of threads of a call, as in ``jit``.
        write: A function that makes the source, from the spec and ``mutates``.
    """

    functions: tuple[str, ...]
    mutates: tuple[str, ...]
    write: ClassVar[Any]

    def __init__(self, source: str, build: Build, spec: Any) -> None:
        check_instance(str, target=build.target)
        self.source = source
        self.target = build.target
        self.bounds_checks = build.bounds_checks
        self.threads = build.threads
        self.build = build
        self._spec = spec
        self._forms = {spec: self}

    @functools.cached_property
    def program(self) -> JitModule:
        """The compiled functions."""
        _, chips = parse_target(self.target)
        return jit(
            self.write_source(chips),
            target=self.target,
            bounds_checks=self.bounds_checks,
            cached=True,
            threads=self.threads,
            tuning=self._find_tuning(chips) if self.target.startswith("cuda") else None,
        )

    def compile(self, chip: str, format: str = "ptx") -> CompiledModule:
        """Compiles the kernels for a chip, as ``kvcache.compile`` does."""
        from ..compilation.compiler import compile as compile_source

        return compile_source(
            self.write_source(chip),
            target=chip,
            format=format,
            bounds_checks=self.bounds_checks,
            cached=True,
            tuning=self._find_tuning(chip),
        )

    def _find_tuning(self, chips: str) -> Path | None:
        """The tuning file for chips; None if the operation has no config."""
        return None

    def _take_form(self, spec: Any) -> Any:
        """The operation for another form of calls, which is made once."""
        if spec not in self._forms:
            source = self.write(spec, self.mutates)
            self._forms[spec] = type(self)(source, self.build, spec)
        return self._forms[spec]

    def write_source(self, chips: str) -> str:
        """The module's text for chips, separated by commas; empty for the CPU."""
        return self.source

    def _call(self, *arguments: Value | ConstantArray) -> None:
        placed: tuple[Any, ...] = arguments
        if any(isinstance(argument, ConstantArray) for argument in arguments):
            placed = self._place(arguments)
        self.program.call(self.functions[0], *placed)

    def _place(self, arguments: tuple[Value | ConstantArray, ...]) -> tuple[Value, ...]:
        """Places constant arrays where the others are."""
        where = None
        if self.target.startswith("cuda"):
            device = cuda.find_device(arguments)
            where = device, cuda.current_stream(arguments, device)
        return tuple(
            argument.place(where) if isinstance(argument, ConstantArray) else argument
            for argument in arguments
        )


class LayerOperation(Operation):
    """An operation on the keys and values of a layer, with optional static scales."""

    parameters: ClassVar[dict[str, str]]
    """The parameters after the layer, and how calls check them: the kinds of
    ``checked_call``."""
    positional: ClassVar[tuple[str, ...]]
    """The first parameters, which calls may give by place."""

    def _layer(self) -> LayerSpec:
        """The spec of the layer."""
        spec: LayerSpec = self._spec
        return spec

    def bind(
        self, inputs: StepInputs, layer: int, device: int = 0, **given: Any
    ) -> Callable[..., None]:
        """Binds the operation to a step and a layer, for several or faster calls.

        The result takes the arguments after the layer, as the operation does. Checks
        are those of a call: arrays of the step may change in place.

        Args:
            inputs: As for a call.
            layer: As for a call.
            device: As for a call.
            given: Arguments that calls of the result need not give, such as ``scale``.
        """
        operation: Any = self
        bound: Callable[..., None] = functools.partial(
            operation, inputs, layer, device=device, **given
        )
        if unknown := sorted(given.keys() - self._kinds.keys()):
            raise TypeError(f"the operation has no argument {unknown[0]!r}")
        checked = self._checked
        if checked is None or type(device) is not int or device:
            return bound
        names = takewhile(lambda name: name not in given, self.positional)
        call: Callable[..., None] = extension().bound_call(
            checked, inputs, layer, given, len(list(names)), bound, self._explain
        )
        return call

    @property
    def _kinds(self) -> dict[str, str]:
        """The kind of each parameter, as for ``checked_call``."""
        return self.parameters

    @functools.cached_property
    def _checked(self) -> Callable[..., bool] | None:
        """The call without Python's checks; None where only Python can check."""
        if self.target.startswith("emulator:"):
            return None
        return make_checked_call(
            self.program,
            self.functions[0],
            self._layer().cache,
            {
                name: (kind, self._count_elements(name))
                for name, kind in self._kinds.items()
            },
            **self._get_workspace(),
        )

    def _name(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """The arguments after the layer by name; ``arguments`` has all by place."""
        return dict(zip(self.parameters, arguments[2:]))

    def _get_workspace(self) -> dict[str, Any]:
        """The arguments of ``make_checked_call`` for operations with a workspace."""
        return {}

    def _count_elements(self, name: str) -> int:
        """The elements of a row of an optional array, or of an expanded scale."""
        return self._layer().cache.params.n_kv_heads_per_device

    def _explain(self, inputs: StepInputs, layer: int, error: CheckError) -> None:
        """Raises an error that also names a page that does not exist."""
        blocks = inputs.key_blocks[layer] if inputs.is_separate else inputs.blocks[0]
        missing = find_missing_page(inputs, layer, blocks) if inputs.has_table else ""
        if not missing:
            raise error
        raise CheckError(f"{error}\n{missing}") from error

    def _call_on_layer(
        self,
        inputs: StepInputs,
        layer: int,
        step: Step,
        *arguments: Value | ConstantArray,
    ) -> None:
        """Calls the function; an error also names a page that does not exist."""
        try:
            self._call(*step.operands, *arguments)
        except CheckError as error:
            self._explain(inputs, layer, error)

    def _scales(
        self,
        key_scale: Scale,
        value_scale: Scale,
        expand: Callable[..., Any] = expand_scale,
    ) -> tuple[Any, ...]:
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
        return tuple(expand(name, scale, heads) for name, scale in given)


def select_given(given: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    """Returns the arguments of these names that are not None."""
    return [given[name] for name in names if given[name] is not None]


class Gather(LayerOperation):
    write = staticmethod(gather_source)
    functions = ("gather",)
    mutates = ("keys", "values")
    parameters = dict.fromkeys(
        ("keys_out", "values_out", "output_offsets", "key_scale", "value_scale"), ""
    )
    positional = ("keys_out", "values_out")
    _checked = None  # Only Python checks calls.

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
        step = take_step(inputs, self._spec.cache, layer, device)
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
        step = take_step(
            inputs, self._spec.cache, 0, device, needs_table=False, has_layer=False
        )
        check_pairs(pairs, None if self.bounds_checks else step.blocks)
        for name, tensor in step.tensors.items():
            check_apart({name: tensor}, {"pairs": pairs})
        self._call(*step.operands, pairs)


class MergeStates(Operation):
    write = staticmethod(merge_states_source)
    functions = ("merge_states",)
    mutates = ("out", "lse")

    def __call__(
        self,
        outs: Array,
        lses: Array,
        out: Array,
        lse: Array,
        out_scale: Scale = None,
    ) -> None:
        """Merges attention over splits of the keys.

        The outputs share no memory with each other or with the inputs: an output in place
        of a split would be read after it was written.

        Args:
            outs: The outputs of the splits, [splits, total, heads, head_dim].
            lses: The ``lse`` of the splits, float32 [splits, total, heads]: natural
                logarithms of the sums of exponentials; -inf for a split without keys.
            out: The merged output, [total, heads, head_dim], written.
            lse: The merged ``lse``, float32 [total, heads], written.
            out_scale: The divisor of fp8 outputs: a number other than 0, or float32
                [heads]; 1 by default. Quotients are rounded to nearest even, and saturate.
        """
        splits = get_sizes(outs)[:3]
        check_leading(splits, "'outs'", lses=lses)
        check_leading(splits[1:], "each of 'outs'", out=out, lse=lse)
        check_apart(
            {"out": out, "lse": lse},
            {"outs": outs, "lses": lses, "out_scale": out_scale},
        )
        self._call(outs, lses, out, lse, *self._expand_scale(out_scale))

    def _expand_scale(self, scale: Scale) -> tuple[Any, ...]:
        if self._spec.has_scale:
            return (expand_divisor("out_scale", scale, self._spec.heads, default=1.0),)
        if scale is not None:
            raise ValueError("expects 'out_scale' only for fp8")
        return ()
