"""Statements that read and write elements and scales."""

import numpy as np
from bodies import lanes
from program import Lanes, LogArray, logged, uint_of
from programs import DTYPES
from quantization import RESULTS, pack

WIDTHS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)
PLAIN = ("f32", "f16", "bf16", "f8E4M3FN", "f8E5M2")


def count_of(width):
    return max(width, 1)


class AccessStatements:
    """Mixed into the generator."""

    def access_kinds(self):
        kinds = [(4, self.load), (4, self.store), (2, self.block_tile), (1, self.copy_value)]
        if self.shape.quantization:
            kinds += [
                (3, self.load_quantized),
                (2, self.load_scale),
                (2, self.store_scale),
                (2, self.dequantize),
                (1, self.scales_view),
                (3, self.store_quantized),
            ]
        return kinds

    # Places

    def place(self, block, scope, width):
        """Indices (b, h, t, d) of an access of so many lanes."""
        rows = [
            self.index(block, scope, self.sizes.batch),
            self.index(block, scope, self.shape.heads),
            self.index(block, scope, self.sizes.tokens),
        ]
        count = count_of(width)
        return [*rows, self.multiple(block, scope, self.shape.head_size // count, count)]

    def scale_place(self, block, scope, width):
        """The same for scales: the first group is a multiple of the lanes."""
        *rows, _ = self.place(block, scope, self.shape.head_size)
        count = count_of(width)
        unit = count * self.shape.granularity
        d = self.multiple(block, scope, self.shape.groups // count, unit)
        return [*rows, d]

    def page(self, block, cache, place, is_scale=False):
        """The text of a page operand, or nothing."""
        if not self.chance(0.15) or (is_scale and self.shape.own_table):
            return ""
        page = self.fresh("page")
        block.add(f"{page} = kvcache.page_id {cache}[{place[0]}, {place[2]}] : !cache")
        return f" page {page}" if not is_scale else f" scale_page {page}"

    def width(self, most=None):
        most = self.shape.head_size if most is None else most
        widths = [w for w in WIDTHS if w <= most] + [most]
        if self.shape.dtype == "f4E2M1FN":
            widths = [w for w in widths if w and w % 2 == 0]
        return self.rng.choice(widths)

    def scale_width(self):
        return self.rng.choice(self.shape.scale_widths())

    # Values

    def log(self, block, scope, value, width, dtype):
        """Logs a value; it can't be used in conversions of 4 bits alone."""
        type, count = lanes(width, dtype), count_of(width)
        if dtype == "f4E2M1FN":
            place = self.log_place(block, scope, dtype, count // 2)
            bytes_, packed = f"vector<{count // 2}xi8>", self.fresh("bytes")
            block.add(f"{packed} = vector.bitcast {value} : {type} to {bytes_}")
            text = f"vector.store {packed}, %log_{dtype}[{place}] : memref<?xi8>, {bytes_}"
        else:
            place = self.log_place(block, scope, dtype, count)
            memref = f"memref<?x{logged(dtype)}>"
            kind, of = ("vector", f"{memref}, {type}") if width else ("memref", memref)
            text = f"{kind}.store {value}, %log_{dtype}[{place}] : {of}"

        def step(state):
            written = state[value]
            if dtype == "f4E2M1FN":
                written = Lanes(pack(written.bits))
            state.logs[dtype].write(state[place], written)

        block.add(text, step)

    def some_value(self, block, scope, width, dtype):
        """A value of a type whose bits are known."""
        known = scope.values.get((width, dtype))
        if known and self.chance(0.7):
            return self.rng.choice(known)
        result, type = self.fresh("x"), lanes(width, dtype)
        bits = self.random_bits(count_of(width), dtype)
        digits = {1: 2, 2: 4, 4: 8, 8: 16}[bits.dtype.itemsize]
        if dtype == "f4E2M1FN":
            bytes_ = pack(bits)
            text = ", ".join(str(b) for b in bytes_.view(np.int8).tolist())
            raw, half = self.fresh("raw"), f"vector<{bytes_.size}xi8>"
            block.add(f"{raw} = arith.constant dense<[{text}]> : {half}")
            block.add(f"{result} = vector.bitcast {raw} : {half} to {type}")
        else:
            if dtype == "i8":
                texts = [str(b) for b in bits.view(np.int8).tolist()]
            else:
                texts = [f"0x{b:0{digits}X}" for b in bits.tolist()]
            text = f"dense<[{', '.join(texts)}]>" if width else texts[0]
            block.add(f"{result} = arith.constant {text} : {type}")
        block.steps.append(lambda state: state.values.__setitem__(result, Lanes(bits)))
        scope.add_value(width, dtype, result)
        return result

    def random_bits(self, count, dtype):
        uint = uint_of(dtype)
        limit = 16 if dtype == "f4E2M1FN" else 1 << 8 * uint.itemsize
        return np.array([self.rng.randrange(limit) for _ in range(count)], uint)

    def finite_values(self, block, width, dtype):
        """A constant of ordinary numbers, and these as f64."""
        result, type = self.fresh("x"), lanes(width, dtype)
        count = count_of(width)
        choices = [0.0, 1.0, -1.0, 0.5, 448.0, 3.0, -0.015625]
        numbers = np.array(
            [
                self.rng.choice(choices)
                if self.chance(0.3)
                else self.rng.uniform(-1, 1) * 2.0 ** self.rng.randint(-6, 6)
                for _ in range(count)
            ],
            np.float64,
        )
        bits = Lanes.rounded(numbers, dtype).bits
        digits = bits.dtype.itemsize * 2
        texts = [f"0x{b:0{digits}X}" for b in bits.tolist()]
        text = f"dense<[{', '.join(texts)}]>" if width else texts[0]
        block.add(f"{result} = arith.constant {text} : {type}")
        return result, RESULTS[dtype].decode(bits)

    def hint(self):
        return " {nontemporal = true}" if self.chance(0.05) else ""

    # Elements

    def load(self, block, scope, depth):
        cache, width = self.rng.choice(scope.caches), self.width()
        place = self.place(block, scope, width)
        dtype, is_quantized = self.shape.dtype, bool(self.shape.quantization)
        results = list(RESULTS) if is_quantized else [dtype, dtype, *PLAIN, "f64"]
        result = self.rng.choice(results)
        page = self.page(block, cache, place)
        if is_quantized:
            page += self.page(block, cache, place, is_scale=True)
        scaled, factor = self.tensor_scale(block)
        name = self.fresh("x")
        b, h, t, d = place

        def step(state):
            view = state[cache]
            indices = [state[i] for i in (b, h, t, d)]
            if is_quantized:
                values = view.load(*indices, count_of(width), RESULTS[result], factor)
                state[name] = Lanes.rounded(values, result)
            else:
                bits = view.read(*indices, count_of(width)).copy()
                state[name] = convert(bits, dtype, result)

        block.add(
            f"{name} = kvcache.load {cache}[{b}, {h}, {t}, {d}]{page}{scaled}{self.hint()} "
            f": !cache -> {lanes(width, result)}",
            step,
        )
        if not is_quantized and result == dtype:
            scope.add_value(width, dtype, name)
        self.log(block, scope, name, width, result)

    def tensor_scale(self, block):
        """Text of the operand, and the scale; mostly none."""
        is_nvfp4 = self.shape.quantization and self.shape.scale == "f8E4M3FN"
        if not is_nvfp4 or self.chance(0.5):
            return "", None
        name, number = self.fresh("s"), self.rng.choice((0.5, 1.0, 3.0, 0.0078125))
        block.add(f"{name} = arith.constant {number!r} : f32")
        return f" tensor_scale {name}", np.float32(number)

    def store(self, block, scope, depth):
        cache, width = self.rng.choice(scope.caches), self.width()
        place = self.place(block, scope, width)
        dtype = self.shape.dtype
        value = self.some_value(block, scope, width, dtype)
        page = self.page(block, cache, place)
        b, h, t, d = place

        def step(state):
            view, bits = state[cache], state[value].bits
            indices = [state[i] for i in (b, h, t, d)]
            if self.shape.quantization:
                view.write_elements(*indices, bits)
            else:
                view.write(*indices, bits)

        block.add(
            f"kvcache.store {value}, {cache}[{b}, {h}, {t}, {d}]{page}{self.hint()} : "
            f"{lanes(width, dtype)}, !cache",
            step,
        )

    def copy_value(self, block, scope, depth):
        """Logs a value that is there already."""
        known = [(type, name) for type, names in scope.values.items() for name in names]
        if not known:
            return self.load(block, scope, depth)
        (width, dtype), name = self.rng.choice(known)
        self.log(block, scope, name, width, dtype)

    def block_tile(self, block, scope, depth):
        """A window, of which one element is read or written."""
        shape = self.shape
        if shape.quantization and shape.dtype == "f4E2M1FN":
            return self.load(block, scope, depth)
        cache = self.rng.choice(scope.caches)
        page = shape.page_size or self.sizes.tokens
        rows = self.rng.choice([n for n in range(1, page + 1) if page % n == 0][-6:])
        if not shape.page_size:
            rows = 1
        if shape.is_open:
            rows = 1
        columns = self.width() or 1
        b = self.index(block, scope, self.sizes.batch)
        h = self.index(block, scope, shape.heads)
        t = self.multiple(block, scope, self.sizes.tokens // rows, rows)
        d = self.multiple(block, scope, shape.head_size // columns, columns)
        memref = (
            f"memref<{rows}x{columns}x{shape.dtype}, strided<[{shape.row}, 1], offset: ?>>"
        )
        window, name = self.fresh("w"), self.fresh("x")
        block.add(f"{window} = kvcache.block_tile {cache}[{b}, {h}, {t}, {d}] : !cache -> {memref}")
        i = self.index(block, scope, rows)
        j = self.index(block, scope, columns)
        is_write = self.chance(0.4)
        value = self.some_value(block, scope, 0, shape.dtype) if is_write else name

        def step(state):
            view = state[cache]
            view = view.elements if shape.quantization else view
            indices = state[b], state[h], state[t] + state[i], state[d] + state[j]
            if is_write:
                view.write(*indices, state[value].bits)
            else:
                state[name] = Lanes(view.read(*indices).copy())

        if is_write:
            block.add(f"memref.store {value}, {window}[{i}, {j}] : {memref}", step)
        else:
            block.add(f"{name} = memref.load {window}[{i}, {j}] : {memref}", step)
            scope.add_value(0, shape.dtype, name)
            self.log(block, scope, name, 0, shape.dtype)

    # Quantized elements

    def load_quantized(self, block, scope, depth):
        cache, width = self.rng.choice(scope.caches), self.width()
        b, h, t, d = place = self.place(block, scope, width)
        page, name, dtype = self.page(block, cache, place), self.fresh("q"), self.shape.dtype

        def step(state):
            view = state[cache]
            bits = view.read_elements(*(state[i] for i in place), count_of(width))
            state[name] = Lanes(np.array(bits))

        block.add(
            f"{name} = kvcache.load_quantized {cache}[{b}, {h}, {t}, {d}]{page}{self.hint()} "
            f": !cache -> {lanes(width, dtype)}",
            step,
        )
        scope.add_value(width, dtype, name)
        self.log(block, scope, name, width, dtype)

    def load_scale(self, block, scope, depth):
        cache, width = self.rng.choice(scope.caches), self.scale_width()
        b, h, t, d = place = self.scale_place(block, scope, width)
        name, dtype = self.fresh("s"), self.shape.scale
        page = self.page(block, cache, place, is_scale=True)

        def step(state):
            view = state[cache]
            bits = view.read_scales(*(state[i] for i in place), count_of(width))
            state[name] = Lanes(np.array(bits))

        block.add(
            f"{name} = kvcache.load_scale {cache}[{b}, {h}, {t}, {d}]{page} : !cache -> "
            f"{lanes(width, dtype)}",
            step,
        )
        scope.add_value(width, dtype, name)
        self.log(block, scope, name, width, dtype)

    def store_scale(self, block, scope, depth):
        cache, width = self.rng.choice(scope.caches), self.scale_width()
        b, h, t, d = place = self.scale_place(block, scope, width)
        dtype = self.shape.scale
        value = self.some_value(block, scope, width, dtype)

        def step(state):
            state[cache].write_scales(*(state[i] for i in place), state[value].bits)

        block.add(
            f"kvcache.store_scale {value}, {cache}[{b}, {h}, {t}, {d}] : "
            f"{lanes(width, dtype)}, !cache",
            step,
        )

    def store_quantized(self, block, scope, depth):
        shape = self.shape
        whole = [shape.granularity * n for n in (1, 2, 3)]
        widths = [w for w in whole if w < shape.head_size] + [shape.head_size]
        if shape.dtype == "f4E2M1FN":
            widths = [w for w in widths if w % 2 == 0]
        cache, width = self.rng.choice(scope.caches), self.rng.choice(widths)
        dtype = self.rng.choice(("f32", "f16", "bf16"))
        b, h, t, d = place = self.place(block, scope, width)
        value, numbers = self.finite_values(block, width, dtype)
        scaled, factor = self.tensor_scale(block)

        def step(state):
            state[cache].store_quantized(*(state[i] for i in place), numbers, factor)

        block.add(
            f"kvcache.store_quantized {value}, {cache}[{b}, {h}, {t}, {d}]{scaled} : "
            f"{lanes(width, dtype)}, !cache",
            step,
        )

    def dequantize(self, block, scope, depth):
        """Of a value with a scale for all of its lanes."""
        from quantization import dequantize

        shape, width = self.shape, self.width()
        value = self.some_value(block, scope, width, shape.dtype)
        scale = self.some_value(block, scope, 0, shape.scale)
        scaled, factor = self.tensor_scale(block)
        result, name = self.rng.choice(list(RESULTS)), self.fresh("x")

        def step(state):
            from quantization import ELEMENTS, SCALES

            elements = ELEMENTS[shape.dtype].decode(state[value].bits)
            scales = SCALES[shape.scale].decode(state[scale].bits)
            values = dequantize(
                elements, scales, SCALES[shape.scale], RESULTS[result], factor
            )
            state[name] = Lanes.rounded(values, result)

        block.add(
            f"{name} = kvcache.dequantize {value}, {scale}{scaled} : "
            f"{lanes(width, shape.dtype)}, {shape.scale} -> {lanes(width, result)}",
            step,
        )
        self.log(block, scope, name, width, result)

    def scales_view(self, block, scope, depth):
        """The scales as an operand, and a load of some."""
        cache, width = self.rng.choice(scope.caches), self.scale_width()
        if not scope.scales or self.chance(0.5):
            made = self.fresh("scales")
            block.add(
                f"{made} = kvcache.scales_view {cache} : !cache",
                lambda state: state.values.__setitem__(made, state[cache]),
            )
            scope.scales.append(made)
        scales = self.rng.choice(scope.scales)
        b, h, t, d = place = self.scale_place(block, scope, width)
        name, dtype = self.fresh("s"), self.shape.scale
        if self.chance(0.3):
            value = self.some_value(block, scope, width, dtype)

            def write(state):
                state[scales].write_scales(*(state[i] for i in place), state[value].bits)

            block.add(
                f"kvcache.{self.rng.choice(('store', 'store_scale'))} {value}, {scales}[{b}, {h}, {t}, {d}] : "
                f"{lanes(width, dtype)}, !scales",
                write,
            )
            return

        def read(state):
            bits = state[scales].read_scales(*(state[i] for i in place), count_of(width))
            state[name] = Lanes(np.array(bits))

        block.add(
            f"{name} = kvcache.{self.rng.choice(('load', 'load_scale'))} {scales}[{b}, {h}, {t}, {d}] : !scales -> "
            f"{lanes(width, dtype)}",
            read,
        )
        self.log(block, scope, name, width, dtype)


def convert(bits, source, result):
    """What a load of elements of a type gives as another."""
    from model import FORMATS

    if source == result:
        return Lanes(bits)
    return Lanes.rounded(FORMATS[source].decode(bits), result)


__all__ = ["DTYPES", "AccessStatements", "LogArray"]
