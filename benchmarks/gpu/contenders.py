"""Who takes part: our kernels, CUDA C++, Triton and FlashInfer, each ready to run on the same arrays."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from peers.triton_launches import Launch

from . import arguments, references
from .arguments import ArgumentError, Cache, DeviceArray, TensorMap, Values
from .cubin import CubinError, read_parameters
from .device import Device, DeviceError, Grid
from .inputs import HEAD_SIZE, HEADS, LATENT_SIZE, PAGE_SIZE, QUERY_HEADS, Case
from .kernels import OURS, PEER, KernelImage, Pack
from .references import Arrays
from .works import Compare, CudaPeer, TritonPeer, Work


class Unavailable(Exception):
    """The contender can't take part here; the message says why."""


class Workspace:
    """A case's arrays on the device, and what is made for single contenders. Gives the memory back at the end."""

    def __init__(self, device: Device, case: Case) -> None:
        self.device, self.case = device, case
        self._addresses: list[int] = []
        self.arrays: dict[str, DeviceArray] = {}

    def __enter__(self) -> Workspace:
        try:
            for name, array in self.case.arrays.items():
                self.arrays[name] = self.allocate(array.shape, array.itemsize)
                if name not in self.case.outputs:
                    self.device.upload(self.arrays[name].address, array)
        except DeviceError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for address in self._addresses:
            with contextlib.suppress(DeviceError):  # of a device that is lost
                self.device.free(address)

    def allocate(self, shape: tuple[int, ...], itemsize: int) -> DeviceArray:
        address = self.device.allocate(max(math.prod(shape) * itemsize, 1))
        self._addresses.append(address)
        return DeviceArray(address, shape, itemsize)

    def values(self) -> dict[str, DeviceArray | Cache | int | float]:
        """Everything that a parameter can name."""
        values: dict[str, Any] = {**self.arrays, **self.case.numbers}
        collection = Cache(
            *(self.arrays[name] for name in ("blocks", "lengths", "lut")),
            *(self.case.numbers[name] for name in ("max_seq", "max_cache")),
            self.arrays.get("scales"),
        )
        layer = self.case.numbers["layer"]
        views = {name: collection.view(role, layer) for role, name in enumerate(("key", "value"))}
        return {**values, "collection": collection, **views}

    def poison(self, arrays: dict[str, DeviceArray]) -> None:
        for array in arrays.values():
            self.device.fill(array.address, 0xFF, math.prod(array.shape) * array.itemsize)

    def read(self, arrays: dict[str, DeviceArray]) -> Arrays:
        results = {}
        for name, array in arrays.items():
            like = self.case.arrays.get(name)
            results[name] = np.empty(array.shape, np.float32 if like is None else like.dtype)
            self.device.download(results[name], array.address)
        return results


class Entrant(Protocol):
    """A contender that is ready to run a case. ``launch`` may be called again and again."""

    @property
    def name(self) -> str: ...

    @property
    def compare(self) -> Compare: ...

    def poison(self) -> None:
        """Makes sure that results of an earlier run are not taken for those of the next one."""

    @property
    def launch(self) -> Callable[[], None]: ...

    def results(self) -> Arrays: ...


@dataclass
class KernelEntrant:
    """A contender that is one launch of machine code."""

    name: str
    compare: Compare
    workspace: Workspace
    outputs: dict[str, DeviceArray]
    launch: Callable[[], None]
    collect: Callable[[Arrays], Arrays] = lambda results: results

    def poison(self) -> None:
        self.workspace.poison(self.outputs)

    def results(self) -> Arrays:
        return self.collect(self.workspace.read(self.outputs))


def _enter_kernel(
    title: str, compare: Compare, workspace: Workspace, outputs: dict[str, DeviceArray], cubin: bytes, kernel: str,
    grid: Grid, block: Grid, shared_bytes: int, values: list[bytes], **more: Any,
) -> KernelEntrant:
    """Loads the machine code; every argument has to have the size that it says."""
    try:
        arguments.check(values, read_parameters(cubin, kernel), kernel)
        loaded = workspace.device.load(cubin, kernel, shared_bytes)
    except (ArgumentError, CubinError, DeviceError) as error:
        raise Unavailable(str(error)) from error
    launch = workspace.device.prepare(loaded, grid, block, shared_bytes, values)
    return KernelEntrant(title, compare, workspace, outputs, launch, **more)


def _results_of(workspace: Workspace) -> dict[str, DeviceArray]:
    return {name: workspace.arrays[name] for name in workspace.case.outputs}


