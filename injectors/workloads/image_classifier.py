"""An image classifier fed by a real DataLoader that reads real files."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt, model_validator

from injectors.recorder.knobs import Knobs
from injectors.workloads.base import Context, Program, TrainingProgram, Workload

if TYPE_CHECKING:
    import torch

    Images = tuple[torch.Tensor, torch.Tensor]


class ImageClassifier(Workload):
    """Parameters of the network, the files and the loader.

    `packed` images lie in one file, in compressed chunks of `chunk_images`, and are scanned in
    order; those with a file each are drawn at random. Epochs have `epoch_batches` batches a rank,
    or no end where that is 0. With more than one of `sizes` each batch is cropped to one of so
    many edge lengths, `pixels` and the ones below it, the same on all ranks.
    """

    title: ClassVar[str] = "Image classifier fed from files, data-parallel training"
    channels: PositiveInt = 16
    blocks: PositiveInt = 3
    pixels: PositiveInt = 64
    batch_size: PositiveInt = 16
    files: PositiveInt = 256
    workers: NonNegativeInt = 2
    prefetch: PositiveInt = 2
    augment_passes: PositiveInt = 1
    layout: Literal["files", "packed"] = "files"
    chunk_images: PositiveInt = 32
    epoch_batches: NonNegativeInt = 0
    sizes: PositiveInt = 1

    @model_validator(mode="after")
    def _sizes_fit(self) -> ImageClassifier:
        smallest = 2**self.blocks
        if self.pixels - self.sizes + 1 < smallest:
            raise ValueError(
                f"pixels - sizes + 1 must be at least {smallest} for {self.blocks} blocks, got"
                f" {self.pixels - self.sizes + 1}"
            )
        return self

    @property
    def settle_steps(self) -> int:
        """Batches fetched before the change are used up after these steps."""
        return self.workers * self.prefetch + 2

    def build(self, context: Context) -> Program:
        """Make the network, loader and optimizer of one rank."""
        return ClassifierProgram(self, context)

    def prepare(self, folder: Path, seed: int) -> None:
        """Write the images."""
        from injectors.workloads.layouts import make_images, write_files, write_packed

        images = make_images(self.files, self.pixels, seed)
        if self.layout == "files":
            write_files(folder / "images", images)
        else:
            write_packed(folder / "images", list(images), self.chunk_images)


class ClassifierProgram(TrainingProgram):
    """The rank's network and the feed of its batches."""

    def __init__(self, parameters: ImageClassifier, context: Context) -> None:
        import torch

        from injectors.workloads.feed import Feed

        super().__init__(context)
        torch.manual_seed(context.seed)
        self.model = _network(parameters, context.knobs).to(context.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.samples_per_step = parameters.batch_size
        self._feed = Feed(parameters, context)
        self._parameters = parameters
        self._sizes = random.Random(context.seed)
        self._rows: list[dict[str, Any]] = []

    def next_batch(self) -> Images | Callable[[], Images]:
        """Wait for a batch; with a knob, return at once what waits for it when it is needed."""
        late = self._context.knobs["late_fetch"]
        return self._feed.fetch if late else self._feed.fetch()

    def forward(self, batch: Any) -> torch.Tensor:
        """Return the cross entropy of a batch of (images, labels)."""
        import torch

        images, labels = batch() if callable(batch) else batch
        return torch.nn.functional.cross_entropy(self.model(self._cropped(images)), labels)

    def _cropped(self, images: torch.Tensor) -> torch.Tensor:
        """Return the corner of the images that this batch trains on, and note its edge length."""
        if self._parameters.sizes == 1:
            return images
        edge = self._parameters.pixels - self._sizes.randrange(self._parameters.sizes)
        self._rows.append({"time_ns": time.monotonic_ns(), "value": float(edge)})
        return images[..., :edge, :edge].contiguous()

    def cold_start(self) -> None:
        """Start the loader's workers anew, as a job's first step does."""
        self._feed.restart()

    def tables(self, start_ns: int, steps: int) -> dict[str, list[dict[str, Any]]]:
        """Return and forget the loader's rows, numbered from 0 in each recording, and sizes."""
        sizes, self._rows = self._rows[: steps * self.micro_batches], []
        common = {
            "rank": self._context.rank,
            "event": "input_size",
            "duration_ns": None,
            "detail": "pixels of an edge",
        }
        return {
            "loader": self._feed.rows(start_ns, steps),
            "runtime": [{**common, **row, "time_ns": row["time_ns"] - start_ns} for row in sizes],
        }

    def close(self) -> None:
        """End the loader's workers."""
        self._feed.close()


def _network(parameters: ImageClassifier, knobs: Knobs) -> torch.nn.Module:
    from torch import nn

    from injectors.kernels.convolution import Convolution, Tuner

    tuner = Tuner(knobs)
    layers: list[nn.Module] = []
    width = 3
    for number in range(parameters.blocks):
        wider = parameters.channels * 2**number
        layers += [Convolution(width, wider, number, knobs, tuner), nn.ReLU(), nn.MaxPool2d(2)]
        width = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))
