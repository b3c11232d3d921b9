"""Moving bytes: over the bus, between ranks, and from storage through the loader."""

from __future__ import annotations

import numpy as np

from injectors.fleet.conditions import Conditions
from injectors.fleet.parameters import divide_q16
from injectors.sim import noise
from injectors.sim.noise import Ints

FULL_WIDTH = 16
DECODED = 3  # bytes that a sample has on the device for one in storage
GRADIENT_BYTES_PER_M = 2_000_000  # of a million parameters, in 16 bits
EXPOSED_PERCENT = 50  # of communication, that no compute hides
BUS_PERCENT = 80  # of the copy rate, that collectives reach over PCIe
STORAGE_MB_PER_S = 220  # of one worker's reads


def widths(on: Conditions) -> Ints:
    """Least link width, in lanes, of each job's GPUs."""
    width = noise.scale_q16(FULL_WIDTH, on.of_seat("pcie_width"))
    return np.asarray(np.minimum.reduceat(width, on.first_seats))


def copies(on: Conditions, width: Ints) -> tuple[Ints, Ints]:
    """Bytes that a step sends to the device, and the time of copies both ways, of each job."""
    world = on.world
    gradients = world.of_model("parameters_m") * GRADIENT_BYTES_PER_M
    states = np.where(world.of_recipe("offloads") == 1, gradients, 0)
    samples = world.batch * world.of_model("sample_kb") * (1000 * DECODED)
    rate = world.of_card("copy_gb_per_s") * width
    nominal = (samples + 2 * states) * FULL_WIDTH // rate
    return samples + states, noise.scale_q16(nominal, on.noise_q16("copy"))


def communication(on: Conditions, width: Ints) -> tuple[Ints, Ints]:
    """Bytes that each rank receives in a step, and the time of it that nothing hides."""
    world, ranks = on.world, on.world.jobs.ranks
    moved = world.of_model("parameters_m") * GRADIENT_BYTES_PER_M * 2 * (ranks - 1) // ranks
    rate = world.of_card("copy_gb_per_s") * BUS_PERCENT * width
    nominal = moved * FULL_WIDTH * EXPOSED_PERCENT // rate
    reached = divide_q16(nominal, on.of_job("bus_bandwidth"))
    return moved, noise.scale_q16(reached, on.noise_q16("communication"))


def loading(on: Conditions) -> tuple[Ints, Ints]:
    """Time that a loader worker reads, and computes, for one batch of each job."""
    world = on.world
    longer_percent = world.of_model("sizes") * 100 // world.of_short_input("sizes")
    kilobytes = world.batch * world.of_model("sample_kb") * longer_percent // 100
    read = divide_q16(kilobytes * 10**6 // STORAGE_MB_PER_S, on.of_job("storage_bandwidth"))
    # Microseconds times two percentages, in ns.
    nominal = world.batch * world.of_model("decode_us") * longer_percent // 10
    decode = nominal * world.of_recipe("decode_percent")
    return (
        noise.scale_q16(read, on.loader_noise_q16("read")),
        noise.scale_q16(
            noise.scale_q16(decode, on.of_job("decode_time")), on.loader_noise_q16("decode")
        ),
    )
