"""Names of kernels as real traces have them, by architecture and element type."""

from __future__ import annotations

from typing import Literal

from injectors.sim.machine import Gpu

Layout = Literal["tn", "nn", "nt"]  # of a forward product, of its input's and weight's gradient
Precision = Literal["bf16", "tf32", "fp32"]

CPP_TYPES = {"bf16": "c10::BFloat16", "tf32": "float", "fp32": "float"}
NCCL_TYPES = {"bf16": "bf16", "tf32": "f32", "fp32": "f32"}
_SM90 = "sm90_xmma_gemm_{types}_{layout}_n_tilesize{tile}_warpgroupsize1x1x1"
_SM90_TAIL = "_execute_segment_k_off_kernel__5x_cublas"
_NCCL_NAMES = {
    "all_reduce": "AllReduce_Sum_{dtype}_{algorithm}_LL",
    "reduce_scatter": "ReduceScatter_Sum_{dtype}_RING_LL",
    "all_gather": "AllGather_RING_LL",
    "broadcast": "Broadcast_RING_LL",
    "all_to_all": "SendRecv",
    "send": "SendRecv",
    "recv": "SendRecv",
}


def gemm(gpu: Gpu, precision: Precision, layout: Layout, small: bool = False) -> str:
    """Name the library's product of two matrices; `small`: with a smaller tile."""
    if precision == "fp32":
        return f"ampere_sgemm_{'128x64' if small else '128x128'}_{layout}"
    if gpu.kernels == "sm90":
        types = "bf16bf16_bf16f32_f32" if precision == "bf16" else "f32f32_tf32f32_f32"
        depth = 64 if precision == "bf16" else 32
        tile = f"64x64x{depth}" if small else f"128x128x{depth}"
        return _SM90.format(types=types, layout=layout, tile=tile) + _SM90_TAIL
    if precision == "bf16":
        tile = "64x64_ldg8_f2f_stages_64x5" if small else "128x256_ldg8_f2f_stages_64x3"
        return f"ampere_bf16_s16816gemm_bf16_{tile}_{layout}"
    tile = "64x64_16x6" if small else "128x128_32x3"
    name = f"cutlass_80_tensorop_s1688gemm_{tile}_{layout}_align4"
    return f"void cutlass::Kernel<{name}>({name}::Params)"


def grouped_gemm(gpu: Gpu, precision: Precision) -> str:
    """Name the product of many pairs of matrices in one kernel."""
    element = "cutlass::bfloat16_t" if precision == "bf16" else "float"
    if gpu.kernels == "sm90":
        shape = "cutlass::gemm::GroupProblemShape<cute::tuple<int, int, int> >"
        name = f"cutlass::gemm::kernel::GemmUniversal<{shape}, {element}>"
        wrapper = "at::cuda::detail::enable_3x_kernel_for_sm9x"
        return f"void cutlass::device_kernel<{wrapper}<{name} > >"
    tiles = f"cutlass::gemm::threadblock::MmaMultistage<{element}>"
    name = f"cutlass::gemm::kernel::GemmGrouped<{tiles} >"
    return f"void cutlass::Kernel<{name} >({name}::Params)"


def flash(head: int, backward: bool) -> str:
    """Name FlashAttention-2's main kernel for heads of a size in bfloat16."""
    way, block = ("bwd", "64, 64, 8") if backward else ("fwd", "128, 64, 4")
    name = "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel" if backward else "flash_fwd_kernel"
    traits = f"Flash_{way}_kernel_traits<{head}, {block}, false, false, cutlass::bfloat16_t>"
    flags = "false, true, false, false, true, true, false"
    return (
        f"void pytorch_flash::{name}<pytorch_flash::{traits}, {flags}>"
        f"(pytorch_flash::Flash_{way}_params)"
    )


def efficient_attention(backward: bool) -> str:
    """Name the attention kernel that float32 dispatches to."""
    way, kernel = ("B", "AttentionBackwardKernel") if backward else ("F", "AttentionKernel")
    arguments = "<float, cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params"
    return (
        f"fmha_cutlass{way}_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::{kernel}{arguments})"
    )


def elementwise(functor: str, tensors: int, vector: int = 4) -> str:
    """Name an element-wise kernel of `tensors` operands that applies a functor."""
    arrays = f"std::array<char*, {tensors}ul>"
    return (
        f"void at::native::vectorized_elementwise_kernel<{vector}, at::native::{functor}, {arrays}"
        f" >(int, at::native::{functor}, {arrays})"
    )


def reduction(functor: str, dtype: str) -> str:
    """Name a reduction."""
    op = f"at::native::ReduceOp<{dtype}, at::native::{functor}, unsigned int, {dtype}, 4>"
    return f"void at::native::reduce_kernel<512, 1, {op} >({op})"


def multi_tensor(functor: str, lists: int) -> str:
    """Name a kernel that goes over `lists` lists of tensors at once."""
    metadata = f"at::native::(anonymous namespace)::TensorListMetadata<{lists}>"
    return (
        f"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<{metadata},"
        f" at::native::(anonymous namespace)::{functor} >({metadata},"
        f" at::native::(anonymous namespace)::{functor})"
    )


def triton(kind: Literal["poi", "red", "per"], ops: tuple[str, ...], number: int) -> str:
    """Name a kernel that the compiler fused.

    >>> triton("poi", ("add", "gelu"), 3)
    'triton_poi_fused_add_gelu_3'
    """
    return f"triton_{kind}_fused_{'_'.join(ops)}_{number}"


def nccl(op: str, precision: Precision, tree: bool = False) -> str:
    """Name NCCL's kernel; it has one per collective, type and algorithm, for all protocols."""
    name = _NCCL_NAMES[op].format(dtype=NCCL_TYPES[precision], algorithm="TREE" if tree else "RING")
    return f"ncclDevKernel_{name}(ncclDevKernelArgsStorage<4096ul>)"
