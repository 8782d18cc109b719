"""Statements with tiles: copies into them, and what lies where."""

import re

import numpy as np
from program import Block, Index, Lanes, uint_of
from swizzles import NAMES, PATTERNS, SWIZZLES


class TileStatements:
    """Mixed into the generator."""

    def tile_kinds(self, depth):
        if not self.tile_types():
            return []
        kinds = [(2, self.load_tile), (2, self.gather_tile), (1, self.write_tile)]
        return [*kinds, (2, self.pipe)] if depth == 0 else kinds

    # Types

    @property
    def stored_dtype(self):
        """The element type of tiles, and elements of a head in it."""
        return getattr(self.shape, "stored_dtype", self.shape.dtype)

    @property
    def stored_size(self):
        return self.shape.head_size // self.per_byte

    def stored_view(self, view):
        return view.elements if self.shape.quantization else view

    def tile_types(self):
        """(rows, columns, swizzle) of the tiles that fit a head."""
        size = uint_of(self.stored_dtype).itemsize
        rows = [n for n in (1, 2, 3, 4, 8, 16, 24) if n <= self.sizes.tokens + 8]
        found = []
        for swizzle, span in SWIZZLES.items():
            unit = max(span, 16) // size
            for columns in range(unit, self.stored_size + 1, unit):
                is_one_chunk = swizzle == "none" or columns == unit
                found += [
                    (n, columns, swizzle)
                    for n in rows
                    if n % 8 == 0 or is_one_chunk
                ]
        return found

    def choose_tile(self, most_rows=None):
        types = [t for t in self.tile_types() if not most_rows or t[0] <= most_rows]
        rows, columns, swizzle = self.rng.choice(types)
        text = f"!kvcache.tile<{rows}x{columns}x{self.stored_dtype}{NAMES[swizzle]}>"
        return rows, columns, swizzle, text

    def first_element(self, block, scope, columns):
        """An element at a multiple of 16 bytes from which so many columns are left."""
        unit = 16 // uint_of(self.stored_dtype).itemsize
        count = (self.stored_size - columns) // unit + 1
        return self.multiple(block, scope, count, unit * self.per_byte)

    @property
    def per_byte(self):
        """Elements of the cache in one of a tile."""
        return getattr(self.shape, "per_byte", 1)

    # Copies. Each gives its op's text and the rows that it leaves.

    def hint(self):
        """How long a copy keeps what it reads in the L2 cache, which changes no result."""
        if self.chance(0.7):
            return ""
        priority = self.rng.choice(["first", "normal", "last"])
        return f" {{l2_hint = #kvcache.eviction<evict_{priority}>}}"

    def dense_copy(self, block, scope, tile, type, rows, columns):
        cache = self.rng.choice(scope.caches)
        tokens, d = self.sizes.tokens, self.first_element(block, scope, columns)
        b = self.index(block, scope, self.sizes.batch)
        h = self.index(block, scope, self.shape.heads)
        if rows <= tokens and self.chance(0.4):
            t, valid, read = self.index(block, scope, tokens - rows + 1), None, rows
        else:
            read = self.rng.randint(0, min(tokens, rows + 2))
            t = self.index(block, scope, tokens - read + 1)
            valid = self.index(block, scope, read + 1)
        given = f" valid {valid}" if valid else ""

        def meaning(state):
            view = self.stored_view(state[cache])
            count = min(state[valid] if valid else rows, rows)
            result = np.zeros((rows, columns), view.memory.dtype)
            first = state[d] // self.per_byte
            for row in range(count):
                result[row] = view.read(state[b], state[h], state[t] + row, first, columns)
            return result

        text = (
            f"kvcache.async_load_tile {cache}[{b}, {h}, {t}, {d}]{given} to {tile}"
            f"{self.hint()} : !cache, {type}"
        )
        return text, meaning

    def sparse_copy(self, block, scope, tile, type, rows, columns):
        cache, d = self.rng.choice(scope.caches), self.first_element(block, scope, columns)
        h = self.index(block, scope, self.shape.heads)
        first = self.rng.randint(0, 4)
        ids = self.fresh("ids")
        stride = "strided<[1]>" if not first else f"strided<[1], offset: {first}>"
        memref = f"memref<{rows}xi32, {stride}>"
        block.add(
            f"{ids} = memref.reinterpret_cast %ids to offset: [{first}], sizes: [{rows}], "
            f"strides: [1] : memref<?xi32> to {memref}"
        )

        def meaning(state):
            view = self.stored_view(state[cache])
            result = np.zeros((rows, columns), view.memory.dtype)
            for row, encoded in enumerate(state["ids"][first : first + rows].tolist()):
                page, inside = divmod(encoded, view.page_size)
                if self.shape.page_size is None:
                    # A row of all blocks, one after another.
                    page, inside = divmod(encoded, view.row_distance)
                    if inside >= view.page_size:
                        continue
                if 0 <= page < view.pages:
                    start = view.base + page * view.page_distance + inside * view.row
                    start += state[h] * view.head_size + state[d] // self.per_byte
                    result[row] = view.memory[start : start + columns]
            return result

        text = (
            f"kvcache.async_gather_tile {cache}[{h}, {d}] rows {ids} to {tile}{self.hint()} : "
            f"!cache, {memref}, {type}"
        )
        return text, meaning

    def load_tile(self, block, scope, depth):
        self.copy_tile(block, scope, self.dense_copy)

    def gather_tile(self, block, scope, depth):
        if not self.shape.page_size:
            # Rows between the blocks are other layers': left out here.
            return self.load_tile(block, scope, depth)
        self.copy_tile(block, scope, self.sparse_copy)

    def copy_tile(self, block, scope, copy):
        rows, columns, swizzle, type = self.choose_tile()
        tile, token = self.fresh("tile"), self.fresh("token")
        block.add(f"{tile} = kvcache.alloc_tile : {type}")
        text, meaning = copy(block, scope, tile, type, rows, columns)
        block.add(f"{token} = {text}", lambda state: state.values.__setitem__(tile, meaning(state)))
        block.add(f"kvcache.wait {token}")
        self.read_tile(block, scope, tile, type, rows, columns)
        if self.chance(0.4):
            self.read_bytes(block, scope, tile, type, rows, columns, swizzle)

    # What tiles hold

    def tile_width(self):
        size = uint_of(self.stored_dtype).itemsize
        return self.rng.choice([w for w in (0, 1, 2, 4, 8, 16) if w * size <= 16])

    def read_tile(self, block, scope, tile, type, rows, columns):
        from bodies import lanes

        for _ in range(self.rng.randint(1, 3)):
            width, name = self.tile_width(), self.fresh("x")
            count = max(width, 1)
            i = self.index(block, scope, rows)
            j = self.multiple(block, scope, columns // count, count)

            def step(state, name=name, i=i, j=j, count=count):
                state[name] = Lanes(state[tile][state[i], state[j] : state[j] + count].copy())

            block.add(
                f"{name} = kvcache.tile_load {tile}[{i}, {j}] : {type} -> "
                f"{lanes(width, self.stored_dtype)}",
                step,
            )
            scope.add_value(width, self.stored_dtype, name)
            self.log(block, scope, name, width, self.stored_dtype)

    def read_bytes(self, block, scope, tile, type, rows, columns, swizzle):
        """A byte of the memory, and where an element is."""
        size = rows * columns * uint_of(self.stored_dtype).itemsize
        memref = f"memref<{size}xi8, #gpu.address_space<workgroup>>"
        memory, name = self.fresh("memory"), self.fresh("x")
        block.add(f"{memory} = kvcache.tile_memory {tile} : {type} -> {memref}")
        at = self.index(block, scope, size)

        def step(state):
            state[name] = Lanes(stored_byte(state[tile], swizzle, state[at]))

        block.add(f"{name} = memref.load {memory}[{at}] : {memref}", step)
        self.log(block, scope, name, 0, "i8")

    def write_tile(self, block, scope, depth):
        """Stores to a tile, and loads what was stored."""
        from bodies import lanes

        rows, columns, _, type = self.choose_tile()
        tile, width = self.fresh("tile"), self.tile_width()
        count = max(width, 1)
        block.add(f"{tile} = kvcache.alloc_tile : {type}")
        i = self.index(block, scope, rows)
        j = self.multiple(block, scope, columns // count, count)
        value = self.some_value(block, scope, width, self.stored_dtype)
        name = self.fresh("x")
        text = lanes(width, self.stored_dtype)
        block.add(f"kvcache.tile_store {value}, {tile}[{i}, {j}] : {text}, {type}")
        block.add(
            f"{name} = kvcache.tile_load {tile}[{i}, {j}] : {type} -> {text}",
            lambda state: state.values.__setitem__(name, state[value]),
        )
        self.log(block, scope, name, width, self.stored_dtype)

    # Pipes

    def pipe(self, block, scope, depth):
        """Tiles that are produced some slots before they are consumed."""
        rng = self.rng
        rows, columns, _, type = self.choose_tile(self.sizes.tokens)
        stages = rng.randint(1, 4)
        ahead = rng.randint(0, stages - 1)
        tiles = rng.randint(1, 2)
        types = ", ".join([type] * tiles)
        ring, ring_type = self.fresh("ring"), f"!kvcache.pipe<{stages}, {types}>"
        block.add(f"{ring} = kvcache.pipe : {ring_type}")
        total = self.index(block, scope, 5)
        zero, one, distance = self.constant(0), self.constant(1), self.constant(ahead)

        # The copies depend on the number of the filling alone.
        number, names = self.fresh("i"), [self.fresh("tile") for _ in range(tiles)]
        outer = scope.nested()
        outer.indices = [i for i in outer.indices if i.bound is not None]
        fill = Block()
        outer.indices.append(Index(number, 5))
        meanings = []
        for name in names:
            copy = self.dense_copy
            if self.shape.page_size and self.chance(0.3):
                copy = self.sparse_copy
            text, meaning = copy(fill, outer, name, type, rows, columns)
            fill.add(text)
            meanings.append(meaning)
        arguments = ", ".join(f"{name}: {type}" for name in names)

        def produce(value):
            """The filling of slot ``value``, with values of its own."""
            text = re.sub(rf"{number}\b", value, fill.text)
            return f"kvcache.produce {ring}[{value}] : {ring_type} {{\n^bb0({arguments}):\n{text}}}"

        first, counter, next_, more = (self.fresh("i") for _ in range(4))
        start = self.fresh("i")
        block.add(f"{first} = arith.minui {distance}, {total} : index")
        block.add(f"scf.for {start} = {zero} to {first} step {one} {{\n{produce(start)}\n}}")

        inner, nested = Block(), scope.nested()
        nested.indices.append(Index(counter, 5))
        nested.counters.append(Index(counter, 5))
        for name in names:
            self.read_tile(inner, nested, name, type, rows, columns)

        def step(state):
            for i in range(state[total]):
                state[number] = state[counter] = i
                # Addresses first, then all of the copies.
                fill.run(state)
                for name, meaning in zip(names, meanings, strict=True):
                    state[name] = meaning(state)
                inner.run(state)

        block.add(
            f"scf.for {counter} = {zero} to {total} step {one} {{\n"
            f"  {next_} = arith.addi {counter}, {distance} : index\n"
            f"  {more} = arith.cmpi ult, {next_}, {total} : index\n"
            f"  scf.if {more} {{\n{produce(next_)}\n  }}\n"
            f"  kvcache.consume {ring}[{counter}] : {ring_type} {{\n"
            f"  ^bb0({arguments}):\n{inner.text}  }}\n}}",
            step,
        )


def stored_byte(tile, swizzle, at):
    """Byte ``at`` of a tile's memory, by the pattern of its lines of 128 bytes."""
    bytes_ = np.ascontiguousarray(tile).view(np.uint8)
    span = bytes_.shape[1] if swizzle == "none" else SWIZZLES[swizzle]
    plain = bytes_.reshape(len(tile), -1, span).swapaxes(0, 1).reshape(-1)
    line, inside = divmod(at, 128)
    unit = PATTERNS[swizzle][line % 8].index(str(inside // 16))
    start = 128 * line + 16 * unit + inside % 16
    return plain[start : start + 1].copy()
