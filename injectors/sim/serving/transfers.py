"""Keys and values on their way from a prefill engine to a decode engine.

Each engine's host sends and receives one transfer at a time. How fast the path between two hosts
is, what it adds and what others leave of it is what it is for any other transfer of the job.
"""

from __future__ import annotations

from dataclasses import dataclass

from injectors.sim.job import Job
from injectors.sim.program import Collective, Kind, Label, Op, Program
from injectors.sim.serving.request import Request
from injectors.sim.transfers import Transfers

SETUP_NS = 300_000  # handshake and descriptors of one transfer
NS_PER_S = 10**9


@dataclass(frozen=True)
class Transfer:
    """One request's keys and values; engines by number, times in ns."""

    request: Request
    source: int
    target: int
    start_ns: int
    end_ns: int
    bytes: int


class Paths:
    """Hands out the ways between engines' hosts.

    Args:
        job: The whole job.
        prefilling: How many engines send, the first ones; the others receive.
        bytes_per_token: Keys and values of a token, of all ranks of an engine together.

    Attributes:
        done: All transfers so far, in the order in which they were asked for.
    """

    def __init__(self, job: Job, prefilling: int, bytes_per_token: int) -> None:
        self._rate, self._bytes_per_token = job.serving.transfer_bytes_per_s, bytes_per_token
        program, self._rows = _every_pair(job, prefilling)
        self._first = {row: op.ranks[0] for row, op in enumerate(program.ops) if op.ranks}
        self._transfers = Transfers(job, program)
        self._added_ns = self._transfers.added_ns()
        self._setup_ns = SETUP_NS + 2 * job.machine.nic_latency_ns
        self._free_ns: dict[tuple[str, int], int] = {}
        self.done: list[Transfer] = []

    def send(self, request: Request, source: int, target: int, now_ns: int) -> Transfer:
        """Send what a request's prompt left, as soon as both ends are free."""
        ends = ("from", source), ("to", target)
        begin = max(now_ns, *(self._free_ns.get(end, 0) for end in ends))
        size = request.prompt_tokens * self._bytes_per_token
        end = begin + self._length_ns(size, self._rows[source, target], begin)
        self._free_ns.update(dict.fromkeys(ends, end))
        found = Transfer(request, source, target, begin, end, size)
        self.done.append(found)
        return found

    def _length_ns(self, size: int, row: int, begin_ns: int) -> int:
        rank = self._first[row]
        nominal = size * NS_PER_S // self._rate
        factors = self._transfers.factors_q16(len(self.done), begin_ns, begin_ns + nominal)
        took = nominal * int(factors[row, rank]) >> 16
        return took + self._setup_ns + int(self._added_ns[row, rank])


def _every_pair(job: Job, prefilling: int) -> tuple[Program, dict[tuple[int, int], int]]:
    """Write a message from each sending engine's first rank to each receiving one's.

    Returns:
        A program that only says which ways there are, and the row of each of them.
    """
    program, rows, tensor = Program(job.places.ranks), {}, job.places.tensor
    label = Label(collective=Collective("send", 0, "", "kv", 2))
    for source in range(prefilling):
        for target in range(prefilling, job.serving.engines):
            name = f"kv/{source}-{target}"
            rows[source, target] = program.row(program.transfer_rows, name)
            program.add(
                Op(
                    Kind.SEND,
                    name,
                    label,
                    transfer=rows[source, target],
                    ranks=(source * tensor,),
                    peers=(target * tensor,),
                )
            )
    return program, rows
