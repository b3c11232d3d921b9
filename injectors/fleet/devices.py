"""Computing: products at the GPU's clock, memory traffic, uncompiled code, paging."""

from __future__ import annotations

import numpy as np

from injectors.fleet.clocks import HEATING_MC, Clocks, Limits, inlet_mc, settle
from injectors.fleet.conditions import Conditions
from injectors.fleet.parameters import divide_q16
from injectors.sim import noise
from injectors.sim.noise import Ints

RECOMPILE_LIMIT = 8
OFF_TENSOR_CORES = 3  # a product on the plain cores takes so many times longer on top
TENSOR_SHARE_PERCENT = 60  # of nominal product time in which the tensor cores are active
MEMORY_SIGMA_Q16 = 330  # 0.5 %


def clocks(on: Conditions) -> tuple[Clocks, Ints]:
    """Return where each seat's clock settles, and its power limit in watts."""
    world, seat = on.world, on.world.seat_job
    limit_w = world.of_card("power_limit_w")[seat]
    idle_w = world.of_card("idle_w")[seat]
    load_percent = (world.of_model("load_percent") * world.of_recipe("load_percent"))[seat]
    capped_w = noise.scale_q16(limit_w, on.of_seat("power_limit"))
    chips = world.fleet.silicon_q16(world.later)[world.seat_gpu]
    limits = Limits(
        inlet_mc=_inlet_mc(on),
        resistance=noise.scale_q16(HEATING_MC // limit_w, on.of_seat("thermal_resistance")),
        silicon_q16=noise.scale_q16(chips, on.of_seat("silicon_power")),
        load_w=(limit_w - idle_w) * load_percent // 10_000,
        idle_w=idle_w,
        limit_w=capped_w,
    )
    return settle(limits), capped_w


def _inlet_mc(on: Conditions) -> Ints:
    world, period = on.world, "later" if on.world.later else "earlier"
    middle_ns = (world.start_ns + world.jobs.budget_ns // 2)[world.seat_job]
    return inlet_mc(noise.key(world.fleet.key, period), middle_ns, on.of_seat("inlet_excess"))


def compute_ns(on: Conditions, clock_q16: Ints) -> Ints:
    """Time of a step's kernels on each seat.

    Args:
        on: The jobs.
        clock_q16: Clock of each seat as a fraction of its highest.
    """
    seat = on.world.seat_job
    plain_q16 = noise.ONE_Q16 - on.of_job("tensor_kept")
    longer = noise.scale_q16(product_ns(on), noise.ONE_Q16 + OFF_TENSOR_CORES * plain_q16)
    products = divide_q16(longer, on.of_job("compute_efficiency"))[seat]
    whole = divide_q16(products, clock_q16) + _traffic_ns(on)[seat]
    by_q16 = noise.scale_q16(noise.ONE_Q16 + _eager_q16(on), on.noise_q16("compute"))
    paged_ns = memory(on)[1] * 2 // on.world.of_card("copy_gb_per_s")[seat]
    return noise.scale_q16(whole, by_q16[seat]) + paged_ns


def product_ns(on: Conditions) -> Ints:
    """Nominal time of a step's products at full clock, for each job."""
    world = on.world
    work_kflop = world.of_model("mflop") * world.batch * 1000
    rate = world.of_card("peak_mflop_per_us") * world.of_model("efficiency_percent")
    return np.asarray(work_kflop * world.of_recipe("work_percent") // rate)


def tensor_ns(on: Conditions, clock_q16: Ints) -> Ints:
    """Time in which the tensor cores are active, for each job at its clock."""
    share = product_ns(on) * TENSOR_SHARE_PERCENT // 100
    kept = divide_q16(noise.scale_q16(share, on.of_job("tensor_kept")), clock_q16)
    return noise.scale_q16(kept, on.noise_q16("compute"))


def recompiles(on: Conditions) -> Ints:
    """One for each shape up to a limit, or a few once the compiler takes sizes as dynamic."""
    others = on.world.of_recipe("shapes") - 1
    few = np.minimum(others, 1 + noise.below(on.key("recompiles"), 3))
    static = on.of_job("shapes_marked_dynamic") == 0
    return np.where(static, np.minimum(others, RECOMPILE_LIMIT), few)


def memory(on: Conditions) -> tuple[Ints, Ints]:
    """Device memory in use, and what the driver has paged to the host, of each seat in bytes."""
    world = on.world
    total = (world.of_card("memory_gib") << 30)[world.seat_job]
    percent_q16 = world.of_recipe("memory_percent") * noise.ONE_Q16 // 100
    own = noise.factor_q16(on.key("memory"), MEMORY_SIGMA_Q16)
    share = noise.scale_q16(percent_q16, own)[world.seat_job]
    wanted = noise.scale_q16(total >> 8, share) << 8
    most = noise.scale_q16(total >> 8, on.of_seat("spill_above")) << 8
    return np.minimum(wanted, most), np.maximum(wanted - most, 0)


def _traffic_ns(on: Conditions) -> Ints:
    """Time of a step's memory traffic, which no clock changes."""
    world = on.world
    more = world.of_model("mflop") * 1000 // world.of_short_input("mflop")
    kilobytes = world.of_model("traffic_kb") * world.batch * more // 1000
    moved = kilobytes * world.of_recipe("traffic_percent") // 100
    return np.asarray(moved * 1000 // world.of_card("bandwidth_gb_per_s"))


def _eager_q16(on: Conditions) -> Ints:
    """What a job costs more once its compiler has met too many shapes."""
    cost = on.world.of_model("eager_percent") * noise.ONE_Q16 // 100
    given_up = recompiles(on) >= RECOMPILE_LIMIT
    return np.where(given_up, noise.scale_q16(cost, on.of_job("eager_cost")), 0)
