"""What one case may cost a diagnoser."""

from __future__ import annotations

from dataclasses import asdict, dataclass

MIB = 2**20


@dataclass(frozen=True)
class Limits:
    """Limits over all processes that a diagnoser starts for one case.

    `scratch_bytes` bounds what it may write, `import_timeout_s` how long importing it may take.
    """

    timeout_s: float = 60.0
    memory_bytes: int = 4096 * MIB
    scratch_bytes: int = 1024 * MIB
    import_timeout_s: float = 120.0

    def document(self) -> dict[str, float]:
        """Return the limits as JSON-ready values."""
        return asdict(self)
