"""Statements that ask a cache for sizes, rows and pages."""

from program import MASK, Index


class QueryStatements:
    """Mixed into the generator."""

    def query_kinds(self):
        return [(4, self.query), (2, self.populate), (2, self.arithmetic)]

    def add_index(self, block, scope, hint, text, step, bound=None):
        """Adds an op whose result is an index, and logs it."""
        name = self.fresh(hint)
        block.add(f"{name} = {text}", lambda state: state.values.__setitem__(name, int(step(state)) & MASK))
        self.log_index(block, scope, name)
        scope.indices.append(Index(name, bound))
        return name

    def query(self, block, scope, depth):
        cache = self.rng.choice(scope.caches)
        is_quantized, paged = bool(self.shape.quantization), bool(self.shape.page_size)
        b = self.index(block, scope, self.sizes.batch)
        t = self.index(block, scope, self.sizes.tokens)
        h = self.index(block, scope, self.shape.heads)
        e = self.index(block, scope, self.sizes.pages * (self.shape.page_size or self.sizes.tokens))

        def view(state):
            return state[cache].elements if is_quantized else state[cache]

        def scales(state):
            return state[cache].scales

        sizes = self.sizes
        queries = [
            (f"cache_length {cache}[{b}]", lambda s: view(s).cache_length(s[b])),
            (f"max_prompt_length {cache}", lambda s: view(s).max_prompt_length()),
            (f"max_context_length {cache}", lambda s: view(s).max_context_length()),
            (f"num_kv_rows {cache}", lambda s: view(s).num_kv_rows()),
            (f"row_index {cache}[{b}, {t}]", lambda s: view(s).row_index(s[b], s[t])),
            (f"page_id {cache}[{b}, {t}]", lambda s: view(s).page_id(s[b], s[t])),
            (f"tma_row {cache}[{e}]", lambda s: view(s).tma_row(s[e])),
            (f"col_index {cache}[{h}]", lambda s: s[h] * self.shape.head_size),
            (f"extent batch {cache}", lambda s: sizes.batch),
            (f"extent pages {cache}", lambda s: view(s).pages),
            (f"extent tokens {cache}", lambda s: view(s).tokens()),
            (f"extent page_size {cache}", lambda s: view(s).page_size),
        ]
        if is_quantized:
            queries += [
                (f"num_scale_rows {cache}", lambda s: scales(s).num_kv_rows()),
                (f"scale_row_index {cache}[{b}, {t}]", lambda s: scales(s).row_index(s[b], s[t])),
            ]
        text, meaning = self.rng.choice(queries)
        if paged and self.chance(0.1):
            self.whole_rows = True
            return self.tma_coords(block, scope, cache, b, t, view)
        if self.chance(0.1):
            return self.empty_cache(block, scope, cache, view)
        self.whole_rows |= "row" in text
        self.add_index(block, scope, "q", f"kvcache.{text} : !cache", meaning)

    def tma_coords(self, block, scope, cache, b, t, view):
        row, page = self.fresh("row"), self.fresh("page")

        def step(state):
            state[row], state[page] = (int(x) for x in view(state).tma_coords(state[b], state[t]))

        block.add(f"{row}, {page} = kvcache.tma_coords {cache}[{b}, {t}] : !cache", step)
        self.log_index(block, scope, row)
        self.log_index(block, scope, page)
        scope.indices.append(Index(row, self.shape.page_size))

    def empty_cache(self, block, scope, cache, view):
        name = self.fresh("f")
        block.add(
            f"{name} = kvcache.empty_cache {cache} : !cache",
            lambda state: state.values.__setitem__(name, view(state).empty_cache()),
        )
        scope.flags.append(name)

    def arithmetic(self, block, scope, depth):
        """On any indices, modulo 2^64."""
        x = self.rng.choice(scope.indices).name
        y = self.rng.choice(scope.indices).name
        by = self.rng.choice((1, 2, 3, 7, 16, 48, 64))
        constant = self.constant(by)
        text, meaning = self.rng.choice(
            [
                (f"addi {x}, {y}", lambda s: s[x] + s[y]),
                (f"subi {x}, {y}", lambda s: s[x] - s[y]),
                (f"muli {x}, {y}", lambda s: s[x] * s[y]),
                (f"xori {x}, {y}", lambda s: s[x] ^ s[y]),
                (f"andi {x}, {y}", lambda s: s[x] & s[y]),
                (f"ori {x}, {y}", lambda s: s[x] | s[y]),
                (f"divui {x}, {constant}", lambda s: s[x] // by),
                (f"remui {x}, {constant}", lambda s: s[x] % by),
                (f"ceildivui {x}, {constant}", lambda s: -(-s[x] // by)),
                (f"shrui {x}, {constant}", lambda s: s[x] >> by if by < 64 else 0),
                (f"maxui {x}, {y}", lambda s: max(s[x], s[y])),
                (f"minui {x}, {y}", lambda s: min(s[x], s[y])),
                (f"minsi {x}, {y}", lambda s: min(signed(s[x]), signed(s[y]))),
            ]
        )
        if text.startswith("shrui") and by >= 64:
            return
        self.add_index(block, scope, "m", f"arith.{text} : index", meaning)

    def populate(self, block, scope, depth):
        """Some rows, and the row of an offset."""
        page, tokens = self.shape.page_size, self.sizes.tokens
        cache = self.rng.choice(scope.caches)
        type, num_rows, base, attribute, alignment = self.choose_rows(block, scope, page, tokens)
        rows = self.fresh("rows")
        b = self.index(block, scope, self.sizes.batch)
        self.whole_rows = True
        block.add(f"{rows} = kvcache.populate {cache}[{b}, {base}]{attribute} : !cache -> {type}")
        for _ in range(self.rng.randint(1, 3)):
            o = self.index(block, scope, num_rows)

            def meaning(state, o=o):
                view = state[cache]
                view = view.elements if self.shape.quantization else view
                return view.get_row(state[b], state[base], state[o], num_rows, alignment)

            self.add_index(block, scope, "r", f"kvcache.get_row {rows}[{o}] : {type}", meaning)

    def choose_rows(self, block, scope, page, tokens):
        """The type, its number of rows, the first token, and what it is a multiple of."""
        said = f", page_size = {self.shape.said_page_size}" if page else ""
        if not page:
            num_rows = self.rng.randint(1, tokens)
            base, alignment = self.index(block, scope, tokens - num_rows + 1), 1
        elif self.sizes.columns > 1 and not self.shape.is_open and self.chance(0.5):
            count = self.rng.randint(1, self.sizes.columns)
            num_rows, alignment = count * page, page
            base = self.multiple(block, scope, self.sizes.columns - count + 1, page)
        else:
            # Within a page.
            num_rows = self.rng.choice([n for n in range(1, page + 1) if page % n == 0])
            base = self.multiple(block, scope, tokens // num_rows, num_rows)
            alignment = num_rows
        attribute = f" {{base_alignment = {alignment}}}"
        return f"!kvcache.row_indices<rows = {num_rows}{said}>", num_rows, base, attribute, alignment


def signed(value):
    return value - (1 << 64) if value >> 63 else value
