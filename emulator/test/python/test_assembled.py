"""ptxas takes the kernels of the emulator's tests with clusters, wgmma and tcgen05, the wrong ones too."""

import re
import sys

import pytest
import test_tensor_memory
import test_tensor_memory_copies
import test_tensor_products
from compiled import check_assembled, needs_ptxas
from places import ROOT
from tensor_products import write_program

sys.path.append(str(ROOT / "emulator/test"))
import add_launches  # noqa: E402

FOLDER = ROOT / "emulator/test/Runtime"
INSTRUCTIONS = re.compile(r"\bnvvm\.(tcgen05|wgmma|cluster|mapa)\b|multicast_mask|cta_group")
# ptxas repairs some of the wrong kernels of wgmma, and says so. In right ones it adds a fence where a
# group takes registers over in a loop, or after a wait for an mbarrier; the PTX ISA requires none.
MESSAGES = {
    "wgmma.mlir": {"C7519"},
    "wgmma-errors.mlir": {"C7511", "C7514", "C7517", "C7519"},
    "products-errors.mlir": {"C7514", "C7517", "C7519"},
}

PROGRAMS = {
    "loads": lambda: test_tensor_memory.write_program("load"),
    "stores": lambda: test_tensor_memory.write_program("store"),
    "copies": lambda: test_tensor_memory_copies.write_program(1),
    "copies by pairs": lambda: test_tensor_memory_copies.write_program(2),
    "products": lambda: write_program(test_tensor_products.list_kernels(1, False)),
    "products with scales": lambda: write_program(test_tensor_products.list_kernels(1, True)),
    "products by pairs": lambda: write_program(test_tensor_products.list_kernels(2, False)),
    "products by pairs with scales": lambda: write_program(test_tensor_products.list_kernels(2, True)),
}


def read(path):
    """The text of a test, complete if it has parts elsewhere."""
    text = path.read_text()
    return add_launches.complete(path) if "%add_launches" in text else text


def list_files():
    return [path for path in sorted(FOLDER.glob("*.mlir")) if INSTRUCTIONS.search(read(path))]


@needs_ptxas
@pytest.mark.parametrize("path", list_files(), ids=lambda path: path.name)
def test_files(path, tmp_path):
    text = read(path)
    chip = "sm_100a" if re.search("tcgen05|cta_group", text) else "sm_90a"
    check_assembled(text, chip, tmp_path, MESSAGES.get(path.name, ()))


# 54 kernels each.
SLOW = {"loads", "stores"}


@needs_ptxas
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PROGRAMS])
def test_programs(name, tmp_path):
    check_assembled(PROGRAMS[name](), "sm_100a", tmp_path)
