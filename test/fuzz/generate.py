"""Random programs over a cache that are right: their types fit, their indices are in range.

A module has the programs of one shape of a cache. Each is a function of the cache, a
layer, some indices below bounds that are known here, and the logs.
"""

import random
from dataclasses import dataclass, field

from access_statements import AccessStatements
from control_statements import ControlStatements
from model import FORMATS
from program import MASK, Block, Index, Logs, Scope
from programs import Shape, Source
from quantized_programs import FORMATS_OF_CACHES, QuantizedShape
from query_statements import QueryStatements
from tile_statements import TileStatements

PAGE_SIZES = (1, 2, 3, 4, 8, 16, 48, 64)
HEAD_SIZES = (1, 3, 4, 8, 12, 16, 24, 32, 40, 48, 64, 72, 96, 128)


@dataclass(frozen=True)
class Sizes:
    """What the types leave open, the same for all runs of a module."""

    batch: int
    columns: int
    layers: int
    pages: int
    tokens: int  # that a sequence has room for


@dataclass
class Program:
    """A function with the meaning of its steps."""

    name: str
    body: Block
    bounds: dict[str, int | None]  # of its indices
    whole_rows: bool  # between pages: it copies into tiles, or counts rows


@dataclass
class Module:
    """Programs over one shape, the sizes they are right for, and their logs."""

    seed: int
    shape: Shape
    sizes: Sizes
    packed: bool
    source: Source
    logs: Logs
    programs: list[Program] = field(default_factory=list)


class Generator(AccessStatements, QueryStatements, ControlStatements, TileStatements):
    """Writes the body of one function."""

    def __init__(self, rng, shape, sizes, source, logs, name):
        self.rng, self.shape, self.sizes = rng, shape, sizes
        self.source, self.logs, self.name = source, logs, name
        self.prelude = Block()
        self.constants = {}
        self.num_names = 0
        self.budget = rng.choice((3, 6, 6, 10, 16))
        self.copies = self.whole_rows = rng.random() < 0.4

    def fresh(self, hint="v"):
        self.num_names += 1
        return f"%{hint}{self.num_names}"

    def chance(self, probability):
        return self.rng.random() < probability

    # Indices

    def constant(self, value):
        if value not in self.constants:
            name = f"%n{value}"
            self.constants[value] = name
            self.prelude.add(
                f"{name} = arith.constant {value} : index",
                lambda state: state.values.__setitem__(name, value),
            )
        return self.constants[value]

    def index(self, block, scope, bound):
        """A value below ``bound``."""
        fitting = [i for i in scope.indices if i.bound is not None and i.bound <= bound]
        choice = self.rng.random()
        if fitting and choice < 0.6:
            return self.rng.choice(fitting).name
        if not scope.indices or choice < 0.8:
            return self.constant(self.rng.randrange(bound))
        return self.wrap(block, scope, self.rng.choice(scope.indices).name, bound)

    def wrap(self, block, scope, value, bound):
        """``value`` modulo ``bound``, or the least of it and what is below."""
        result, op = self.fresh("i"), self.rng.choice(("remui", "minui"))
        limit = bound if op == "remui" else bound - 1
        limit = self.constant(limit)

        def step(state):
            x = state[value]
            state[result] = x % bound if op == "remui" else min(x, bound - 1)

        block.add(f"{result} = arith.{op} {value}, {limit} : index", step)
        scope.indices.append(Index(result, bound))
        return result

    def multiple(self, block, scope, count, unit):
        """A multiple of ``unit`` below ``count * unit``."""
        value = self.index(block, scope, count)
        if unit == 1:
            return value
        result, by = self.fresh("i"), self.constant(unit)

        def step(state):
            state[result] = state[value] * unit

        block.add(f"{result} = arith.muli {value}, {by} : index", step)
        scope.indices.append(Index(result, (count - 1) * unit + 1))
        return result

    def flag(self, block, scope):
        if scope.flags and self.chance(0.4):
            return self.rng.choice(scope.flags)
        result = self.fresh("f")
        predicate = self.rng.choice(("eq", "ne", "ult", "ule", "ugt", "uge"))
        left, right = (self.index(block, scope, 4) for _ in range(2))
        compare = {
            "eq": int.__eq__,
            "ne": int.__ne__,
            "ult": int.__lt__,
            "ule": int.__le__,
            "ugt": int.__gt__,
            "uge": int.__ge__,
        }[predicate]

        def step(state):
            state[result] = compare(int(state[left]), int(state[right]))

        block.add(f"{result} = arith.cmpi {predicate}, {left}, {right} : index", step)
        scope.flags.append(result)
        return result

    # Logs

    def log_place(self, block, scope, dtype, count):
        """A place for ``count`` elements: one for each round of the innermost loop."""
        counter = scope.counters[-1] if scope.counters and self.chance(0.7) else None
        if not counter:
            return self.constant(self.logs.reserve(dtype, count))
        first = self.logs.reserve(dtype, count * counter.bound)
        scaled, place = self.fresh("i"), self.fresh("i")
        by, base = self.constant(count), self.constant(first)

        def step(state):
            state[place] = first + count * state[counter.name]

        block.add(f"{scaled} = arith.muli {counter.name}, {by} : index")
        block.add(f"{place} = arith.addi {scaled}, {base} : index", step)
        return place

    def log_index(self, block, scope, value):
        place = self.log_place(block, scope, "index", 1)

        def step(state):
            state.logs["index"].bits[state[place]] = state[value] & MASK

        block.add(f"memref.store {value}, %log_index[{place}] : memref<?xindex>", step)

    # Blocks

    def statements(self, block, scope, depth, most):
        """Adds some statements while there is a budget."""
        for _ in range(self.rng.randint(1, most)):
            if self.budget <= 0:
                return
            self.budget -= 1
            self.choose(depth)(block, scope, depth)

    def choose(self, depth):
        kinds = [*self.access_kinds(), *self.query_kinds(), *(self.tile_kinds(depth) if self.copies else [])]
        if depth < 3:
            kinds += self.control_kinds()
        weights, functions = zip(*kinds, strict=True)
        return self.rng.choices(functions, weights)[0]

    def write(self):
        """Adds the function to the source."""
        rng = self.rng
        scope = Scope()
        bounds = {}
        for i in range(rng.randint(1, 4)):
            bound = rng.choice((2, 3, 4, 7, self.sizes.tokens, None))
            bounds[f"a{i}"] = bound
            scope.indices.append(Index(f"%a{i}", bound))
        scope.indices.append(Index("%layer", self.sizes.layers))
        views = ["%k = key"] if self.shape.mla else ["%k = key", "%v = value"]
        scope.caches = [view.split()[0] for view in views]
        body = Block()
        while self.budget > 0:
            self.statements(body, scope, 0, 8)
        whole = Block(
            self.prelude.lines + body.lines, self.prelude.steps + body.steps
        )
        return Program(self.name, whole, bounds, self.whole_rows), views


