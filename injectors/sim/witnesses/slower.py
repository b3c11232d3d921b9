"""Witnesses that ask for a loss, too: what costs nothing leaves the same marks as what does."""

from __future__ import annotations

from injectors.sim.witnesses.losses import NOW, THEN

# Between what is called healthy (1.03) and faulty (1.05).
FAULTY = f"{NOW} > 1.04 * {THEN}"


def slower(witness: tuple[str, str]) -> tuple[str, str]:
    """Return a witness that is true only if steps are longer than in the reference, too."""
    sql, says = witness
    return f"SELECT ({sql}) AND {FAULTY}", f"{says}; steps are longer than in the reference"


def all_slower(witnesses: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the same of each of several witnesses."""
    return {cause: slower(witness) for cause, witness in witnesses.items()}
