"""Witnesses of causes in GPUs and their links: cause -> (query, what it says)."""

from __future__ import annotations

from injectors.sim.witnesses.losses import LATE, NOW, SLOWER, THEN

# A rank's device under load, here and in the reference; {0} is "" or "reference.".
_DEVICE = """
    (SELECT rank, avg(sm_clock_mhz) AS clock, max(power_limit_w) AS power_limit,
            avg(power_w) AS power, avg(temperature_c) AS temperature,
            avg(CAST(event_reasons & 96 > 0 AS INT)) AS hot,
            avg(CAST(event_reasons & 4 > 0 AS INT)) AS capped,
            median(processes) AS users, max(pcie_generation) AS generation,
            max(pcie_width) AS width, avg(pcie_rx_bytes_per_s) AS pcie,
            max(memory_used_bytes * 1.0 / memory_total_bytes) AS used,
            max(nvlink_tx_bytes) * 1.0 / (max(time_ns) - min(time_ns)) AS linked
     FROM {0}gpu GROUP BY rank)
"""
DEVICE, USUAL_DEVICE = _DEVICE.format(""), _DEVICE.format("reference.")
# The same rank's device now and then, with the share of its clock that it has kept and the
# median of all ranks; a job of one rank has no peers, so its own past is the measure.
COMPARED = f"""
    (SELECT now.*, was.hot AS was_hot, was.capped AS was_capped, was.users AS was_users,
            was.power_limit AS usual_limit, was.generation AS usual_generation,
            was.width AS usual_width, was.pcie AS usual_pcie, was.used AS was_used,
            was.linked AS usual_linked, now.clock / was.clock AS kept,
            CASE WHEN count(*) OVER () > 1 THEN median(now.clock / was.clock) OVER ()
                 ELSE 1 END AS others_kept
     FROM {DEVICE} AS now JOIN {USUAL_DEVICE} AS was USING (rank))
"""
SLOWER_CLOCK = "kept < 0.985 * others_kept"
IS_LATE = f"{SLOWER} AND rank IN {LATE}"

DEVICES: dict[str, tuple[str, str]] = {
    "thermal_throttle": (
        f"""
        SELECT count(*) > 0 FROM {COMPARED}
        WHERE hot > 0.5 AND was_hot < 0.2 AND temperature > 75 AND {SLOWER_CLOCK} AND {IS_LATE}
        """,
        "one device says that heat holds its clock down, which is lower than in the reference,"
        " and its peers' is not, and its rank keeps the others waiting",
    ),
    "power_cap": (
        f"""
        SELECT count(*) > 0 FROM {COMPARED}
        WHERE power_limit < 0.97 * usual_limit AND capped > 0.5 AND {SLOWER_CLOCK} AND {IS_LATE}
        """,
        "one device has a lower power limit than in the reference, says that it holds its clock"
        " down, which is lower than its peers', and its rank keeps the others waiting",
    ),
    "gpu_silicon_variability": (
        f"""
        SELECT count(*) > 0 FROM {COMPARED}
        WHERE kept < 0.97 * others_kept AND hot <= was_hot + 0.1 AND capped <= was_capped + 0.1
          AND power_limit = usual_limit AND users = was_users AND {IS_LATE}
        """,
        "one device's clock is lower than in the reference and its peers' is not, with no reason"
        " of heat or power, under the same limit and with the same processes, and its rank keeps"
        " the others waiting",
    ),
    "gpu_noisy_neighbor": (
        f"""
        SELECT count(*) > 0 AND (SELECT min(users) > 0 FROM {DEVICE})
        FROM {COMPARED} WHERE users > was_users + 0.5 AND {IS_LATE}
        """,
        "another process than the job's uses a rank's device, no device lacks its own, and the"
        " rank keeps the others waiting",
    ),
    "idle_device_misconfig": (
        f"""
        SELECT {SLOWER}
           AND (SELECT count(*) > 0 FROM {COMPARED} WHERE users = 0 AND was_users > 0)
           AND (SELECT count(*) > 0 FROM {COMPARED} WHERE users > was_users)
        """,
        "no process uses one of the devices and one more than in the reference uses another",
    ),
    "pcie_downgrade": (
        f"""
        SELECT count(*) > 0 FROM {COMPARED}
        WHERE (generation < usual_generation OR width < usual_width) AND {SLOWER}
        """,
        "under load a device's PCIe link is of a lower generation, or narrower, than in the"
        " reference, and steps are longer",
    ),
    "vram_sysmem_spill": (
        f"""
        SELECT {SLOWER} AND max(used) > 0.98 AND max(was_used) < 0.95
           AND avg(pcie) > 1.1 * avg(usual_pcie) * {THEN} / {NOW} + 2e8
        FROM {COMPARED}
        """,
        "device memory is full and a step moves more over PCIe than in the reference",
    ),
}
