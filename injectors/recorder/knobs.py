"""Shared-memory settings that a running job reads at every use.

The recorder turns a knob; ranks and loader workers, forked from it, see the new value at
once. Healthy and faulty runs execute the same code with other values, so function and range
names in traces are the same.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

# name -> value in a healthy job
DEFAULTS: dict[str, float] = {
    "storage_bytes_per_s": float("inf"),  # shared bandwidth of the storage that files lie on
    "decode_passes": 1.0,  # augmentation passes of the decoder
    "eager_layers": 0.0,  # layers whose elementwise chains run op by op
    "read_latency_s": 0.0,  # wait before each read of the loaders that the next three name
    "latency_turn_batches": 0.0,  # batches for which one rank has it, then the next; 0: no turns
    "latency_rank": -1.0,  # the rank that has it; -1: all
    "latency_worker": -1.0,  # its loader worker that has it; -1: all
    "remapped_share": 0.0,  # share of a packed file's index that leads out of stored order
    "worker_core": -1.0,  # the core that loader workers run on; -1: those of their start
    "worker_life_epochs": 0.0,  # epochs after which loader workers are started anew; 0: never
    "late_fetch": 0.0,  # 1: a batch is waited for where it is used
    "checkpoint_every": 0.0,  # steps between checkpoints; 0: none
    "checkpoint_megabytes": 0.0,  # state that a checkpoint holds beside the model's
    "checkpoint_durable": 0.0,  # 1: a checkpoint is on the disk before training goes on
    "checkpoint_thread": 0.0,  # 1: a thread writes it while training goes on
    "sync_every": 0.0,  # micro-batches between gradient averages; 0: only after the last
    "waited_buckets": 0.0,  # gradient buckets, from the first, that are waited for when sent
    "full_precision_layers": 0.0,  # layers, from the first, that autocast leaves alone
    "math_layers": 0.0,  # layers, from the first, whose attention runs step by step
    "loop_optimizer": 0.0,  # 1: the optimizer updates one parameter after the other
    "pieces": 1.0,  # parts that a micro-batch goes through the model in
    "padded_length": 0.0,  # tokens that sequences are padded to; 0: no padding
    "length_shift": 0.0,  # micro-batches by which ranks are apart in the order of lengths
    "anomaly_every": 0.0,  # steps from one under autograd's anomaly mode to the next; 0: none
    "read_backs": 0.0,  # gradients of which the host reads a value in each step
    "history_records": 0.0,  # records that the loop keeps of a micro-batch
    "history_rank": 0.0,  # the rank that keeps them
    "metrics_every": 0.0,  # steps between reports to the metrics service; 0: none
    "metrics_port": 0.0,  # where it listens, on rank 0's loopback
    "expert_bias": 0.0,  # added to the router's scores of one rank's experts, in logits
    "expert_bias_rank": 0.0,  # that rank
    "popular_lookups": 0.0,  # share of embedding look-ups that ask for rows of one rank alone
    "popular_rank": 0.0,  # that rank
    "loss_shared": 0.0,  # 1: all stages of a pipeline are told the loss of every step
    "step_barrier": 0.0,  # 1: the stages of a pipeline meet at the end of every step
    "busy_poll": 0.0,  # 1: a rank asks again and again whether an all-to-all is done
    "stage_steps": 0.0,  # forward passes to the curriculum's next stage; 0: it stays at the first
    "other_version_layers": 0.0,  # layers, from the first, with another version of their kernels
    "tuning_tries": 0.0,  # runs of each algorithm where a shape is new; 0: heuristics choose
    "tuned_since": 0.0,  # when tuning began (monotonic s): earlier results are not used
    "memory_headroom": float("inf"),  # CUDA memory left above the peak, as a share of that
    "max_num_seqs": float("inf"),  # requests that an inference engine runs at a time
    "kv_blocks": float("inf"),  # blocks of keys and values that an engine may hold
    "reserve_answers": 0.0,  # 1: admission takes the blocks of the whole answer
    "chunked_requests": 1.0,  # share of requests whose prompts are computed in chunks
    "cached_requests": 1.0,  # share of requests whose keys and values are kept
    "indexed_requests": 1.0,  # share of requests whose grammar has an index of masks
    "plain_number_requests": 0.0,  # share whose temperature is a Python number to compiled code
    "sticky_requests": 1.0,  # share of requests that go to the engine of their tenant
    "draft_tokens": 0.0,  # tokens drafted before each decode
    "logprobs": 0.0,  # likely tokens that each answer tells
    "cold_start": 0.0,  # 1: the next recorded window begins with the job's first step
}
# Slots behind the knobs that processes share for their own book-keeping.
STORAGE_FREE_AT = len(DEFAULTS)
SLOTS = len(DEFAULTS) + 1


class Knobs:
    """A row of doubles in anonymous shared memory, inherited through fork."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SLOTS * 8)
        self._cells = (ctypes.c_double * SLOTS).from_buffer(self._memory)
        self._index = {name: i for i, name in enumerate(DEFAULTS)}
        for name, value in DEFAULTS.items():
            self._cells[self._index[name]] = value

    def __getitem__(self, name: str) -> float:
        return float(self._cells[self._index[name]])

    def __setitem__(self, name: str, value: float) -> None:
        self._cells[self._index[name]] = value

    def slot(self, index: int) -> float:
        """Read a book-keeping slot."""
        return float(self._cells[index])

    def set_slot(self, index: int, value: float) -> None:
        """Write a book-keeping slot; callers hold their own lock."""
        self._cells[index] = value

    @contextmanager
    def turned(self, **values: float) -> Iterator[None]:
        """Set knobs for the length of a block, and back on every exit."""
        before = {name: self[name] for name in values}
        try:
            for name, value in values.items():
                self[name] = value
            yield
        finally:
            for name, value in before.items():
                self[name] = value
