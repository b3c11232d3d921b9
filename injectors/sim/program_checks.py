"""What must hold of a program before it can be interpreted."""

from __future__ import annotations

from collections.abc import Iterator

from injectors.sim.program import STREAMS, THREADS, Kind, Op, Program


def problems(program: Program) -> Iterator[str]:
    """Yield what is wrong with a program, each with the path of the op and what was found."""
    yield from _groups(program)
    paths: dict[str, Op] = {}
    for op in program.ops:
        if op.path in paths:
            yield f"{op.path}: paths must be unique, found twice"
        yield from _ranks(program, op)
        yield from _rows(program, op)
        yield from _partners(program, op, paths)
        paths[op.path] = op
    yield from _batches(program)


def _groups(program: Program) -> Iterator[str]:
    for name, groups in program.groups.items():
        members = [rank for group in groups for rank in group]
        if len(set(members)) != len(members):
            yield f"groups {name!r}: groups must be disjoint, got {groups}"
        if not all(groups) or any(not 0 <= rank < program.ranks for rank in members):
            yield f"groups {name!r}: must hold ranks 0 to {program.ranks - 1}, got {groups}"


def _ranks(program: Program, op: Op) -> Iterator[str]:
    if op.ranks is None:
        return
    if not op.ranks or len(set(op.ranks)) != len(op.ranks):
        yield f"{op.path}: ranks must be some, each once, got {op.ranks}"
    if op.ranks and not 0 <= min(op.ranks) <= max(op.ranks) < program.ranks:
        yield f"{op.path}: ranks must be 0 to {program.ranks - 1}, got {op.ranks}"


def _rows(program: Program, op: Op) -> Iterator[str]:
    sizes = {
        "work": len(program.work_rows),
        "transfer": len(program.transfer_rows),
        "pause": len(program.pauses),
        "batch": program.batches,
    }
    used = {
        Kind.COLLECTIVE: ("transfer",),
        Kind.SEND: ("transfer",),
        Kind.RECV: ("transfer",),
        Kind.PAUSE: ("pause",),
        Kind.NEXT_BATCH: ("batch",),
    }.get(op.kind, ())
    for name in ("work", *used):
        if not 0 <= getattr(op, name) < sizes[name]:
            yield f"{op.path}: {name} must be below {sizes[name]}, got {getattr(op, name)}"
    most = THREADS if op.kind == Kind.JOIN else STREAMS
    if not 0 <= op.other < most:
        yield f"{op.path}: other must be below {most}, got {op.other}"


def _batches(program: Program) -> Iterator[str]:
    taken: dict[int, list[int]] = {}
    for op in program.ops:
        if op.kind == Kind.NEXT_BATCH:
            for rank in range(program.ranks) if op.ranks is None else op.ranks:
                taken.setdefault(rank, []).append(op.batch)
    for rank, batches in taken.items():
        if batches != list(range(program.batches)):
            yield (
                f"rank {rank} must take batches 0 to {program.batches - 1} in their order, "
                f"or none, takes {batches}"
            )


def _partners(program: Program, op: Op, before: dict[str, Op]) -> Iterator[str]:
    if op.kind == Kind.COLLECTIVE and op.groups not in program.groups:
        yield f"{op.path}: groups must be one of {sorted(program.groups)}, got {op.groups!r}"
    if op.kind not in (Kind.SEND, Kind.RECV):
        return
    ranks = tuple(range(program.ranks)) if op.ranks is None else op.ranks
    if len(op.peers) != len(ranks):
        yield f"{op.path}: peers must be one for each of {ranks}, got {op.peers}"
    if op.kind == Kind.RECV:
        send = before.get(op.pair)
        if send is None or send.kind != Kind.SEND:
            yield f"{op.path}: pair must be a SEND that comes before, got {op.pair!r}"
        elif send.ranks is not None and not set(op.peers) <= set(send.ranks):
            yield f"{op.path}: {op.pair} must be done by {op.peers}, is done by {send.ranks}"
