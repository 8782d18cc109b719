"""Changes of MLIR text."""


def edit(source, *changes):
    """Replaces all occurrences of the old text of each (old, new) of ``changes``, at least one each."""
    for old, new in changes:
        assert old in source, f"there is no '{old}' to change"
        source = source.replace(old, new)
    return source
