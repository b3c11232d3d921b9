"""What was said about each case and what it cost: `transcripts/<case>.json`, `cost.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases.documents import read_json, write_json
from harness.llm.settings import ModelSettings
from harness.llm.usage import Usage

FOLDER, COST = "transcripts", "cost.json"
FORMAT = "evalharness.transcript/1.0"
RUNNING = "not ended"  # and if that is what stands there, the case was ended from outside


@dataclass
class Transcript:
    """One conversation; its file is written anew with every reply, for it may be cut off."""

    folder: Path
    case: str
    settings: ModelSettings
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    total: Usage = field(default_factory=Usage)
    paid: Usage = field(default_factory=Usage)

    def add(
        self,
        messages: list[dict[str, Any]],
        message: dict[str, Any],
        usage: Usage,
        reused: bool,
        **facts: Any,
    ) -> None:
        """Add a reply to `messages`; one that was `reused` costs nothing this time."""
        self.messages = [*messages, message]
        self.total += usage
        self.paid += Usage() if reused else usage
        spent = usage.model_dump(exclude_defaults=True)
        self.exchanges.append({**spent, "reused": reused, **facts})
        self.write(RUNNING)

    def write(self, end: str) -> None:
        """Write the file; `end` says how the conversation ended."""
        document = {
            "format": FORMAT,
            "case": self.case,
            "end": end,
            **self.settings.decisive(),
            "tokens": self.total.model_dump(),
            "cost": self.total.cost(self.settings),
            "paid_tokens": self.paid.model_dump(),
            "paid": self.paid.cost(self.settings),
            "exchanges": self.exchanges,
            "messages": self.messages,
        }
        write_json(self.folder / FOLDER / f"{self.case}.json", document)


def write_cost(folder: Path, settings: ModelSettings, paid: Usage) -> None:
    """Sum up the transcripts of a results folder.

    Args:
        folder: The results folder.
        settings: With the prices of now.
        paid: What this command has used itself, beyond replies that were known.
    """
    decisive = settings.decisive().items()
    documents = [read_json(path) for path in sorted((folder / FOLDER).glob("*.json"))]
    # Those of another model may stand beside them, until the run is through.
    own = [doc for doc in documents if all(doc.get(name) == value for name, value in decisive)]
    total = sum((Usage(**document["tokens"]) for document in own), Usage())
    document = {
        "format": "evalharness.cost/1.0",
        "model": settings.model,
        "cases": len(own),
        "tokens": total.model_dump(),
        "cost": total.cost(settings),
        "paid_tokens": paid.model_dump(),
        "paid": paid.cost(settings),
    }
    write_json(folder / COST, document)
