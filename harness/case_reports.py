"""The reports of `evalharness cases` as text for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness.aligned import aligned
from harness.audit import Audit
from harness.audit.trivia import ALPHA, AUC_LIMIT, BINDING_CASES, passes
from harness.checklist import Check

SHOWN_LEAKS = 20
SHOWN_NAMES = 20


def list_text(lines: Sequence[dict[str, Any]]) -> str:
    """One row per case; signals are counted."""
    head = [name for name in lines[0] if name != "group"]
    rows = []
    for line in lines:
        cells = line | {"signals": len(line["signals"])}
        cells |= {"causes": " ".join(line["causes"])} if "causes" in line else {}
        rows.append([cells[name] for name in head])
    return aligned(head, rows)


def show_text(document: dict[str, Any]) -> str:
    """A case as a page: description, rows, step times, top of the trace, label."""
    info, rows = document["case"], document["rows"]
    reference = document["reference_rows"] or {}
    parts = [
        f"{info['id']}  {info['title']}",
        aligned(
            ["field", "value"],
            [
                ("kind", f"{info['kind']}, {info['shape']}, {info['question']}"),
                ("objective", info["objective"]),
                ("workload", f"{info['workload']['name']} {_flat(info['workload']['parameters'])}"),
                ("ranks", len(info["topology"]["ranks"])),
                ("versions", _flat(info["environment"]["versions"])),
                ("hardware", _flat(info["environment"]["hardware"])),
                ("variables", _flat(info["environment"]["variables"])),
                ("config", _flat(info["environment"]["config"])),
                ("backend", info["provenance"]["backend"]),
                ("profiler overhead", info["provenance"]["profiler_overhead"]),
                ("absent", ", ".join(info["signals"]["absent"])),
            ],
        ),
        aligned(
            ["signal", "rows", "reference"],
            [(name, count, reference.get(name)) for name, count in rows.items()],
        ),
        _step_time(document),
    ]
    if document["top_events"]:
        head = list(document["top_events"][0])
        parts.append(aligned(head, [list(event.values()) for event in document["top_events"]]))
    if "label" in document:
        parts.append("label\n" + json.dumps(document["label"], indent=1))
    return "\n\n".join(parts)


def check_text(checks: Sequence[Check], counts: dict[str, dict[str, int]]) -> str:
    """The table of checks, what the suite is made of, then the failures by name."""
    rows = [(c.name, c.looked_at, len(c.failures), c.about) for c in checks]
    parts = [aligned(["check", "looked at", "failed", "what must hold"], rows)]
    parts.append(aligned(["made of", "counts"], [(k, _flat(v)) for k, v in counts.items()]))
    failures = [f"{check.name}: {failure}" for check in checks for failure in check.failures]
    return "\n\n".join([*parts, "\n".join(failures) or "Everything holds."])


def audit_text(audit: Audit) -> str:
    """What was tried and what came of it; the deciding parts first."""
    flagged = [tell for tell in audit.tells if tell.flagged]
    parts = [
        aligned(
            ["tried", "found", "verdict"],
            [
                ("words", f"{len(audit.words)} leaks", _verdict(not audit.words)),
                ("trivia", _trivia(audit), _verdict(passes(audit.trivia))),
                ("tell-tale columns", f"{len(flagged)} flagged", "reported"),
                ("slowness alone", _slowness(audit), "reported"),
                ("names beside the twin's", _names(audit), "reported"),
                ("withheld signals", _withheld(audit), "reported"),
            ],
        )
    ]
    parts += [str(leak) for leak in audit.words[:SHOWN_LEAKS]]
    if audit.tells:
        head = ["cause", "column", "kind", "decisive", "cases", "others"]
        rows = [
            (t.cause, t.column, t.kind, "yes" if t.decisive else "no", t.cases, t.others)
            for t in sorted(audit.tells, key=lambda tell: not tell.flagged)
        ]
        parts.append(aligned(head, rows))
    if audit.odd_names:
        head = ["cause", "category", "name", "faulty only", "twin only", "pairs", "healthy"]
        shown = audit.odd_names[:SHOWN_NAMES]
        parts.append(aligned(head, [tuple(vars(odd).values()) for odd in shown]))
    return "\n\n".join(parts)


def _names(audit: Audit) -> str:
    telling = sum(odd.telling for odd in audit.odd_names)
    return f"{len(audit.odd_names)} differ, {telling} in every case of a cause and no healthy one"


def _verdict(holds: bool) -> str:
    return "passed" if holds else "FAILED"


def _trivia(audit: Audit) -> str:
    found = audit.trivia
    if found is None:
        return "fewer than two groups hold faulty and healthy cases"
    rule = f"upper bound <= {AUC_LIMIT}" if found.cases >= BINDING_CASES else f"p >= {ALPHA}"
    return (
        f"AUC {found.auc:.2f} (upper bound {found.auc_high:.2f}), p {found.p_value:.3g},"
        f" {found.cases} cases in {found.groups} groups; must hold: {rule}"
    )


def _slowness(audit: Audit) -> str:
    found = audit.slowness
    if found is None:
        return "fewer than two causes or groups"
    return f"accuracy {found.accuracy:.2f}, by chance {found.chance:.2f}, p {found.p_value:.3g}"


def _withheld(audit: Audit) -> str:
    return (
        "; ".join(
            f"{'+'.join(w.signals)}: {w.undecidable} of {w.cases} undecidable"
            for w in audit.withheld
        )
        or "none"
    )


def _step_time(document: dict[str, Any]) -> str:
    mine, before = document["mean_step_ms"], document["reference_mean_step_ms"]
    if mine is None:
        return "no step was timed"
    text = f"mean step {mine:.4g} ms"
    return (
        text if before is None else f"{text}, reference {before:.4g} ms, ratio {mine / before:.3f}"
    )


def _flat(mapping: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in mapping.items())