def choose_shape(rng):
    """The type of a cache, and whether blocks are packed."""
    is_quantized = rng.random() < 0.4
    page_size = rng.choice(PAGE_SIZES)
    heads = rng.choice((1, 1, 2, 3, 4))
    mla = rng.random() < 0.15
    is_open = rng.random() < 0.2
    head_size = rng.choice(HEAD_SIZES)
    if is_quantized:
        dtype, scale = rng.choice(FORMATS_OF_CACHES)
        granularity = rng.choice((4, 8, 16, 32, head_size, 5))
        if dtype == "f4E2M1FN":
            granularity = 16 if scale == "f8E4M3FN" else 32
            head_size += head_size % 2
        return QuantizedShape(
            dtype,
            heads,
            head_size,
            page_size,
            mla,
            scale=scale,
            granularity=granularity,
            own_table=rng.random() < 0.3,
            is_open=is_open,
        )
    dtype = rng.choice(list(FORMATS))
    if rng.random() < 0.25:
        return Shape(dtype, heads, head_size, None, mla)
    return Shape(dtype, heads, head_size, page_size, mla, is_open=is_open)


def choose_sizes(rng, shape, packed):
    """A packed table has 32 bytes in a row, of which chips read all at once."""
    batch, layers = rng.randint(1, 3), rng.randint(1, 3)
    columns = 8 if packed else rng.randint(1, 4)
    if not shape.page_size:
        tokens = rng.randint(1, 24)
        return Sizes(batch, columns, layers, batch + rng.randint(0, 2), tokens)
    pages = batch * columns + rng.randint(0, 2)
    return Sizes(batch, columns, layers, pages, columns * shape.page_size)


def generate(seed, count):
    """A module of ``count`` programs."""
    rng = random.Random(seed)
    shape = choose_shape(rng)
    packed = rng.random() < 0.3
    sizes = choose_sizes(rng, shape, packed)
    source = Source(shape, packed)
    logs = Logs()
    for dtype in {shape.dtype, "index"}:
        logs.reserve(dtype, 1)
    module = Module(seed, shape, sizes, packed, source, logs)
    written = []
    for number in range(count):
        name = f"p{number}"
        generator = Generator(rng, shape, sizes, source, logs, name)
        program, views = generator.write()
        module.programs.append(program)
        written.append((program, views))
    # All logs are known now.
    for program, views in written:
        source.add(
            program.name,
            [
                *(f"{name}: index" for name in program.bounds),
                "ids: memref<?xi32>",
                *logs.parameters(),
            ],
            program.body.text + "  return",
            views=", ".join(views),
        )
    return module


def draw_arguments(rng, program, sizes):
    """Values for the layer and the indices of a program, by name."""
    values = {"%layer": rng.randrange(sizes.layers)}
    for name, bound in program.bounds.items():
        wild = rng.choice((0, 1, rng.getrandbits(31), rng.getrandbits(63)))
        values[f"%{name}"] = wild if bound is None else rng.randrange(bound)
    return values
