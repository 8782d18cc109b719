"""Control flow, with caches, indices and values through it."""

from program import MASK, Block, Index


class Carried:
    """A value that goes through control flow: its text type and where it belongs."""

    def __init__(self, name, type, add):
        self.name, self.type, self.add = name, type, add


class ControlStatements:
    """Mixed into the generator."""

    def control_kinds(self):
        return [
            (3, self.for_loop),
            (3, self.if_else),
            (1, self.while_loop),
            (1, self.switch),
            (2, self.select),
            (1, self.branches),
            (2, self.call),
            (2, self.new_view),
        ]

    # Carried values

    def kinds(self, block, scope, most=3):
        """Types of what is carried, each with one value of it at first."""
        kinds = []
        for _ in range(self.rng.randint(0, most)):
            kind = self.rng.choice(("cache", "cache", "index", "value", "flag"))
            if kind == "value" and not scope.values:
                kind = "index"
            type = self.rng.choice(list(scope.values)) if kind == "value" else None
            kinds.append((kind, type))
        return kinds

    def type_text(self, kind):
        from bodies import lanes

        kind, type = kind
        if kind == "value":
            return lanes(*type)
        return {"cache": "!cache", "index": "index", "flag": "i1"}[kind]

    def pick(self, block, scope, kind):
        """The name of a value of a kind."""
        kind, type = kind
        if kind == "cache":
            return self.rng.choice(scope.caches)
        if kind == "flag":
            return self.flag(block, scope)
        if kind == "value":
            return self.some_value(block, scope, *type)
        return self.rng.choice(scope.indices).name

    def give(self, scope, kind, name):
        kind, type = kind
        if kind == "cache":
            scope.caches.append(name)
        elif kind == "flag":
            scope.flags.append(name)
        elif kind == "value":
            scope.add_value(*type, name)
        else:
            scope.indices.append(Index(name))

    def observe(self, block, scope, kinds, names):
        for kind, name in zip(kinds, names, strict=True):
            if kind[0] == "index":
                self.log_index(block, scope, name)
            elif kind[0] == "value" and self.chance(0.5):
                self.log(block, scope, name, *kind[1])

    def types(self, kinds):
        return ", ".join(self.type_text(kind) for kind in kinds)

    def region(self, scope, depth, kinds, most=4, counter=None, arguments=()):
        """A nested block, and the names of what it yields."""
        inner, nested = Block(), scope.nested()
        for kind, name in arguments:
            self.give(nested, kind, name)
        if counter:
            nested.indices.append(counter)
            nested.counters.append(counter)
        self.statements(inner, nested, depth + 1, most)
        return inner, [self.pick(inner, nested, kind) for kind in kinds]

    # Loops

    def for_loop(self, block, scope, depth):
        kinds = self.kinds(block, scope)
        initial = [self.pick(block, scope, kind) for kind in kinds]
        arguments = [self.fresh("arg") for _ in kinds]
        results = [self.fresh("for") for _ in kinds]
        counter = Index(self.fresh("i"), 4)
        low = self.index(block, scope, 3)
        high = self.index(block, scope, 5)
        by = self.rng.choice((1, 1, 1, 2, 3))
        step_name = self.constant(by)
        inner, yielded = self.region(
            scope, depth, kinds, 5, counter, list(zip(kinds, arguments, strict=True))
        )
        head = f"scf.for {counter.name} = {low} to {high} step {step_name}"
        if kinds:
            inits = ", ".join(f"{a} = {i}" for a, i in zip(arguments, initial, strict=True))
            head = f"{', '.join(results)} = {head} iter_args({inits}) -> ({self.types(kinds)})"
        tail = f"  scf.yield {', '.join(yielded)} : {self.types(kinds)}\n" if kinds else ""

        def step(state):
            state.assign(arguments, initial)
            for i in range(state[low], state[high], by):
                state[counter.name] = i
                inner.run(state)
                state.assign(arguments, yielded)
            state.assign(results, arguments)

        block.add(f"{head} {{\n{inner.text}{tail}}}", step)
        self.finish(block, scope, kinds, results)

    def finish(self, block, scope, kinds, results):
        for kind, name in zip(kinds, results, strict=True):
            self.give(scope, kind, name)
        self.observe(block, scope, kinds, results)

    def while_loop(self, block, scope, depth):
        """Counts to a bound, with values around."""
        kinds = self.kinds(block, scope, 2)
        initial = [self.pick(block, scope, kind) for kind in kinds]
        before = [self.fresh("arg") for _ in kinds]
        after = [self.fresh("arg") for _ in kinds]
        results = [self.fresh("while") for _ in kinds]
        count, more, next_ = self.fresh("i"), self.fresh("f"), self.fresh("i")
        counter, end = Index(self.fresh("i"), 4), self.fresh("while")
        zero, one = self.constant(0), self.constant(1)
        high = self.index(block, scope, 5)
        inner, yielded = self.region(
            scope, depth, kinds, 4, counter, list(zip(kinds, after, strict=True))
        )
        types = ", ".join(["index", *map(self.type_text, kinds)])
        inits = ", ".join(f"{a} = {i}" for a, i in zip([count, *before], [zero, *initial], strict=True))
        passed = ", ".join([count, *before])
        taken = ", ".join(f"{a}: {t}" for a, t in zip([counter.name, *after], types.split(", "), strict=True))
        text = (
            f"{', '.join([end, *results])} = scf.while ({inits}) : ({types}) -> ({types}) {{\n"
            f"  {more} = arith.cmpi ult, {count}, {high} : index\n"
            f"  scf.condition({more}) {passed} : {types}\n"
            f"}} do {{\n^bb0({taken}):\n{inner.text}"
            f"  {next_} = arith.addi {counter.name}, {one} : index\n"
            f"  scf.yield {', '.join([next_, *yielded])} : {types}\n}}"
        )

        def step(state):
            state.assign(after, initial)
            for i in range(state[high]):
                state[counter.name] = i
                inner.run(state)
                state.assign(after, yielded)
            state.assign(results, after)
            state[end] = state[high]

        block.add(text, step)
        scope.indices.append(Index(end, 5))
        self.finish(block, scope, kinds, results)

    # Choices

    def if_else(self, block, scope, depth):
        kinds = self.kinds(block, scope)
        flag = self.flag(block, scope)
        then, then_names = self.region(scope, depth, kinds)
        has_else = bool(kinds) or self.chance(0.5)
        other, other_names = self.region(scope, depth, kinds) if has_else else (Block(), [])
        results = [self.fresh("if") for _ in kinds]
        head = f"{', '.join(results)} = " if kinds else ""
        arrow = f" -> ({self.types(kinds)})" if kinds else ""

        def end(names):
            return f"  scf.yield {', '.join(names)} : {self.types(kinds)}\n" if kinds else ""

        text = f"{head}scf.if {flag}{arrow} {{\n{then.text}{end(then_names)}}}"
        if has_else:
            text += f" else {{\n{other.text}{end(other_names)}}}"

        def step(state):
            taken, names = (then, then_names) if state[flag] else (other, other_names)
            taken.run(state)
            state.assign(results, names)

        block.add(text, step)
        self.finish(block, scope, kinds, results)

    def switch(self, block, scope, depth):
        kinds = self.kinds(block, scope) or [("index", None)]
        which = self.index(block, scope, 4)
        cases = sorted(self.rng.sample(range(5), self.rng.randint(1, 3)))
        regions = [self.region(scope, depth, kinds, 2) for _ in range(len(cases) + 1)]
        results = [self.fresh("switch") for _ in kinds]
        text = f"{', '.join(results)} = scf.index_switch {which} -> {self.types(kinds)}\n"
        for title, (inner, names) in zip([*(f"case {c}" for c in cases), "default"], regions, strict=True):
            text += f"{title} {{\n{inner.text}  scf.yield {', '.join(names)} : {self.types(kinds)}\n}}\n"

        def step(state):
            value = state[which]
            inner, names = regions[cases.index(value) if value in cases else -1]
            inner.run(state)
            state.assign(results, names)

        block.add(text, step)
        self.finish(block, scope, kinds, results)

    def select(self, block, scope, depth):
        (kind,) = self.kinds(block, scope, 1) or [("cache", None)]
        flag = self.flag(block, scope)
        left, right = (self.pick(block, scope, kind) for _ in range(2))
        name = self.fresh("select")

        def step(state):
            state[name] = state[left] if state[flag] else state[right]

        block.add(f"{name} = arith.select {flag}, {left}, {right} : {self.type_text(kind)}", step)
        self.finish(block, scope, [kind], [name])

    def branches(self, block, scope, depth):
        """A diamond of blocks in a region of its own."""
        kinds = self.kinds(block, scope, 2) or [("cache", None)]
        flag = self.flag(block, scope)
        left, left_names = self.region(scope, depth, kinds, 2)
        right, right_names = self.region(scope, depth, kinds, 2)
        passed = [self.fresh("arg") for _ in kinds]
        results = [self.fresh("region") for _ in kinds]
        types = self.types(kinds)
        arguments = ", ".join(f"{p}: {self.type_text(k)}" for p, k in zip(passed, kinds, strict=True))
        text = (
            f"{', '.join(results)} = scf.execute_region -> ({types}) {{\n"
            f"  cf.cond_br {flag}, ^left, ^right\n"
            f"^left:\n{left.text}  cf.br ^end({', '.join(left_names)} : {types})\n"
            f"^right:\n{right.text}  cf.br ^end({', '.join(right_names)} : {types})\n"
            f"^end({arguments}):\n  scf.yield {', '.join(passed)} : {types}\n}}"
        )

        def step(state):
            inner, names = (left, left_names) if state[flag] else (right, right_names)
            inner.run(state)
            state.assign(results, names)

        block.add(text, step)
        self.finish(block, scope, kinds, results)

    # Calls and views

    def call(self, block, scope, depth):
        """A function of a cache and two indices, which gives a cache and an index."""
        callee = f"helper{len(self.source.functions)}_{self.name}"
        cache = self.rng.choice(scope.caches)
        x = self.index(block, scope, self.sizes.batch)
        y = self.index(block, scope, self.sizes.tokens)
        other = self.rng.choice(scope.caches)
        kind = self.rng.randrange(3)
        no_inline = " attributes {no_inline}" if self.chance(0.2) else ""
        bodies = [
            (
                "%r = kvcache.row_index %k[%x, %y] : !cache\n  return %w, %r : !cache, index",
                lambda k, w, i, j: (w, k.row_index(i, j)),
            ),
            (
                "%f = kvcache.empty_cache %k : !cache\n"
                "  %s = arith.select %f, %k, %w : !cache\n"
                "  %r = kvcache.cache_length %s[%x] : !cache\n  return %s, %r : !cache, index",
                lambda k, w, i, j: ((s := k if k.empty_cache() else w), s.cache_length(i)),
            ),
            (
                "%r = kvcache.page_id %w[%x, %y] : !cache\n"
                "  %f = arith.cmpi ult, %r, %y : index\n"
                "  %s = scf.if %f -> (!cache) {\n    scf.yield %k : !cache\n"
                "  } else {\n    scf.yield %w : !cache\n  }\n  return %s, %r : !cache, index",
                lambda k, w, i, j: (k if int(w.page_id(i, j)) < j else w, int(w.page_id(i, j))),
            ),
        ]
        body, meaning = bodies[kind]
        self.whole_rows |= "row_index" in body
        self.source.functions.append(
            f"func.func private @{callee}(%k: !cache, %w: !cache, %x: index, %y: index) "
            f"-> (!cache, index){no_inline} {{\n  {body}\n}}\n"
        )
        result, number = self.fresh("call"), self.fresh("call")

        def step(state):
            views = [state[cache], state[other]]
            plain = [v.elements if self.shape.quantization else v for v in views]
            chosen, found = meaning(*plain, state[x], state[y])
            state[result] = views[0] if chosen is plain[0] else views[1]
            state[number] = int(found) & MASK

        block.add(
            f"{result}, {number} = func.call @{callee}({cache}, {other}, {x}, {y}) : "
            "(!cache, !cache, index, index) -> (!cache, index)",
            step,
        )
        scope.caches.append(result)
        self.log_index(block, scope, number)

    def new_view(self, block, scope, depth):
        """Another layer's keys or values."""
        role = self.rng.randrange(len(self.shape.roles))
        layer = self.index(block, scope, self.sizes.layers)
        name = self.fresh("view")

        def step(state):
            state[name] = state["cache"].view(role, state[layer])

        block.add(
            f"{name} = kvcache.{self.shape.kind}_view {self.shape.roles[role]} "
            f"%c[{layer}] : !collection",
            step,
        )
        scope.caches.append(name)