def _find(pack: Pack, contender: str, source: str, chip: str) -> KernelImage:
    found = pack.find(contender, source, chip)
    if isinstance(found, str):
        raise Unavailable(found)
    return found


# --- Our kernels -----------------------------------------------------------------------------------------------------


def encode_parameters(image: KernelImage, values: Values, device: Device) -> list[bytes]:
    """The arguments of one of our kernels, found by the names of its parameters."""
    descriptors = {descriptor["parameter"]: descriptor for descriptor in image.descriptors}
    encoded = []
    for parameter in image.parameters:
        name, size = parameter["name"], parameter["size"]
        try:
            if name in descriptors:
                encoded.append(device.encode(arguments.make_tensor_map(descriptors[name], values)))
            else:
                encoded.append(arguments.encode_number(arguments.look_up(name, values), size))
        except ArgumentError as error:
            raise ArgumentError(f"parameter {name!r} of kernel {image.name}: {error}") from error
    return encoded


def enter_ours(work: Work, workspace: Workspace, pack: Pack, chip: str) -> Entrant:
    image = _find(pack, OURS, work.name, chip)
    if image.block is None:
        raise Unavailable(f"kernel {image.name} says no block size")
    try:
        values = encode_parameters(image, workspace.values(), workspace.device)
    except (ArgumentError, DeviceError) as error:
        raise Unavailable(str(error)) from error
    return _enter_kernel(
        OURS, work.compare, workspace, _results_of(workspace), pack.read(image), image.name,
        work.grid(workspace.case, image.block), image.block, image.shared_bytes, values,
    )


# --- CUDA C++ --------------------------------------------------------------------------------------------------------


def _row_map(workspace: Workspace) -> TensorMap:
    """The rows of a latent cache, each as nine swizzled pieces of 128 bytes."""
    rows = workspace.arrays["blocks"]
    count = math.prod(rows.shape) // LATENT_SIZE
    return TensorMap(rows.address, 2, (LATENT_SIZE, count), (LATENT_SIZE * 2,), (64, 1), "128b")


def enter_peer(work: Work, peer: CudaPeer, workspace: Workspace, pack: Pack, chip: str) -> Entrant:
    image = _find(pack, PEER, peer.source, chip)
    try:
        values = [arguments.encode_struct(peer.fields, peer.members, workspace.values())]
        if peer.takes_row_map:
            values.insert(0, workspace.device.encode(_row_map(workspace)))
    except DeviceError as error:
        raise Unavailable(str(error)) from error
    return _enter_kernel(
        peer.title, peer.compare or work.compare, workspace, _results_of(workspace), pack.read(image), image.name,
        peer.grid(workspace.case), (peer.block, 1, 1), peer.shared_bytes, values,
    )


# --- Triton ----------------------------------------------------------------------------------------------------------

_POINTER_BYTES, _WORD_BYTES = 8, 4


def import_triton() -> ModuleType:
    try:
        return importlib.import_module("triton")
    except ImportError as error:
        raise Unavailable(f"Triton is not installed: {error}") from error


def compile_triton(launch: Launch, source: Path, values: list[int | float], capability: tuple[int, int]) -> Any:
    """Compiles a function for a chip, with what Triton's own launcher finds out about arguments: multiples of 16."""
    triton = import_triton()
    compiler = importlib.import_module("triton.compiler")
    target = importlib.import_module("triton.backends.compiler").GPUTarget(
        "cuda", capability[0] * 10 + capability[1], 32
    )
    spec = importlib.util.spec_from_file_location(source.stem, source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, launch.function)
    hints = {(index,): [["tt.divisibility", 16]] for index, value in enumerate(values)
             if isinstance(value, int) and value % 16 == 0}
    signature = dict(zip(function.arg_names, launch.signature))
    described = compiler.ASTSource(function, signature, launch.constants, hints)
    return triton.compile(described, target=target, options={"num_warps": launch.warps})


