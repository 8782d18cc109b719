#!/usr/bin/env python3
"""Chats with a model of transformers through a paged cache, and through its own cache.

Some users ask a model that all of them gave the same long instructions, two questions
each. With `kvcache.transformers.PagedCache`, the instructions are computed and kept once;
with the model's own cache, once for each user. The model is a small Llama with random
weights: its answers mean nothing, and its speed is not that of a real model. Exits with
1 if a cache of f32 gives other tokens than the model's own, with 2 if it cannot run.
"""

import argparse
import sys
import time
from dataclasses import dataclass, field, replace

from console import fail, fail_to_import, print_table

try:
    import kvcache
    import torch
    import transformers
    from kvcache.transformers import PagedCache, install
except ImportError as error:
    fail_to_import(error, venv="extras-venv")

SEED = 2026
DTYPES = ("f32", "bf16", "f8E4M3FN", "i8")


@dataclass(frozen=True)
class Workload:
    """The model and the questions."""

    layers: int = 4
    hidden: int = 128
    instructions: int = 512
    question: int = 24
    answer: int = 32
    users: int = 4
    turns: int = 2

    @property
    def longest(self) -> int:
        """The most tokens of a conversation."""
        return self.instructions + self.turns * (self.question + self.answer)


QUICK = Workload(layers=2, hidden=64, instructions=64, question=8, answer=8, users=2)


def make_model(work: Workload) -> transformers.LlamaForCausalLM:
    """Makes a Llama with random weights, 8 query heads over 2 heads of the cache."""
    config = transformers.LlamaConfig(
        vocab_size=1000,
        hidden_size=work.hidden,
        intermediate_size=2 * work.hidden,
        num_hidden_layers=work.layers,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=work.longest,
        pad_token_id=0,
        eos_token_id=None,
    )
    torch.manual_seed(SEED)
    model = transformers.LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=1.5 * parameter.shape[-1] ** -0.5)
    return model


@dataclass
class Questions:
    """The tokens of all users; each question has its own length."""

    instructions: torch.Tensor
    turns: list[list[torch.Tensor]]

    @staticmethod
    def make(work: Workload) -> "Questions":
        generator = torch.Generator().manual_seed(SEED)

        def tokens(count: int) -> torch.Tensor:
            return torch.randint(1, 1000, (count,), generator=generator)

        turns = [[tokens(work.question - user % 5) for user in range(work.users)] for _ in range(work.turns)]
        return Questions(tokens(work.instructions), turns)


def pad(rows: list[torch.Tensor]) -> torch.Tensor:
    """Pads rows to one length on the left."""
    longest = max(map(len, rows))
    return torch.stack([torch.cat([row.new_zeros(longest - len(row)), row]) for row in rows])


@dataclass
class Result:
    """The cost of a cache: tokens of prompts and of decode steps, seconds of both, bytes."""

    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    decoded_tokens: int = 0
    decode_seconds: float = 0.0
    nbytes: int = 0
    answers: list[torch.Tensor] = field(default_factory=list)


class TokenTimes(transformers.StoppingCriteria):
    """The times at which tokens of a batch were ready; never stops a row."""

    def __init__(self) -> None:
        self.times = [time.perf_counter()]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **options: object) -> torch.Tensor:
        self.times.append(time.perf_counter())
        return torch.zeros(len(input_ids), dtype=torch.bool)


def ask(
    model: transformers.LlamaForCausalLM,
    cache: transformers.Cache,
    work: Workload,
    ids: torch.Tensor,
    result: Result,
) -> None:
    """Computes the answers of a turn. The first token of each is that of its prompt."""
    clock = TokenTimes()
    tokens = model.generate(
        ids,
        attention_mask=(ids != 0).long(),
        past_key_values=cache,
        max_new_tokens=work.answer,
        do_sample=False,
        stopping_criteria=transformers.StoppingCriteriaList([clock]),
    )
    start, first, *_, last = clock.times
    result.prompt_seconds += first - start
    result.decode_seconds += last - first
    result.decoded_tokens += len(ids) * (work.answer - 1)
    result.answers.append(tokens[:, ids.shape[1] :])


