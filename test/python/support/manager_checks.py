"""The invariants of snapshots of a page manager, and of the inputs of steps.

Sequences are those of the model, by request.
"""

import numpy as np

from kvcache import Place


def check_pages(snapshot, has_prefixes):
    assert snapshot.null_page == snapshot.num_pages
    order = [(p.address.place is Place.HOST, p.address.index) for p in snapshot.pages]
    assert order == sorted(set(order))
    sizes = {Place.DEVICE: snapshot.num_pages, Place.HOST: snapshot.num_host_pages}
    for page in snapshot.pages:
        assert 0 <= page.address.index < sizes[page.address.place]
        assert page.references or page.is_cached
        assert has_prefixes or not page.is_cached


def check_sequences(manager, snapshot, sequences):
    """Checks that sequences have the model's tokens, and pages that they may write."""
    pages = {page.address: page for page in snapshot.pages}
    assert len(manager) == len(sequences)
    assert [state.request for state in snapshot.sequences] == list(sequences)
    for state in snapshot.sequences:
        sequence = sequences[state.request]
        assert state.request in manager
        assert manager.tokens(state.request).tolist() == sequence.tokens
        assert (state.length, state.pending) == (sequence.length, sequence.pending)
        assert state.is_resident == sequence.is_resident
        assert len(set(state.pages)) == len(state.pages)
        assert len(state.pages) == -(-len(sequence.tokens) // snapshot.page_size)
        if state.is_resident:
            assert all(address.place is Place.DEVICE for address in state.pages)
        if sequence.pending:
            for address in state.pages[sequence.length // snapshot.page_size :]:
                page = pages[address]
                assert page.references == 1 and not page.is_cached, "will be written"


def collect_written(snapshot, sequences):
    """Collects the values written to each page, from the longest of its sequences."""
    written, size = {}, snapshot.page_size
    for state in snapshot.sequences:
        sequence = sequences[state.request]
        for i, address in enumerate(state.pages):
            values = sequence.values[i * size : min((i + 1) * size, sequence.length)]
            others = written.setdefault(address, values)
            common = min(len(values), len(others))
            assert values[:common] == others[:common], "shared by different tokens"
            if len(values) > len(others):
                written[address] = values
    return written


def find_origins(before, after):
    """The addresses of the pages of sequences in the earlier snapshot, by their new addresses."""
    pages = {state.request: state.pages for state in before.sequences} if before else {}
    return {
        now: then
        for state in after.sequences
        for then, now in zip(pages.get(state.request, ()), state.pages)
    }


def check_inputs(inputs, sequences, pages, null_page):
    """Checks the inputs of a step; ``pages`` are those of each sequence."""
    pending = [sequence.pending for sequence in sequences]
    tokens = [sequence.tokens[sequence.length :] for sequence in sequences]
    positions = [[*range(s.length, len(s.tokens))] for s in sequences]
    lengths = [sequence.length for sequence in sequences]
    columns = -(-max(map(len, pages)) // 8) * 8 + 16
    table = np.full((len(pages), columns), null_page)
    for row, addresses in zip(table, pages):
        row[: len(addresses)] = [address.index for address in addresses]
    check_array(inputs.tokens, np.int64, sum(tokens, []))
    check_array(inputs.positions, np.int64, sum(positions, []))
    check_array(inputs.row_offsets, np.uint32, np.cumsum([0, *pending]))
    check_array(inputs.lengths, np.uint32, lengths)
    check_array(inputs.lut, np.uint32, table)
    assert inputs.max_seq_length == max(pending)
    assert inputs.max_cache_length == max(lengths)


def check_array(array, dtype, expected):
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, expected)