def enter_triton(work: Work, peer: TritonPeer, workspace: Workspace, source: Path) -> Entrant:
    """Compiles, and launches the machine code as everybody else's."""
    scratch = {name: workspace.allocate(shape, 4) for name, shape in peer.scratch(workspace.case).items()}
    known = {**workspace.values(), **scratch}
    names = [name for name, _ in peer.launch.arguments]
    values = [arguments.look_up(name, known) if isinstance(name, str) else name for name in names]
    try:
        compiled = compile_triton(peer.launch, source, values, workspace.device.facts.capability)
    except Unavailable:
        raise
    except Exception as error:  # whatever the compiler raises
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise Unavailable(f"Triton can't compile it: {reason[0]}") from error
    encoded = [arguments.encode_number(value, _POINTER_BYTES if type.startswith("*") else _WORD_BYTES)
               for value, (_, type) in zip(values, peer.launch.arguments)]
    metadata, machine_code = compiled.metadata, compiled.asm["cubin"]
    if any(getattr(metadata, f"{kind}_scratch_size", 0) for kind in ("global", "profile")):
        raise Unavailable("Triton's kernel wants memory of its own")
    # Pointers to such memory are its last parameters, one or two of them.
    more = len(read_parameters(machine_code, metadata.name)) - len(encoded)
    encoded += [bytes(_POINTER_BYTES)] * more
    outputs = {name: array for name, array in _results_of(workspace).items() if name in names} | scratch
    return _enter_kernel(
        peer.title, peer.compare or work.compare, workspace, outputs, machine_code, metadata.name,
        peer.grid(workspace.case), (metadata.num_warps * 32, 1, 1), metadata.shared, encoded, collect=peer.collect,
    )


# --- FlashInfer ------------------------------------------------------------------------------------------------------


@dataclass
class FlashInferEntrant:
    """Decode attention by FlashInfer. It combines its splits too, and so does a little more than the others."""

    wrapper: Any
    query: Any
    cache: Any
    stream: Any
    torch: Any
    name: str = "FlashInfer"
    compare: Compare = references.compare_merged
    _out: Any = None

    def poison(self) -> None:
        self._out = None

    def launch(self) -> None:
        with self.torch.cuda.stream(self.stream):
            self._out = self.wrapper.run(self.query, self.cache)

    def results(self) -> Arrays:
        self.torch.cuda.synchronize()
        attention = self._out.float().cpu().numpy()
        return {"attention": attention.reshape(-1, HEADS, QUERY_HEADS // HEADS, HEAD_SIZE)}


def _page_lists(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each sequence's pages begin in a list of all, the list, and the tokens in the last page of each."""
    lengths, lut = case.arrays["lengths"], case.arrays["lut"]
    counts = -(-lengths // PAGE_SIZE)
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    pages = np.concatenate([lut[row, :count] for row, count in enumerate(counts)]).astype(np.int32)
    return begins, pages, (lengths - (counts - 1) * PAGE_SIZE).astype(np.int32)


def enter_flashinfer(workspace: Workspace) -> Entrant:
    try:
        torch = importlib.import_module("torch")
        flashinfer = importlib.import_module("flashinfer")
    except ImportError as error:
        raise Unavailable(f"FlashInfer or PyTorch is not installed: {error}") from error
    case = workspace.case
    if (case.arrays["lengths"] == 0).any():
        raise Unavailable("FlashInfer expects sequences that have a token")

    def tensor(array: np.ndarray) -> Any:
        signed = array.view(np.int16) if array.dtype == np.uint16 else array
        moved = torch.from_numpy(np.ascontiguousarray(signed)).cuda()
        return moved.view(torch.bfloat16) if array.dtype == np.uint16 else moved

    try:
        stream = torch.cuda.ExternalStream(int(workspace.device.stream))
        buffer = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(buffer, "NHD", use_tensor_cores=True)
        begins, pages, last = map(tensor, _page_lists(case))
        wrapper.plan(begins, pages, last, QUERY_HEADS, HEADS, HEAD_SIZE, PAGE_SIZE, q_data_type=torch.bfloat16,
                     kv_data_type=torch.bfloat16)
        cache = tensor(case.arrays["blocks"][:, :, case.numbers["layer"]])
        return FlashInferEntrant(wrapper, tensor(case.arrays["q"]), cache, stream, torch)
    except Exception as error:  # of other people's software
        raise Unavailable(f"FlashInfer failed: {error}") from error


# --- All of them -----------------------------------------------------------------------------------------------------


def list_contenders(work: Work, workspace: Workspace, pack: Pack, chip: str, triton_source: Path
                    ) -> dict[str, Callable[[], Entrant]]:
    """The contenders of a work, by name; each is called to get ready, or raises ``Unavailable``."""
    found: dict[str, Callable[[], Entrant]] = {OURS: lambda: enter_ours(work, workspace, pack, chip)}
    for peer in work.peers:
        found[peer.title] = lambda peer=peer: enter_peer(work, peer, workspace, pack, chip)
    for triton_peer in work.triton:
        found[triton_peer.title] = lambda peer=triton_peer: enter_triton(work, peer, workspace, triton_source)
    if work.name == "decode":
        found["FlashInfer"] = lambda: enter_flashinfer(workspace)
    return found
