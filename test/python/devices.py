"""Programs for the host, run by one thread of a device.

The functions of the data tests take arrays and numbers and return numbers. Here the
body of each becomes a kernel of one thread, so that the tests of the CPU run what chips
run: on the emulator, and wherever else host code can launch.
"""

import re

CHIPS = ("sm_80", "sm_90a", "sm_100a")
TARGETS = tuple(f"emulator:{chip}" for chip in CHIPS)

FUNCTION = re.compile(
    r"^func\.func @(?P<name>\w+)\((?P<parameters>.*?)\)(?: -> \(?(?P<results>[^{)]*?)\)?)? \{\n"
    r"(?P<body>.*?)\n\}$",
    re.DOTALL | re.MULTILINE,
)
RETURN = re.compile(r"^ *return\b *(?P<values>[^:\n]*)(?::.*)?\Z", re.MULTILINE)


def launch_function(match):
    """The function with its body in a launch; results go through managed memory."""
    body = match["body"].rstrip()
    found = list(RETURN.finditer(body))
    assert len(found) == 1, f"@{match['name']} has no return at its end: {body}"
    values = [v.strip() for v in found[0]["values"].split(",") if v.strip()]
    results = [t.strip() for t in (match["results"] or "").split(",") if t.strip()]
    assert len(values) == len(results), (values, results)
    slots = list(enumerate(zip(values, results)))
    launch = (
        "gpu.launch blocks(%device_bx, %device_by, %device_bz) in "
        "(%device_gx = %device_one, %device_gy = %device_one, %device_gz = %device_one) "
        "threads(%device_tx, %device_ty, %device_tz) in "
        "(%device_sx = %device_one, %device_sy = %device_one, %device_sz = %device_one) {"
    )
    lines = [
        "  %device_zero = arith.constant 0 : index",
        "  %device_one = arith.constant 1 : index",
        *(
            f"  %device_slot{i} = gpu.alloc host_shared () : memref<1x{type}>"
            for i, (_, type) in slots
        ),
        f"  {launch}",
        body[: found[0].start()],
        *(
            f"  memref.store {value}, %device_slot{i}[%device_zero] : memref<1x{type}>"
            for i, (value, type) in slots
        ),
        "  gpu.terminator",
        "  }",
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


def on_device(text):
    """The module of functions ``text``, with each body in a kernel of one thread."""
    return FUNCTION.sub(launch_function, text)
