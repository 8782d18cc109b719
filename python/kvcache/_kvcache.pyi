from .errors import RawDiagnostic

def chips() -> list[str]: ...
def compile(
    source: bytes, filename: str, passes: str
) -> tuple[list[tuple[str, str, bytes, str]] | None, list[RawDiagnostic]]:
    """Returns module, chip, PTX and JSON properties of each object; None on errors."""

def jit(
    source: bytes, filename: str, passes: str, opt_level: int
) -> tuple[JIT | None, list[RawDiagnostic]]:
    """Returns the compiled functions, or None on errors."""

class JIT:
    @property
    def functions(self) -> str:
        """The public functions with their arguments and results, as a JSON array."""

    def call(self, name: str, frame: bytes) -> bytes | str:
        """Calls a function with a frame of 64-bit words; see ``signatures.py``.

        Returns a word for each result, or the message of a run-time check that failed.
        """
