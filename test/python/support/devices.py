"""Programs for the host, run by a thread block of a device.

The functions of the data tests take arrays and numbers and return numbers. Here the body of each
becomes a kernel, so that the tests of the CPU also test chips: on the emulator, and on other
devices with launches. All threads of the block run the same body, on the same arguments.
"""

import itertools
import re

import pytest

import kvcache

CHIPS = ("sm_80", "sm_90a", "sm_100a")
TARGETS = tuple(f"emulator:{chip}" for chip in CHIPS)



def spread(cases, with_cpu=False):
    """Assigns the chips to cases in turn, for ``parametrize``; ``with_cpu`` adds each case on the CPU."""
    cases = list(cases)
    on_cpu = [(case, "cpu") for case in cases if with_cpu]
    return [
        pytest.param(case, target, id=f"{case[0] if isinstance(case, tuple) and not isinstance(case[0], str) else case}-{target}")
        for case, target in [*on_cpu, *zip(cases, itertools.cycle(TARGETS))]
    ]


FUNCTION = re.compile(
    r"^func\.func @(?P<name>\w+)\((?P<parameters>.*?)\)(?: -> \(?(?P<results>[^{)]*?)\)?)? \{\n"
    r"(?P<body>.*?)\n\}$",
    re.DOTALL | re.MULTILINE,
)
RETURN = re.compile(r"^ *return\b *(?P<values>[^:\n]*)(?::.*)?\Z", re.MULTILINE)


def launch_function(match, threads):
    """Puts the body of a function in a launch; results go through managed memory."""
    body = match["body"].rstrip()
    found = list(RETURN.finditer(body))
    assert len(found) == 1, f"@{match['name']} has no return at its end: {body}"
    values = [v.strip() for v in found[0]["values"].split(",") if v.strip()]
    results = [t.strip() for t in (match["results"] or "").split(",") if t.strip()]
    assert len(values) == len(results), (values, results)
    slots = list(enumerate(zip(values, results)))
    # Results are read when the kernel is done.
    launch = (
        f"{'%device_done = gpu.launch async [%device_start]' if slots else 'gpu.launch'} blocks(%device_bx, %device_by, %device_bz) in "
        "(%device_gx = %device_one, %device_gy = %device_one, %device_gz = %device_one) "
        "threads(%device_tx, %device_ty, %device_tz) in "
        "(%device_sx = %device_threads, %device_sy = %device_one, %device_sz = %device_one) {"
    )
    lines = [
        "  %device_zero = arith.constant 0 : index",
        "  %device_one = arith.constant 1 : index",
        f"  %device_threads = arith.constant {threads} : index",
        *(
            f"  %device_slot{i} = gpu.alloc host_shared () : memref<1x{type}>"
            for i, (_, type) in slots
        ),
        *(["  %device_start = gpu.wait async"] if slots else []),
        f"  {launch}",
        body[: found[0].start()],
        *(
            f"  memref.store {value}, %device_slot{i}[%device_zero] : memref<1x{type}>"
            for i, (value, type) in slots
        ),
        "  gpu.terminator",
        "  }",
        *(["  gpu.wait [%device_done]"] if slots else []),
        *(
            f"  %device_result{i} = memref.load %device_slot{i}[%device_zero] : memref<1x{type}>\n"
            f"  gpu.dealloc %device_slot{i} : memref<1x{type}>"
            for i, (_, type) in slots
        ),
        "  return "
        + ", ".join(f"%device_result{i}" for i, _ in slots)
        + (f" : {', '.join(results)}" if results else ""),
    ]
    arrow = f" -> ({', '.join(results)})" if results else ""
    text = "\n".join(lines)
    return f"func.func @{match['name']}({match['parameters']}){arrow} {{\n{text}\n}}"


def on_device(text, threads=1):
    """Converts a module of functions to kernels of one thread block."""
    return FUNCTION.sub(lambda match: launch_function(match, threads), text)


def jit(text, target="cpu", threads=1, **options):
    """Calls ``kvcache.jit`` on functions that do their work on the target.

    Programs are not optimized by default: that takes far longer than they run, and the tested
    passes precede it.
    """
    options.setdefault("opt_level", 0)
    if target != "cpu":
        text = on_device(text, threads)
    return kvcache.jit(text, target=target, **options)


ALIAS = re.compile(r"^[!#][\w.]+ = .*$", re.MULTILINE)
PARAMETER = re.compile(r"%(\w+): ([^%]*?)(?:,\s*)?(?=%|\Z)", re.DOTALL)


def with_launcher(source, kernel, block):
    """Adds a function ``launch`` that launches a kernel of ``source``.

    Its arguments are the kernel's, then the thread blocks along x and y. ``block`` has the threads
    of a thread block along x and y.
    """
    signature = re.search(rf"gpu\.func @{kernel}\((.*?)\)\s+(?:workgroup|kernel)", source, re.DOTALL)
    parameters = [(name, type.strip()) for name, type in PARAMETER.findall(signature[1])]
    declared = "".join(f"%{name}: {type}, " for name, type in parameters)
    passed = ", ".join(f"%{name} : {type}" for name, type in parameters)
    launcher = f"""
func.func @launch({declared}%grid_x: index, %grid_y: index) {{
  %one = arith.constant 1 : index
  %block_x = arith.constant {block[0]} : index
  %block_y = arith.constant {block[1]} : index
  gpu.launch_func @kernels::@{kernel} blocks in (%grid_x, %grid_y, %one)
      threads in (%block_x, %block_y, %one) args({passed})
  return
}}"""
    # Aliases stand outside of modules.
    aliases = "\n".join(ALIAS.findall(source))
    rest = ALIAS.sub("", source)
    return f"{aliases}\nmodule attributes {{gpu.container_module}} {{\n{rest}{launcher}\n}}\n"
