"""Who takes part: our kernels, CUDA C++, Triton and FlashInfer, each ready to run on the same arrays."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from measure import Absent, Contender
from peers.triton_launches import Launch

from . import arguments, references
from .arguments import ArgumentError, Cache, DeviceArray, TensorMap, Values
from .cuda_device import CudaDevice, DeviceError, Grid
from .inputs import HEAD_SIZE, HEADS, LATENT_SIZE, PAGE_SIZE, QUERY_HEADS, Case
from .kernels import OURS, PEER, KernelImage, Pack
from .references import Arrays
from .works import Compare, CudaPeer, TritonPeer, Work


class Workspace:
    """A case's arrays on the device, and what is made for single contenders. Gives the memory back at the end."""

    def __init__(self, device: CudaDevice, case: Case) -> None:
        self.device, self.case = device, case
        self.expected = {}
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

    @property
    def outputs(self) -> dict[str, DeviceArray]:
        return {name: self.arrays[name] for name in self.case.outputs}

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

    def poison(self, arrays: Mapping[str, DeviceArray]) -> None:
        for array in arrays.values():
            self.device.fill(array.address, 0xFF, math.prod(array.shape) * array.itemsize)

    def read(self, arrays: Mapping[str, DeviceArray]) -> Arrays:
        results = {}
        for name, array in arrays.items():
            like = self.case.arrays.get(name)
            results[name] = np.empty(array.shape, np.float32 if like is None else like.dtype)
            self.device.download(results[name], array.address)
        return results

    def enter(
        self,
        title: str,
        compare: Compare,
        machine_code: tuple[bytes, str],
        geometry: tuple[Grid, Grid, int],
        encode: Callable[[int], list[bytes]],
        outputs: Mapping[str, DeviceArray] | None = None,
        collect: Callable[[Arrays], Arrays] = lambda results: results,
    ) -> Contender:
        """Loads a kernel, whose arguments have to have the sizes that its machine code says.

        Args:
            machine_code: The cubin, and the name of the kernel.
            geometry: The grid, the block, and the bytes of dynamic shared memory.
            encode: Makes the arguments of a kernel with so many parameters.
            outputs: The arrays that it writes, of which ``collect`` makes those of the case.
        """
        outputs = self.outputs if outputs is None else outputs
        grid, block, shared_bytes = geometry
        try:
            loaded = self.device.load(*machine_code, shared_bytes)
            sizes = self.device.list_parameters(loaded)
            values = encode(len(sizes))
            arguments.check(values, sizes, machine_code[1])
        except (ArgumentError, DeviceError) as error:
            raise Absent(str(error)) from error
        launch = self.device.prepare(loaded, grid, block, shared_bytes, values)
        return Contender(
            title,
            lambda turn: launch(),
            lambda: compare(self.expected, collect(self.read(outputs))),
            lambda: self.poison(outputs),
        )


def _find(pack: Pack, contender: str, source: str, chip: str) -> KernelImage:
    found = pack.find(contender, source, chip)
    if isinstance(found, str):
        raise Absent(found)
    return found


# --- Our kernels and CUDA C++ ----------------------------------------------------------------------------------------


def encode_parameters(image: KernelImage, values: Values, device: CudaDevice) -> list[bytes]:
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


def enter_ours(work: Work, workspace: Workspace, pack: Pack, chip: str) -> Contender:
    image = _find(pack, OURS, work.name, chip)
    if image.block is None:
        raise Absent(f"kernel {image.name} says no block size")
    return workspace.enter(
        OURS,
        work.compare,
        (pack.read(image), image.name),
        (work.grid(workspace.case, image.block), image.block, image.shared_bytes),
        lambda count: encode_parameters(image, workspace.values(), workspace.device),
    )


def enter_peer(work: Work, peer: CudaPeer, workspace: Workspace, pack: Pack, chip: str) -> Contender:
    image = _find(pack, PEER, peer.source, chip)

    def encode(count: int) -> list[bytes]:
        values = [arguments.encode_struct(peer.fields, peer.members, workspace.values())]
        return [workspace.device.encode(_make_row_map(workspace)), *values] if peer.takes_row_map else values

    return workspace.enter(
        peer.title,
        peer.compare or work.compare,
        (pack.read(image), image.name),
        (peer.grid(workspace.case), (peer.block, 1, 1), peer.shared_bytes),
        encode,
    )


def _make_row_map(workspace: Workspace) -> TensorMap:
    """The rows of a latent cache, each as nine swizzled pieces of 128 bytes."""
    rows = workspace.arrays["blocks"]
    count = math.prod(rows.shape) // LATENT_SIZE
    return TensorMap(rows.address, 2, (LATENT_SIZE, count), (LATENT_SIZE * 2,), (64, 1), "128b")


# --- Triton ----------------------------------------------------------------------------------------------------------

_POINTER_BYTES, _WORD_BYTES = 8, 4


