"""What holds host threads up now and then: when, for how long, and on which ranks.

Each kind is drawn by keys of its own from (seed, step or occurrence, rank). What comes every so
many steps on average comes once in each run of so many, at a place that is drawn. What goes by
the clock (agents that poll, a process that is stopped) is counted in the time that the step is
expected to take, so that no occurrence is lost or counted twice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from injectors.sim import noise
from injectors.sim.expected import Expected
from injectors.sim.job import ONE, Job
from injectors.sim.program import Ints, Program

OF_THE_WORKLOAD = ("idle", "schedule", "jit")  # which a served model fills in itself
LEAST_Q16, SPREAD_Q16 = 52429, 26214  # lengths are 0.8 to 1.2 of what is set


class Pauses:
    """The pauses of every step of a job.

    Args:
        job: Whose.
        program: Whose rows they fill.
        expected: What a step should take.
        fetch_ns: Returns how long each rank's first batch of a step is fetched.
    """

    def __init__(
        self, job: Job, program: Program, expected: Expected, fetch_ns: Callable[[int], Ints]
    ) -> None:
        self._job, self._fetch_ns = job, fetch_ns
        self._which = np.arange(program.ranks)
        self._clockwork = _Clockwork(job)
        self._none = np.zeros(program.ranks, np.int64)
        self._places: dict[str, tuple[int, Ints]] = {}  # by kind: the present run, and where in it
        kinds: dict[str, Callable[[int], Ints]] = {
            "gc": self._gc,
            "recompile": self._recompile,
            "autotune": self._autotune,
            "retry": self._retry,
            "metric": self._metric,
            "checkpoint": self._checkpoint,
            "respawn": self._respawn,
            "extra": self._extra,
            "suspend": lambda step: self._clockwork.stopped_ns,
            "poll": lambda step: self._clockwork.polled_ns,
            **dict.fromkeys(OF_THE_WORKLOAD, lambda step: self._none),
        }
        unknown = [name for name in program.pauses if name not in kinds]
        if unknown:
            raise ValueError(f"pauses must be among {sorted(kinds)}, got {unknown}")
        self._rows = [kinds[name] for name in program.pauses]

    def of(self, step: int, begin_ns: Ints, length_ns: int) -> Ints:
        """Return the step's pauses, (pauses, ranks) of ns.

        Args:
            step: Its number.
            begin_ns: (ranks,), when it begins.
            length_ns: What it takes without what goes by the clock.
        """
        self._clockwork.turn(begin_ns, length_ns)
        found = np.zeros((len(self._rows), len(self._none)), np.int64)
        for values, kind in zip(found, self._rows, strict=True):
            values[:] = kind(step)
        return found

    @property
    def by_the_clock_ns(self) -> Ints:
        """(ranks,), what of the last step's pauses goes by the clock."""
        return self._clockwork.stopped_ns + self._clockwork.polled_ns

    def _gc(self, step: int) -> Ints:
        host = self._job.host
        if not host.gc_every or not host.gc_ns:
            return self._none
        each = None if host.gc_together else self._which
        found = self._now_and_then("gc", step, host.gc_every, each, host.gc_ns)
        return found * self._one_of(host.gc_ranks)

    def _recompile(self, step: int) -> Ints:
        compiler = self._job.compiler
        again = self._now_and_then(
            "recompile", step, compiler.recompile_every, None, compiler.recompile_ns
        )
        if step or not compiler.first_ns:
            return again
        return again + self._lengths("compile", step, compiler.first_ns)

    def _autotune(self, step: int) -> Ints:
        compiler = self._job.compiler
        return self._now_and_then(
            "autotune", step, compiler.autotune_every, None, compiler.autotune_ns
        )

    def _retry(self, step: int) -> Ints:
        host = self._job.host
        return self._now_and_then("retry", step, host.retry_every, self._which, host.retry_ns)

    def _metric(self, step: int) -> Ints:
        host = self._job.host
        if not host.metric_every or (step + 1) % host.metric_every:
            return self._none
        return self._lengths("metric", step, host.metric_ns) * self._one_of((0,))

    def _checkpoint(self, step: int) -> Ints:
        saved = self._job.checkpoint
        if not saves(self._job, step) or saved.asynchronous:
            return self._none
        writing = saved.bytes * 10**9 // saved.bytes_per_s
        return self._lengths("checkpoint", step, writing) * self._one_of(saved.ranks)

    def _respawn(self, step: int) -> Ints:
        loader = self._job.loader
        if not loader.epoch_steps or not loader.respawn_ns or not step or step % loader.epoch_steps:
            return self._none
        # New workers begin with nothing fetched.
        return self._lengths("respawn", step, loader.respawn_ns) + self._fetch_ns(step)

    def _extra(self, step: int) -> Ints:
        given = self._job.host.extra_ns if step else self._late_and_extra_ns()
        if not given:
            return self._none
        usual = np.array([given.get(rank, 0) for rank in self._which.tolist()], np.int64)
        return self._lengths("extra", step, usual)

    def _late_and_extra_ns(self) -> dict[int, int]:
        """What holds ranks up in the first step."""
        first, given = self._job.host.first_ns, self._job.host.extra_ns
        ranks = sorted({*first, *given})
        return {rank: first.get(rank, 0) + given.get(rank, 0) for rank in ranks}

    def _now_and_then(
        self, name: str, step: int, every: int, each: Ints | None, length_ns: int
    ) -> Ints:
        """Once in every run of `every` steps, by itself on `each` rank or together (None)."""
        if not every or not length_ns:
            return self._none
        run, place = self._places.get(name, (-1, self._none))
        if run != step // every:
            run = step // every
            base = noise.key(self._job.seed, "pause", name, run)
            place = noise.below(noise.extend(base, 0 if each is None else each), every)
            self._places[name] = run, place
        now = place == step % every
        return self._lengths(name, step, length_ns) * now if now.any() else self._none

    def _lengths(self, name: str, step: int, usual_ns: int | Ints) -> Ints:
        of = noise.extend(noise.key(self._job.seed, "length", name, step), self._which)
        factor = LEAST_Q16 + (noise.uniform_q16(of) * SPREAD_Q16 >> 16)
        return np.asarray(usual_ns * factor >> 16)

    def _one_of(self, ranks: tuple[int, ...] | None) -> Ints:
        if ranks is None:
            return np.ones_like(self._none)
        return np.isin(self._which, list(ranks)).astype(np.int64)


