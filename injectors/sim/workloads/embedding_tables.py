"""Embedding tables that are dealt out over all ranks, as layers.

Each rank looks up the rows of its own tables for the samples of all ranks: indices travel to the
tables, sums of rows travel back, and their gradients travel to the tables again. As in fbgemm the
update of the rows is part of the backward half.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from injectors.sim.costs import FUSED_Q16, GATHER_Q16
from injectors.sim.launches import Exchange, Launch, ReadBack
from injectors.sim.program import Stream
from injectors.sim.tape import Layer, Node, Step
from injectors.sim.workloads.blocks import Blocks

INDEX_BYTES, LENGTH_BYTES, ROW_ELEMENT_BYTES = 8, 4, 2
SORT_PASSES = 4  # of a radix sort, each of which reads and writes keys and values
PERMUTE = "fbgemm::permute_2D_sparse_data"
LOOKUP = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
UPDATE = "fbgemm::split_embedding_backward_codegen_rowwise_adagrad_unweighted_exact_cuda"
FUNCTION = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"
FORWARD_KERNEL = (
    "void split_embedding_codegen_forward_unweighted_kernel"
    "<c10::Half, c10::Half, float, false, long, 2ul, 32ul>"
)
BACKWARD_KERNEL = (
    "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_{}_per_row_1"
    "<c10::Half, float, c10::Half, 2ul, 32>"
)
CUB_SORT = "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>>"


class Tables(NamedTuple):
    """Sizes of the tables, and of the look-ups for a rank's own samples.

    Tables are dealt out evenly, so a rank looks up as many rows for others as others for it.
    Those of equal settings, a group, are looked up by one kernel.
    """

    tables: int
    width: int
    lookups: int
    groups: int
    samples: int

    @property
    def rows(self) -> int:
        """Rows that a rank looks up, each of the whole width."""
        return self.tables * self.samples * self.lookups

    @property
    def sums(self) -> int:
        """Elements of the sums of rows that a rank gets."""
        return self.tables * self.samples * self.width


def sparse(blocks: Blocks, tables: Tables) -> Layer:
    """Order the batch's indices by where their tables are; the host learns how many will come."""
    make, lengths = blocks.launches, tables.tables * tables.samples * LENGTH_BYTES
    kernel = "void fbgemm_gpu::permute_2D_{}_kernel<{}>"
    counts = kernel.format("lengths", "int")
    data = kernel.format("data", "false, int, long, decltype(nullptr)")
    scan = "void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy900, int*, int*>"
    moved = 2 * tables.rows * INDEX_BYTES
    steps = (
        make.named("lengths", counts, 2 * lengths, (PERMUTE,)),
        make.named("scan", scan, 2 * lengths, ("fbgemm::asynchronous_complete_cumsum",)),
        make.named("permute", data, moved, (PERMUTE,), GATHER_Q16),
        _swap("swap_lengths", lengths),
        ReadBack("splits"),
        _swap("swap_indices", tables.rows * INDEX_BYTES),
    )
    return Layer("sparse", (Node("distribute", "", steps),))


def embeddings(blocks: Blocks, tables: Tables, overlap: bool) -> Layer:
    """Look rows up and send their sums; with `overlap` the layer that needs them has to wait."""
    each, size = tables.rows // tables.groups, tables.sums * blocks.costs.element_bytes
    nodes = [
        Node(
            f"group{number}",
            FUNCTION,
            (_kernel(blocks, "lookup", FORWARD_KERNEL, LOOKUP, _row_bytes(tables, each), True),),
            _updates(blocks, tables, each),
        )
        for number in range(tables.groups)
    ]
    sums = Node("sums", "", (_swap("swap", size, wait=not overlap),))
    return Layer("embeddings", (*nodes, sums))


def gradient_swap(blocks: Blocks, tables: Tables, overlap: bool) -> Exchange:
    """Send the gradients of the sums back to the tables."""
    size = tables.sums * blocks.costs.element_bytes
    return _swap("swap_gradients", size, wait=not overlap)


def _updates(blocks: Blocks, tables: Tables, rows: int) -> tuple[Step, ...]:
    """Sort the rows that were looked up, add up the gradients of each and update it once."""
    keys, moved = 2 * rows * INDEX_BYTES, _row_bytes(tables, rows)
    encode = "void cub::DeviceRunLengthEncodeKernel<long*, long*, int*>"
    return (
        _kernel(blocks, "linearize", "void linearize_index_kernel<long>", UPDATE, keys),
        *(
            _kernel(blocks, f"sort{number}", CUB_SORT, UPDATE, 2 * keys)
            for number in range(SORT_PASSES)
        ),
        _kernel(blocks, "encode", encode, UPDATE, keys),
        _kernel(blocks, "long_rows", BACKWARD_KERNEL.format("cta"), UPDATE, moved, True),
        _kernel(blocks, "short_rows", BACKWARD_KERNEL.format("warp"), UPDATE, 2 * moved, True),
    )


def _row_bytes(tables: Tables, rows: int) -> int:
    return rows * tables.width * ROW_ELEMENT_BYTES


def _kernel(
    blocks: Blocks, step: str, kernel: str, op: str, moved: int, rows: bool = False
) -> Launch:
    """A kernel whose work grows with the rows that the rank serves."""
    share, family = (GATHER_Q16, "embedding") if rows else (FUSED_Q16, "elementwise")
    return replace(blocks.launches.named(step, kernel, moved, (op,), share, family), work="rows")


def _swap(name: str, size: int, wait: bool = True) -> Exchange:
    return Exchange(name, "all_to_all", size, "world", Stream.EXPERT_PARALLEL, wait)