def import_triton() -> ModuleType:
    try:
        return importlib.import_module("triton")
    except ImportError as error:
        raise Absent(f"Triton is not installed: {error}") from error


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


def enter_triton(work: Work, peer: TritonPeer, workspace: Workspace, source: Path) -> Contender:
    """Compiles, and launches the machine code like that of other contenders."""
    scratch = {name: workspace.allocate(shape, 4) for name, shape in peer.scratch(workspace.case).items()}
    known = {**workspace.values(), **scratch}
    names = [name for name, _ in peer.launch.arguments]
    values = [arguments.look_up(name, known) if isinstance(name, str) else name for name in names]
    try:
        compiled = compile_triton(peer.launch, source, values, workspace.device.facts.capability)
    except Absent:
        raise
    except Exception as error:  # whatever the compiler raises
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise Absent(f"Triton can't compile it: {reason[0]}") from error
    encoded = [arguments.encode_number(value, _POINTER_BYTES if type.startswith("*") else _WORD_BYTES)
               for value, (_, type) in zip(values, peer.launch.arguments)]
    metadata = compiled.metadata
    if any(getattr(metadata, f"{kind}_scratch_size", 0) for kind in ("global", "profile")):
        raise Absent("Triton's kernel needs memory of its own")
    return workspace.enter(
        peer.title,
        peer.compare or work.compare,
        (compiled.asm["cubin"], metadata.name),
        (peer.grid(workspace.case), (metadata.num_warps * 32, 1, 1), metadata.shared),
        # Pointers to such memory are its last parameters, one or two of them.
        lambda count: encoded + [bytes(_POINTER_BYTES)] * (count - len(encoded)),
        {name: array for name, array in workspace.outputs.items() if name in names} | scratch,
        peer.collect,
    )


# --- FlashInfer ------------------------------------------------------------------------------------------------------


def _list_pages(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each sequence's pages begin in a list of all, the list, and the tokens in the last page of each."""
    lengths, lut = case.arrays["lengths"], case.arrays["lut"]
    counts = -(-lengths // PAGE_SIZE)
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    pages = np.concatenate([lut[row, :count] for row, count in enumerate(counts)]).astype(np.int32)
    return begins, pages, (lengths - (counts - 1) * PAGE_SIZE).astype(np.int32)


def enter_flashinfer(workspace: Workspace) -> Contender:
    """Decode attention by FlashInfer. It merges its splits too, and so does a little more than the others."""
    try:
        torch = importlib.import_module("torch")
        flashinfer = importlib.import_module("flashinfer")
    except ImportError as error:
        raise Absent(f"FlashInfer or PyTorch is not installed: {error}") from error
    case, outs = workspace.case, {}
    if (case.arrays["lengths"] == 0).any():
        raise Absent("FlashInfer expects sequences that have a token")

    def move(array: np.ndarray) -> Any:
        signed = array.view(np.int16) if array.dtype == np.uint16 else array
        moved = torch.from_numpy(np.ascontiguousarray(signed)).cuda()
        return moved.view(torch.bfloat16) if array.dtype == np.uint16 else moved

    try:
        stream = torch.cuda.ExternalStream(int(workspace.device.stream))
        buffer = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(buffer, "NHD", use_tensor_cores=True)
        begins, pages, last = map(move, _list_pages(case))
        wrapper.plan(begins, pages, last, QUERY_HEADS, HEADS, HEAD_SIZE, PAGE_SIZE, q_data_type=torch.bfloat16,
                     kv_data_type=torch.bfloat16)
        query, cache = move(case.arrays["q"]), move(case.arrays["blocks"][:, :, case.numbers["layer"]])
    except Exception as error:  # of other people's software
        raise Absent(f"FlashInfer failed: {error}") from error

    def call(turn: int) -> None:
        with torch.cuda.stream(stream):
            outs["last"] = wrapper.run(query, cache)

    def check() -> str | None:
        torch.cuda.synchronize()
        attention = outs["last"].float().cpu().numpy().reshape(-1, HEADS, QUERY_HEADS // HEADS, HEAD_SIZE)
        return references.compare_merged(workspace.expected, {"attention": attention})

    return Contender("FlashInfer", call, check, outs.clear)


# --- All of them -----------------------------------------------------------------------------------------------------


def list_contenders(work: Work, workspace: Workspace, pack: Pack, chip: str, triton_source: Path
                    ) -> dict[str, Callable[[], Contender]]:
    """The contenders of a work, by name; each is called to get ready, or raises ``Absent``."""
    found: dict[str, Callable[[], Contender]] = {OURS: lambda: enter_ours(work, workspace, pack, chip)}
    for peer in work.peers:
        found[peer.title] = lambda peer=peer: enter_peer(work, peer, workspace, pack, chip)
    for triton_peer in work.triton:
        found[triton_peer.title] = lambda peer=triton_peer: enter_triton(work, peer, workspace, triton_source)
    if work.name == "decode":
        found["FlashInfer"] = lambda: enter_flashinfer(workspace)
    return found