def chat(
    model: transformers.LlamaForCausalLM,
    cache: transformers.Cache,
    work: Workload,
    questions: Questions,
) -> Result:
    """Asks all users' questions, a batch for each turn."""
    result = Result()
    first = [torch.cat([questions.instructions, each]) for each in questions.turns[0]]
    ids = pad(first)
    known = 0
    if isinstance(cache, PagedCache):
        # The instructions are computed once, and stay in the cache for all.
        instructions = questions.instructions[None]
        start = time.perf_counter()
        cache.start(instructions)
        with torch.no_grad():
            model(instructions, past_key_values=cache, logits_to_keep=1)
        cache.reset()
        result.prompt_seconds += time.perf_counter() - start
        result.prompt_tokens += instructions.numel()
        known = cache.start(ids, (ids != 0).long())
    for turn in range(work.turns):
        if turn:
            # All rows of a batch have equally many new tokens, so questions are cut to
            # the shortest.
            shortest = min(map(len, questions.turns[turn]))
            more = torch.stack([each[:shortest] for each in questions.turns[turn]])
            ids = torch.cat([ids, result.answers[-1], more], dim=1)
            known = cache.get_seq_length()
        result.prompt_tokens += int((ids[:, known:] != 0).sum())
        ask(model, cache, work, ids, result)
    if isinstance(cache, PagedCache):
        result.nbytes = cache.nbytes
    else:
        result.nbytes = sum(each.keys.nbytes + each.values.nbytes for each in cache.layers)
    return result


def chat_with(
    model: transformers.LlamaForCausalLM, work: Workload, questions: Questions, dtype: str | None
) -> Result:
    """Asks all questions with a paged cache of a dtype, or with the model's own."""
    if dtype is None:
        model.set_attn_implementation("sdpa")
        return chat(model, transformers.DynamicCache(config=model.config), work, questions)
    model.set_attn_implementation("kvcache")
    cache = PagedCache(
        model.config,
        max_batch_size=work.users + 1,
        max_seq_len=work.longest,
        dtype=dtype,
        page_size=16,
        share_prefixes=True,
    )
    return chat(model, cache, work, questions)


def run(work: Workload, dtype: str) -> bool:
    """Prints the cost of both caches, and returns whether the tokens are right."""
    model = make_model(work)
    questions = Questions.make(work)
    print(
        f"a Llama of {work.layers} layers with random weights; {work.users} users,"
        f" {work.turns} questions each, after {work.instructions} tokens of instructions\n"
    )
    own = paged = Result()
    for _ in range(2):  # the first compiles
        own = chat_with(model, work, questions, None)
        paged = chat_with(model, work, questions, dtype)
    answered = work.users * work.turns * work.answer
    print_table(
        ("cache", "KiB", "prompt tokens computed", "seconds", "tokens/s", "decoded tokens", "tokens/s"),
        [
            (
                name,
                round(each.nbytes / 1024),
                each.prompt_tokens,
                f"{each.prompt_seconds:.2f}",
                round(each.prompt_tokens / each.prompt_seconds),
                each.decoded_tokens,
                round(each.decoded_tokens / each.decode_seconds),
            )
            for name, each in (("the model's own, f32", own), (f"paged, {dtype}", paged))
        ],
    )
    same = sum(int((a == b).sum()) for a, b in zip(own.answers, paged.answers, strict=True))
    print(f"\n{same} of {answered} answered tokens are the same")
    if dtype != "f32":
        print("(with random weights, one that differs changes most of those after it)")
    return same == answered or dtype != "f32"


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expects a positive integer, got {text!r}")
    return int(text)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Chats with a small Llama with random weights through a paged cache,"
        " whose users share the pages of their instructions, and through the model's own"
        " cache. Prints the bytes of both and the tokens a second of prompts and of decode steps.",
        epilog="example: chat.py --users 8 --dtype i8",
    )
    parser.add_argument("--users", type=positive, metavar="N", help="default 4, with --quick 2")
    parser.add_argument("--dtype", choices=DTYPES, default="f32", help="of the paged cache, default f32")
    parser.add_argument("--quick", action="store_true", help="a tiny model and short texts")
    options = parser.parse_args()
    work = QUICK if options.quick else Workload()
    if options.users:
        work = replace(work, users=options.users)
    transformers.utils.logging.set_verbosity_error()
    install()
    try:
        return 0 if run(work, options.dtype) else 1
    except (kvcache.Error, ValueError) as error:
        fail(error)


if __name__ == "__main__":
    sys.exit(main())
