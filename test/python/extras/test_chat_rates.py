"""The benchmark of a chat, with a tiny model."""

import chat_rates
import pytest


@pytest.mark.long
def test_caches_have_rates():
    chat_rates.chat.install()
    table = chat_rates.tabulate(chat_rates.chat.QUICK, rounds=1)
    names = [name for name, *_ in table.rows]
    assert names[:2] == ["f32, the model's own", "f32, paged, f32"] and len(names) == 6
    for _, size, prompt_tokens, seconds, rate, decoded, decode_rate in table.rows:
        assert min(size, seconds, decoded, decode_rate) > 0
        assert rate == pytest.approx(prompt_tokens / seconds)
    assert table.rows[1][2] < table.rows[0][2], "shared instructions are computed once"


def test_other_answers_are_found():
    tensor = chat_rates.torch.tensor
    one, same, other = (chat_rates.chat.Result(answers=[tensor([number])]) for number in (1, 1, 2))
    assert chat_rates.have_same_answers([one, same])
    assert not chat_rates.have_same_answers([one, same, other])
