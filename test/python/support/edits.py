"""Changes of MLIR text."""


def edit(source, *changes):
    """``source`` with each (old, new) of ``changes`` made wherever the old text is, which is somewhere."""
    for old, new in changes:
        assert old in source, f"there is no '{old}' to change"
        source = source.replace(old, new)
    return source
