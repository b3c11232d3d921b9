"""`evalharness taxonomy`: show the tree of root causes, or one of its nodes in full."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import click
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from cases.causes import Cause, Source
from cases.taxonomy import Taxonomy

BULLET = "  - "
PIPE_COLUMNS = 200  # wide enough that no title breaks


@click.command("taxonomy")
@click.argument("cause", required=False)
@click.option("--json", "json_output", is_flag=True, help="Print one JSON document.")
@click.option("--markdown", is_flag=True, help="Print the table of causes for the documentation.")
def command(cause: str | None, json_output: bool, markdown: bool) -> None:
    """Show the tree of root causes, or the whole entry of one CAUSE or inner node.

    Example: evalharness taxonomy storage_fetch_stall
    """
    taxonomy = Taxonomy.load()
    if markdown and (cause or json_output):
        raise click.UsageError("--markdown takes neither a CAUSE nor --json")
    name = None if cause is None else taxonomy.resolve(cause)
    if markdown:
        click.echo(markdown_table(taxonomy))
    elif json_output:
        click.echo(json.dumps(as_json(taxonomy, name), indent=1, ensure_ascii=False))
    elif name in taxonomy.causes:
        width = shutil.get_terminal_size((100, 24)).columns
        click.echo("\n".join(wrap(line, width) for line in cause_lines(taxonomy, name)))
    else:
        console_width = None if sys.stdout.isatty() else PIPE_COLUMNS
        Console(highlight=False, width=console_width).print(as_tree(taxonomy, name))


def as_tree(taxonomy: Taxonomy, top: str | None = None) -> Tree:
    """Build the printable tree below `top`, or of the whole taxonomy."""
    if top is not None:
        tree = Tree(_label(taxonomy, top))
        for child in taxonomy.children(top):
            tree.add(as_tree(taxonomy, child))
        return tree
    tree = Tree(f"taxonomy {taxonomy.version}, {len(taxonomy.causes)} causes")
    for domain in taxonomy.domains:
        tree.add(as_tree(taxonomy, domain))
    return tree


def _label(taxonomy: Taxonomy, name: str) -> Text:
    style = "" if name in taxonomy.causes else "bold"
    return Text.assemble((name, style), (f"  {taxonomy.title(name)}", "dim"))


def cause_lines(taxonomy: Taxonomy, name: str) -> Iterator[str]:
    """Yield the text of one cause: what happens, what shows it, what it is confused with."""
    cause = taxonomy.causes[name]
    yield f"{name}: {cause.title}"
    yield f"in {' / '.join(reversed(taxonomy.ancestors(name)))}"
    yield from ("", cause.mechanism)
    yield from _section("Symptoms", cause.symptoms)
    yield from _section("Decisive signals", cause.decisive_signals)
    told_apart = [
        f"{'not ' if other.subject == name else ''}{other.cause} if: {other.discriminator}"
        for other in cause.confused_with
    ]
    yield from _section("Confused with, and how to tell them apart", told_apart)
    rules = [rule.rule for rule in taxonomy.tie_breaks if name in rule.causes]
    yield from _section("Which name is right", rules)
    yield from _section("Sources", map(source_line, cause.sources))
    yield from ("", f"Injected for real on: {injection(cause)}")


def _section(heading: str, items: Iterable[str]) -> Iterator[str]:
    lines = [f"{BULLET}{item}" for item in items]
    if lines:
        yield from ("", heading, *lines)


def wrap(line: str, width: int) -> str:
    """Break one line at `width` columns; what follows a bullet hangs below its text.

    >>> wrap("  - a long line", 11)
    '  - a long\\n    line'
    """
    hang = " " * len(BULLET) if line.startswith(BULLET) else ""
    return textwrap.fill(line, width, subsequent_indent=hang, break_long_words=False)


def source_line(source: Source) -> str:
    """Return one line: the work, how far to trust it, what it measured.

    >>> source_line(Source(work="nccl#378 issue", mark="issue", status="open"))
    'nccl#378 issue (issue, open)'
    """
    marks = source.mark.replace("_", " ") + (f", {source.status}" if source.status else "")
    return f"{source.work} ({marks})" + (f": {source.magnitude}" if source.magnitude else "")


def injection(cause: Cause) -> str:
    """Say on which machines the cause can be made to happen."""
    names = ", ".join(cause.injectable_on) or "nothing, simulated only"
    return f"{names} (with privileges)" if cause.needs_root else names


def as_json(taxonomy: Taxonomy, name: str | None) -> dict[str, Any]:
    """Return the whole taxonomy, or the part below `name`, for machines."""
    names = taxonomy.nodes if name is None else (name, *_below(taxonomy, name))
    document: dict[str, Any] = {
        "version": taxonomy.version,
        "digest": taxonomy.digest,
        "nodes": {node: _node(taxonomy, node) for node in names},
    }
    if name is None:
        document["tie_breaks"] = [rule.model_dump(mode="json") for rule in taxonomy.tie_breaks]
        for part in ("decoys", "insufficient"):
            entries = getattr(taxonomy, part).items()
            document[part] = {key: entry.model_dump(mode="json") for key, entry in entries}
    return document


def _below(taxonomy: Taxonomy, name: str) -> tuple[str, ...]:
    return tuple(node for node in taxonomy.nodes if name in taxonomy.ancestors(node))


def _node(taxonomy: Taxonomy, name: str) -> dict[str, Any]:
    entry = {"parent": taxonomy.parent(name), "title": taxonomy.title(name)}
    cause = taxonomy.causes.get(name)
    return entry if cause is None else entry | cause.model_dump(mode="json")


def markdown_table(taxonomy: Taxonomy) -> str:
    """Return a Markdown table with a row for each cause."""
    rows = [
        f"| {taxonomy.domain(name)} | {taxonomy.mechanism(name)} | `{name}` | {cause.title}"
        f" | {injection(cause)} |"
        for name, cause in taxonomy.causes.items()
    ]
    head = "| domain | mechanism | cause | what it is | injected on |\n|---|---|---|---|---|"
    return "\n".join([head, *rows])
