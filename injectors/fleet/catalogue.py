"""What fleets are made of: cards, models, recipes and version strings, as whole numbers.

Peaks, bandwidths, limits and clocks are those of the vendors' data sheets (dense BF16); what a
pinned copy reaches, compute efficiencies and shares of memory traffic follow docs/simulator.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """One GPU model on a PCIe board.

    Attributes:
        peak_mflop_per_us: Dense BF16 peak.
        bandwidth_gb_per_s: Device memory; bytes per ns.
        copy_gb_per_s: What a pinned copy reaches at full link width; bytes per ns.
        workers: Loader workers that its host has for each GPU.
    """

    name: str
    peak_mflop_per_us: int
    bandwidth_gb_per_s: int
    copy_gb_per_s: int
    memory_gib: int
    power_limit_w: int
    idle_w: int
    max_clock_mhz: int
    workers: int


@dataclass(frozen=True)
class Model:
    """One model; pairs are for its short and its long inputs.

    Attributes:
        sizes: Tokens of a sequence or pixels of an image's edge.
        mflop: Training work of a sample.
        traffic_kb: Device memory traffic of a sample (short input).
        sample_kb: What a sample takes in storage.
        decode_us: CPU time that preparing a sample takes.
        efficiency_percent: Of the peak, in its products.
        load_percent: Power it would draw at the highest clock, of what the limit allows.
        eager_percent: What running it uncompiled adds to its compute time.
        batch: Samples of a step for each 24 GiB of device memory.
        counts_tokens: Whether throughput counts tokens rather than samples.
    """

    name: str
    sizes: tuple[int, int]
    mflop: tuple[int, int]
    traffic_kb: int
    sample_kb: int
    decode_us: int
    parameters_m: int
    efficiency_percent: int
    load_percent: int
    eager_percent: int
    batch: int
    counts_tokens: bool


@dataclass(frozen=True)
class Recipe:
    """One configuration: percents of what the model takes by itself.

    Attributes:
        memory_percent: Device memory that its jobs are sized to use.
        load_percent: Power that its kernels draw, of what its model's draw by themselves.
        offloads: Whether optimizer states live in host memory and cross the bus every step.
        shapes: Distinct input shapes that a job meets.
    """

    name: str
    batch_percent: int = 100
    work_percent: int = 100
    traffic_percent: int = 100
    decode_percent: int = 100
    memory_percent: int = 72
    load_percent: int = 100
    offloads: bool = False
    shapes: int = 1


CARDS = {
    card.name: card
    for card in (
        Card("A10", 125, 600, 24, 24, 150, 20, 1695, 8),
        Card("A100-PCIE-40GB", 312, 1555, 24, 40, 250, 35, 1410, 16),
        Card("L40S", 362, 864, 24, 48, 350, 35, 2520, 16),
        Card("H100-PCIe", 756, 2039, 50, 80, 350, 45, 1755, 32),
    )
}
GPT = Model(
    "gpt-350m", (1024, 2048), (2_150_000, 4_730_000), 6_000_000, 4, 50, 355, 45, 115, 34, 4, True
)
MODELS = {
    model.name: model
    for model in (
        GPT,
        Model("llama-1b", (2048, 4096), (15_100_000, 33_900_000), 22_000_000, 8, 60, 1240,
              50, 120, 26, 2, True),
        Model("bert-large", (256, 512), (515_000, 1_070_000), 1_800_000, 1, 30, 335,
              42, 112, 38, 12, True),
        Model("t5-base", (512, 1024), (680_000, 1_420_000), 2_200_000, 4, 60, 223,
              40, 112, 36, 12, True),
        Model("vit-l", (224, 384), (185_000, 573_000), 700_000, 110, 2400, 304,
              42, 115, 30, 32, False),
        Model("resnet-50", (224, 320), (12_300, 25_100), 90_000, 110, 2200, 26,
              25, 100, 22, 128, False),
        Model("conformer-s", (800, 1600), (40_000, 84_000), 150_000, 320, 4800, 31,
              30, 106, 28, 32, False),
    )
}  # fmt: skip
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("base"),
        Recipe("wide", batch_percent=150, memory_percent=94),
        Recipe("float32", batch_percent=50, work_percent=200, traffic_percent=200,
               memory_percent=80),
        Recipe("ragged", work_percent=104, memory_percent=78, shapes=18),
        Recipe("offload", memory_percent=55, offloads=True),
        Recipe("augment", decode_percent=150),
        # So small batches that the chips stay below every limit, at their highest clock.
        Recipe("lean", batch_percent=50, memory_percent=60, load_percent=66),
    )
}  # fmt: skip
VERSIONS: dict[str, tuple[str, ...]] = {
    "driver": (
        "535.104.05", "535.161.08", "535.183.01", "550.54.15", "550.90.07", "550.127.05",
        "560.35.03", "565.57.01", "570.86.15", "570.124.06",
    ),
    "nccl": (
        "2.18.5", "2.19.3", "2.20.5", "2.21.5", "2.22.3", "2.23.4", "2.24.3", "2.25.1", "2.26.2",
    ),
    "framework": ("2.2.2", "2.3.1", "2.4.0", "2.4.1", "2.5.0", "2.5.1", "2.6.0", "2.7.0", "2.7.1"),
    "image": ("23.10", "23.12", "24.02", "24.03", "24.05", "24.06", "24.08", "24.09", "24.11"),
    "storage": ("alder", "birch", "cedar", "elm", "hazel", "larch", "maple", "rowan", "willow"),
}  # fmt: skip
