"""Names of cuDNN's kernels, by architecture and element type."""

from __future__ import annotations

from typing import Literal

from injectors.sim.kernels import Precision
from injectors.sim.machine import Gpu

Way = Literal["fprop", "dgrad", "wgrad"]  # output, gradient of the input, of the filters
_TYPES = {"bf16": "bf16bf16_bf16f32_f32", "tf32": "tf32f32_tf32f32_f32"}
_IMPLICIT = "{arch}_xmma_{way}_implicit_gemm_{types}_nhwckrsc_nhwc_tilesize{tile}_{rest}__5x_cudnn"
_FP32 = {
    "fprop": "ampere_scudnn_128x64_relu_medium_nn_v1",
    "dgrad": "ampere_scudnn_128x64_stridedB_interior_nn_v1",
    "wgrad": "ampere_scudnn_128x64_stridedB_splitK_medium_nn_v1",
}


def convolution(gpu: Gpu, precision: Precision, way: Way) -> str:
    """Name the kernel of a convolution: an implicit matrix product in every precision.

    >>> from injectors.sim.machine import GPUS
    >>> convolution(GPUS["a100"], "fp32", "fprop")
    'ampere_scudnn_128x64_relu_medium_nn_v1'
    """
    if precision == "fp32":
        return _FP32[way]
    if gpu.kernels == "sm90" and precision == "bf16":
        rest = "warpgroupsize1x1x1_g1_execute_segment_k_off_kernel"
        tile = "128x128x64"
        return _IMPLICIT.format(arch="sm90", way=way, types=_TYPES[precision], tile=tile, rest=rest)
    # Where it has none of its own for a type, a newer architecture runs those of the older one.
    tensor, tile = ("16x8x16", "128x128x32") if precision == "bf16" else ("16x8x8", "128x128x16")
    rest = f"stage4_warpsize2x2x1_g1_tensor{tensor}_execute_kernel"
    return _IMPLICIT.format(arch="sm80", way=way, types=_TYPES[precision], tile=tile, rest=rest)


def batch_norm(precision: Precision, backward: bool) -> str:
    """Name the kernel of a batch norm over images whose channels lie next to each other."""
    element = "__nv_bfloat16" if precision == "bf16" else "float"
    way = "bw" if backward else "fw"
    types = f"{element}, {element}, {element}, float, float"
    return f"void cudnn::batchnorm_{way}tr_nhwc_semiPersist<{types}, 512, 1, 2, 2>"
