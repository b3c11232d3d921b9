"""The tree of root causes: domain -> mechanism -> cause.

taxonomy = Taxonomy.load()
taxonomy.ancestors("slow_link")           # ("network_path", "host_network")
taxonomy.covers("network_path", "slow_link")
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cases.causes import Cause, Confusion, EvidenceGap, HarmlessSign, TaxonomyFile, TieBreak
from cases.digest import document_digest
from cases.documents import parse_record, read_yaml
from cases.errors import InputError, RecordError

TAXONOMY_FILE = Path(__file__).with_name("taxonomy.yaml")


class Taxonomy:
    """A validated taxonomy; every confusion is known at both of its causes.

    Args:
        content: The file's record, its names not yet checked against each other.
        where: The file, for error messages.

    Raises:
        RecordError: a name stands twice, or one is used that is no cause of the tree.

    >>> Taxonomy.load().domain("slow_link")
    'host_network'
    """

    def __init__(self, content: TaxonomyFile, where: Path | str = "") -> None:
        self._file, self._where = content, where
        self._parents = dict(_edges(content, where))
        written = _leaves(content)
        _check_references(content, written, where)
        confusions = _mirrored(written, where)
        self.causes: dict[str, Cause] = {
            name: cause.model_copy(update={"confused_with": confusions[name]})
            for name, cause in written.items()
        }
        self.digest: str = document_digest(content.model_dump(mode="json"))

    @classmethod
    def load(cls, path: Path | None = None) -> Taxonomy:
        """Read a taxonomy; without `path` the shipped one, which is read once a process."""
        return _shipped() if path is None else _read(path)

    @property
    def version(self) -> str:
        """Calendar version, YYYY.MM."""
        return self._file.version

    @property
    def nodes(self) -> tuple[str, ...]:
        """All names in file order, each domain and mechanism before what is below it."""
        return tuple(self._parents)

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains in file order."""
        return tuple(self._file.domains)

    @property
    def tie_breaks(self) -> tuple[TieBreak, ...]:
        """Rules for which of several defensible causes is right."""
        return self._file.tie_breaks

    @property
    def decoys(self) -> dict[str, HarmlessSign]:
        """Harmless signs by name."""
        return self._file.decoys

    @property
    def insufficient(self) -> dict[str, EvidenceGap]:
        """Patterns of missing evidence by name."""
        return self._file.insufficient

    def resolve(self, name: str) -> str:
        """Return `name` if it is a node of the tree; raises InputError listing close names."""
        if name in self._parents:
            return name
        close = difflib.get_close_matches(name, self.nodes, n=5, cutoff=0.5)
        valid = (
            f"close ones: {', '.join(close)}" if close else f"domains: {', '.join(self.domains)}"
        )
        raise InputError(f"must be a name of the taxonomy ({valid})", where="cause", found=name)

    def parent(self, name: str) -> str | None:
        """Return the node above `name`, None for a domain."""
        return self._parents[self.resolve(name)]

    def ancestors(self, name: str) -> tuple[str, ...]:
        """Return the nodes above `name`, nearest first."""
        above = self.parent(name)
        return () if above is None else (above, *self.ancestors(above))

    def children(self, name: str) -> tuple[str, ...]:
        """Return the nodes directly below `name`, none for a cause."""
        node = self.resolve(name)
        return tuple(child for child, above in self._parents.items() if above == node)

    def leaves(self, name: str) -> tuple[str, ...]:
        """Return the causes at or below `name`, in file order."""
        node = self.resolve(name)
        return tuple(cause for cause in self.causes if self.covers(node, cause))

    def domain(self, name: str) -> str:
        """Return the domain that `name` is, or belongs to."""
        return (self.resolve(name), *self.ancestors(name))[-1]

    def mechanism(self, name: str) -> str | None:
        """Return the mechanism that `name` is, or belongs to; None for a domain."""
        path = (self.resolve(name), *self.ancestors(name))
        return path[-2] if len(path) > 1 else None

    def title(self, name: str) -> str:
        """Return the short title of a node."""
        node = self.resolve(name)
        if node in self.causes:
            return self.causes[node].title
        domain = self._file.domains[self.domain(node)]
        return domain.title if node in self._file.domains else domain.mechanisms[node].title

    def covers(self, node: str, cause: str) -> bool:
        """Tell whether `node` is `cause` or stands above it.

        >>> Taxonomy.load().covers("network_path", "slow_link")
        True
        """
        self.resolve(node)
        return node == cause or node in self.ancestors(cause)

    def confusable(self, cause: str) -> tuple[str, ...]:
        """Return the causes that `cause` is confused with; the relation is symmetric."""
        return tuple(other.cause for other in self.causes[self.resolve(cause)].confused_with)


@lru_cache(maxsize=1)
def _shipped() -> Taxonomy:
    return _read(TAXONOMY_FILE)


def _read(path: Path) -> Taxonomy:
    return Taxonomy(parse_record(read_yaml(path), TaxonomyFile, where=path), where=path)


def _edges(content: TaxonomyFile, where: Path | str) -> Iterator[tuple[str, str | None]]:
    """Yield (name, name above) in file order; raises RecordError for a name that stands twice."""
    seen: set[str] = set()
    for name, above in _walk(content):
        if name in seen:
            raise RecordError(
                "must have each name once in the whole tree", where=where, field=name, found=name
            )
        seen.add(name)
        yield name, above


def _walk(content: TaxonomyFile) -> Iterator[tuple[str, str | None]]:
    for domain, branch in content.domains.items():
        yield domain, None
        for mechanism, twig in branch.mechanisms.items():
            yield mechanism, domain
            for cause in twig.causes:
                yield cause, mechanism


def _leaves(content: TaxonomyFile) -> dict[str, Cause]:
    return {
        name: cause
        for domain in content.domains.values()
        for mechanism in domain.mechanisms.values()
        for name, cause in mechanism.causes.items()
    }


def _check_references(content: TaxonomyFile, causes: dict[str, Cause], where: Path | str) -> None:
    for field, name in _references(content, causes):
        if name not in causes:
            raise RecordError("must name a cause of the tree", where=where, field=field, found=name)


def _references(content: TaxonomyFile, causes: dict[str, Cause]) -> Iterator[tuple[str, str]]:
    """Yield (field, cause named there) for all places that name causes."""
    for name, cause in causes.items():
        yield from ((f"{name}.confused_with", other.cause) for other in cause.confused_with)
    for index, rule in enumerate(content.tie_breaks):
        yield from ((f"tie_breaks.{index}.causes", cause) for cause in rule.causes)
    for name, sign in content.decoys.items():
        yield from ((f"decoys.{name}.looks_like", cause) for cause in sign.looks_like)
    for name, gap in content.insufficient.items():
        yield from ((f"insufficient.{name}.candidates", cause) for cause in gap.candidates)


def _mirrored(causes: dict[str, Cause], where: Path | str) -> dict[str, tuple[Confusion, ...]]:
    """Return each cause's confusions, those written at the other cause included."""
    pairs: dict[str, dict[str, Confusion]] = {name: {} for name in causes}
    for name, cause in causes.items():
        for confusion in cause.confused_with:
            other = confusion.cause
            if other == name or other in pairs[name]:
                raise RecordError(
                    "must name each pair of different causes once, at one of the two",
                    where=where,
                    field=f"{name}.confused_with",
                    found=other,
                )
            pairs[name][other] = confusion.model_copy(update={"subject": name})
            pairs[other][name] = confusion.model_copy(update={"subject": name, "cause": name})
    return {name: tuple(found.values()) for name, found in pairs.items()}
