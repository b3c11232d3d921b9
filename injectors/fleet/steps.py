"""How long each job's steps take, part by part, under a set of edited parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from injectors.fleet.clocks import HEATING_MC, Clocks, Limits, inlet_mc, settle
from injectors.fleet.parameters import Edit, Parameter, divide_q16, factor_q16
from injectors.fleet.world import World
from injectors.sim import noise
from injectors.sim.noise import Ints

FULL_WIDTH = 16
RECOMPILE_LIMIT = 8
OFF_TENSOR_CORES = 3  # a product on the plain cores takes so many times longer on top
TENSOR_SHARE_PERCENT = 60  # of nominal product time in which the tensor cores are active
EXPOSED_PERCENT = 50  # of communication, that no compute hides
BUS_PERCENT = 80  # of the copy rate, that collectives reach over PCIe
STORAGE_MB_PER_S = 220  # of one worker's reads
OVERHEAD_NS = 1_500_000
COMPUTE_SIGMA_Q16, COPY_SIGMA_Q16, BUS_SIGMA_Q16 = 590, 980, 1640  # 0.9, 1.5 and 2.5 %
READ_SIGMA_Q16, DECODE_SIGMA_Q16, MEMORY_SIGMA_Q16 = 3280, 1310, 330  # 5, 2 and 0.5 %


@dataclass(frozen=True)
class Steps:
    """What a job would report of its steps; arrays with one entry a job, times in ns.

    `clocks` are of the rank whose GPU computes longest, `pcie_width` is the least of all ranks.
    """

    compute_ns: Ints
    communication_ns: Ints
    copy_ns: Ints
    data_wait_ns: Ints
    overhead_ns: Ints
    tensor_ns: Ints
    read_ns: Ints
    decode_ns: Ints
    recompiles: Ints
    clocks: Clocks
    limit_w: Ints
    pcie_width: Ints
    received_bytes: Ints
    memory_used_bytes: Ints

    @property
    def step_ns(self) -> Ints:
        """The whole step."""
        parts = self.compute_ns + self.communication_ns + self.copy_ns + self.data_wait_ns
        return parts + self.overhead_ns


def run(world: World, edits: Sequence[Edit] = ()) -> Steps:
    """Time the steps of every job of a period."""
    return _Run(world, edits).steps()


class _Run:
    """One evaluation of the model; seats are ranks on their GPUs, see `World.seat_job`."""

    def __init__(self, world: World, edits: Sequence[Edit]) -> None:
        self._world, self._edits = world, edits
        self._seat = world.seat_job

    def steps(self) -> Steps:
        world = self._world
        clocks, limit_w = self._clocks()
        product_ns = self._product_ns()
        compute = self._seat_compute_ns(product_ns, clocks)
        slowest = self._slowest(compute)
        width = self._width()
        narrowest = np.minimum.reduceat(width, self._first_seats())
        copy_bytes, copy = self._copies(narrowest)
        communicated, communication = self._communication(narrowest)
        read, decode = self._loader()
        busy = compute[slowest] + communication + copy
        supply = (read + decode) // world.of_card("workers")
        used, spilled = self._memory()
        return Steps(
            compute_ns=compute[slowest],
            communication_ns=communication,
            copy_ns=copy,
            data_wait_ns=np.maximum(supply - busy, 0) + self._jitter_ns(supply),
            overhead_ns=OVERHEAD_NS + self._jitter_ns(np.full_like(copy, OVERHEAD_NS * 20)),
            tensor_ns=self._tensor_ns(product_ns, clocks.clock_q16[slowest]),
            read_ns=read,
            decode_ns=decode,
            recompiles=self._recompiles(),
            clocks=Clocks(*(values[slowest] for values in vars(clocks).values())),
            limit_w=limit_w[slowest],
            pcie_width=narrowest,
            received_bytes=copy_bytes + communicated + spilled[slowest],
            memory_used_bytes=used[slowest],
        )

    def _of_job(self, parameter: Parameter) -> Ints:
        return factor_q16(self._world.columns, parameter, self._edits)

    def _of_seat(self, parameter: Parameter) -> Ints:
        return factor_q16(self._world.seat_columns, parameter, self._edits)

    def _noise(self, name: str, sigma_q16: int) -> Ints:
        return noise.factor_q16(noise.extend(self._world.jobs.keys, name), sigma_q16)

    def _jitter_ns(self, scale_ns: Ints) -> Ints:
        drawn = noise.exponential_q16(noise.extend(self._world.jobs.keys, "jitter"))
        return noise.scale_q16(scale_ns // 100, drawn)

    def _first_seats(self) -> Ints:
        ranks = self._world.jobs.ranks
        return np.asarray(np.cumsum(ranks) - ranks)

    def _slowest(self, compute_ns: Ints) -> Ints:
        """Seat of the rank that computes longest of each job, the first of equals."""
        longest = np.maximum.reduceat(compute_ns, self._first_seats())
        seats = np.where(compute_ns == longest[self._seat], np.arange(len(compute_ns)), 2**40)
        return np.minimum.reduceat(seats, self._first_seats())

    def _clocks(self) -> tuple[Clocks, Ints]:
        world = self._world
        middle_ns = (world.jobs.start_ns + world.jobs.budget_ns // 2)[self._seat]
        limit_w = world.of_card("power_limit_w")[self._seat]
        idle_w = world.of_card("idle_w")[self._seat]
        load_percent = world.of_model("load_percent")[self._seat]
        period = noise.key(world.fleet.key, "later" if world.later else "earlier")
        capped_w = noise.scale_q16(limit_w, self._of_seat("power_limit"))
        limits = Limits(
            inlet_mc=inlet_mc(period, middle_ns, self._of_seat("inlet_excess")),
            resistance=noise.scale_q16(HEATING_MC // limit_w, self._of_seat("thermal_resistance")),
            silicon_q16=noise.scale_q16(
                world.fleet.silicon_q16(world.later)[world.seat_gpu], self._of_seat("silicon_power")
            ),
            load_w=(limit_w - idle_w) * load_percent // 100,
            idle_w=idle_w,
            limit_w=capped_w,
        )
        return settle(limits), capped_w

    def _product_ns(self) -> Ints:
        """Nominal time of the step's products at full clock."""
        world = self._world
        work_kflop = world.of_model("mflop") * world.batch * 1000
        rate = world.of_card("peak_mflop_per_us") * world.of_model("efficiency_percent")
        return np.asarray(work_kflop * world.of_recipe("work_percent") // rate)

    def _seat_compute_ns(self, product_ns: Ints, clocks: Clocks) -> Ints:
        world = self._world
        plain_q16 = noise.ONE_Q16 - self._of_job("tensor_kept")
        longer = noise.scale_q16(product_ns, noise.ONE_Q16 + OFF_TENSOR_CORES * plain_q16)
        product = divide_q16(longer, self._of_job("compute_efficiency"))[self._seat]
        memory = self._traffic_ns()
        eager_q16 = noise.ONE_Q16 + self._eager_q16()
        whole = divide_q16(product, clocks.clock_q16) + memory[self._seat]
        spilled = self._memory()[1] * 2 // world.of_card("copy_gb_per_s")[self._seat]
        scaled = noise.scale_q16(whole, (noise.scale_q16(eager_q16, self._own_noise()))[self._seat])
        return scaled + spilled

    def _own_noise(self) -> Ints:
        return self._noise("compute", COMPUTE_SIGMA_Q16)

    def _traffic_ns(self) -> Ints:
        """Time of the step's memory traffic, which no clock changes."""
        world = self._world
        work = world.of_model("mflop") * 1000 // world.of_model_at(0, "mflop")
        kilobytes = world.of_model("traffic_kb") * world.batch * work // 1000
        moved = kilobytes * world.of_recipe("traffic_percent") // 100
        return np.asarray(moved * 1000 // world.of_card("bandwidth_gb_per_s"))

    def _eager_q16(self) -> Ints:
        """What a job costs more whose compiler met more shapes than it may specialise on."""
        cost = self._world.of_model("eager_percent") * noise.ONE_Q16 // 100
        given_up = self._recompiles() >= RECOMPILE_LIMIT
        return np.where(given_up, noise.scale_q16(cost, self._of_job("eager_cost")), 0)

    def _recompiles(self) -> Ints:
        """Specialised on every shape, or on a few once the compiler takes sizes as dynamic."""
        shapes = self._world.of_recipe("shapes")
        few = np.minimum(shapes - 1, 1 + noise.below(self._key("recompiles"), 3))
        static = self._of_job("shapes_marked_dynamic") == 0
        return np.where(static, np.minimum(shapes - 1, RECOMPILE_LIMIT), few)

    def _key(self, name: str) -> noise.Keys:
        return noise.extend(self._world.jobs.keys, name)

    def _tensor_ns(self, product_ns: Ints, clock_q16: Ints) -> Ints:
        kept = noise.scale_q16(
            product_ns * TENSOR_SHARE_PERCENT // 100, self._of_job("tensor_kept")
        )
        return noise.scale_q16(divide_q16(kept, clock_q16), self._own_noise())

    def _width(self) -> Ints:
        return noise.scale_q16(FULL_WIDTH, self._of_seat("pcie_width"))

    def _copies(self, width: Ints) -> tuple[Ints, Ints]:
        """Bytes that cross the bus each way in a step, and the time that takes."""
        world = self._world
        gradients = world.of_model("parameters_m") * 2_000_000
        samples = world.batch * world.of_model("sample_kb") * 3000
        each_way = samples + np.where(world.of_recipe("offloads") == 1, gradients, 0)
        rate = world.of_card("copy_gb_per_s") * width
        both = (each_way + np.where(world.of_recipe("offloads") == 1, gradients, 0)) * FULL_WIDTH
        return each_way, noise.scale_q16(both // rate, self._noise("copy", COPY_SIGMA_Q16))

    def _communication(self, width: Ints) -> tuple[Ints, Ints]:
        """Bytes that each rank receives in a step, and the time of it that nothing hides."""
        world, ranks = self._world, self._world.jobs.ranks
        moved = world.of_model("parameters_m") * 2_000_000 * 2 * (ranks - 1) // ranks
        rate = world.of_card("copy_gb_per_s") * BUS_PERCENT * width
        nominal = moved * FULL_WIDTH * EXPOSED_PERCENT // rate
        reached = divide_q16(nominal, self._of_job("bus_bandwidth"))
        return moved, noise.scale_q16(reached, self._noise("bus", BUS_SIGMA_Q16))

    def _loader(self) -> tuple[Ints, Ints]:
        """Time that a worker reads, and computes, for one batch."""
        world = self._world
        longer = world.of_model("sizes") * 100 // world.of_model_at(0, "sizes")
        kilobytes = world.batch * world.of_model("sample_kb") * longer // 100
        read = divide_q16(kilobytes * 10**6 // STORAGE_MB_PER_S, self._of_job("storage_bandwidth"))
        decode_us = world.of_model("decode_us") * world.of_recipe("decode_percent") * longer
        decode = noise.scale_q16(world.batch * decode_us // 10, self._of_job("decode_time"))
        return (
            noise.scale_q16(read, self._noise("read", READ_SIGMA_Q16)),
            noise.scale_q16(decode, self._noise("decode", DECODE_SIGMA_Q16)),
        )

    def _memory(self) -> tuple[Ints, Ints]:
        """Device memory in use, and what the driver has paged to the host, of each seat."""
        world = self._world
        total = (world.of_card("memory_gib") << 30)[self._seat]
        percent = world.of_recipe("memory_percent")
        share = noise.scale_q16(
            percent * noise.ONE_Q16 // 100, self._noise("memory", MEMORY_SIGMA_Q16)
        )
        wanted = noise.scale_q16(total >> 8, share[self._seat]) << 8
        most = noise.scale_q16(total >> 8, self._of_seat("spill_above")) << 8
        return np.minimum(wanted, most), np.maximum(wanted - most, 0)
