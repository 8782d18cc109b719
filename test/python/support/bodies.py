"""Bodies of functions over a cache that several tests use.

They are written for `Source.add`: the view is ``%k``, and ``%c0`` and ``%c1`` exist.
"""


def lanes(width, dtype):
    """The type of an access; a scalar for width 0."""
    return f"vector<{width}x{dtype}>" if width else dtype


def take(value, memref, type, at="%c0"):
    """The text that reads a scalar or a vector from a memref: its value and its type."""
    if type.startswith("vector"):
        return f"  {value} = vector.load {memref[0]}[{at}] : {memref[1]}, {type}\n"
    return f"  {value} = memref.load {memref[0]}[{at}] : {memref[1]}\n"


def give(value, memref, type, at="%c0"):
    """The text that writes a scalar or a vector to a memref."""
    if type.startswith("vector"):
        return f"  vector.store {value}, {memref[0]}[{at}] : {memref[1]}, {type}\n"
    return f"  memref.store {value}, {memref[0]}[{at}] : {memref[1]}\n"


CONSTANTS = """
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index"""


def read_all(width, result):
    """Loads every element of every token into ``%out[b, t, h, d]``; needs CONSTANTS."""
    step, type, out = max(width, 1), lanes(width, result), f"memref<?x?x?x?x{result}>"
    store = "vector.store" if width else "memref.store"
    of = f"{out}, {type}" if width else out
    return (
        ["batch: index", "tokens: index", f"out: {out}"],
        f"""
  %heads = memref.dim %out, %c2 : {out}
  %size = memref.dim %out, %c3 : {out}
  %step = arith.constant {step} : index
  scf.for %b = %c0 to %batch step %c1 {{
    scf.for %t = %c0 to %tokens step %c1 {{
      scf.for %h = %c0 to %heads step %c1 {{
        scf.for %d = %c0 to %size step %step {{
          %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> {type}
          {store} %v, %out[%b, %t, %h, %d] : {of}
        }}
      }}
    }}
  }}
  return""",
    )


def write_all(width, dtype):
    """Stores ``%out[b, t, h, d]`` to every element of every token."""
    parameters, body = read_all(width, dtype)
    type, memref = lanes(width, dtype), f"memref<?x?x?x?x{dtype}>"
    lines = body.splitlines()
    place = next(i for i, line in enumerate(lines) if "kvcache.load" in line)
    load = "vector.load" if width else "memref.load"
    of = f"{memref}, {type}" if width else memref
    lines[place : place + 2] = [
        f"          %v = {load} %out[%b, %t, %h, %d] : {of}",
        f"          kvcache.store %v, %k[%b, %h, %t, %d] : {type}, !cache",
    ]
    return parameters, "\n".join(lines)