class _Clockwork:
    """Counts what comes round by the clock: stops of a process, and polls of an agent."""

    def __init__(self, job: Job) -> None:
        host, ranks = job.host, range(job.places.ranks)
        share = [min(host.suspended_q16.get(rank, 0), ONE * 9 // 10) for rank in ranks]
        polled = [job.places.host(rank) in host.polled_hosts for rank in ranks]
        on = host.poll_every_ns > 0 and host.poll_ns > 0
        self._share_q16 = np.array(share, np.int64)
        self._stop, self._stopped = max(host.suspended_period_ns, 1), any(share)
        self._poll, self._polls = max(host.poll_every_ns, 1), on and any(polled)
        self._polled_ns = host.poll_ns * np.array(polled, np.int64)
        hosts = np.array([job.places.host(rank) for rank in ranks], np.int64)
        phase = noise.uniform_q16(noise.keys(job.seed, "clockwork", hosts))
        self._stop_phase, self._poll_phase = phase * self._stop >> 16, phase * self._poll >> 16
        self._seed, self._hosts = job.seed, hosts
        self._stops = self._agents = np.zeros(len(hosts), np.int64)  # periods already counted
        self.stopped_ns = self.polled_ns = np.zeros(len(hosts), np.int64)

    def turn(self, begin_ns: Ints, length_ns: int) -> None:
        """Count what comes in a step that would take so long without it."""
        if self._stopped:
            end = begin_ns + length_ns * ONE // (ONE - self._share_q16)
            now = (end + self._stop_phase) // self._stop
            each = self._share_q16 * self._stop >> 16
            self.stopped_ns = (now - self._stops) * each
            self._stops = now
        if self._polls:
            busy = np.minimum(self._polled_ns * ONE // self._poll, ONE * 9 // 10)
            now = (begin_ns + length_ns * ONE // (ONE - busy) + self._poll_phase) // self._poll
            of = noise.extend(noise.keys(self._seed, "poll", self._hosts), now)
            factor = LEAST_Q16 + (noise.uniform_q16(of) * SPREAD_Q16 >> 16)
            self.polled_ns = (now - self._agents) * self._polled_ns * factor >> 16
            self._agents = now


def saves(job: Job, step: int) -> bool:
    """Whether a checkpoint is saved at the end of a step."""
    return job.checkpoint.every > 0 and (step + 1) % job.checkpoint.every == 0
