"""The kernels of one layer of a served model, as vLLM launches them.

Costs are those of nominal amounts (`TOKENS`, `CONTEXT`, ...), which a step's work rows scale; see
injectors.sim.serving.work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from injectors.sim import kernels
from injectors.sim.costs import (
    ACTIVATION_Q16,
    FUSED_NORM_Q16,
    FUSED_Q16,
    REDUCTION_Q16,
    SOFTMAX_Q16,
    UNFUSED_NORM_Q16,
    Cost,
)
from injectors.sim.launches import COMPILED_Q16, Launch, Launches
from injectors.sim.program import Label, Noise
from injectors.sim.serving.model import Model

TOKENS = 1024  # nominal tokens of a step
ROWS = 64  # nominal tokens for which logits are computed
CONTEXT = 16_384  # nominal tokens whose keys and values decoding reads
PAIRS = 2**20  # nominal pairs of tokens whose attention prefilling computes
SPLIT_KV = (
    "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<{head}, 64, 128, 4, false, false,"
    " cutlass::bfloat16_t>, true, false, false, false, true, true, true, false>"
    "(flash::Flash_fwd_params)"
)
NORM = "void vllm::fused_add_rms_norm_kernel<{dtype}, 8>"
ROPE = "void vllm::rotary_embedding_kernel<{dtype}, true>"
CACHE = "void vllm::reshape_and_cache_flash_kernel<{dtype}, {dtype}, (vllm::Fp8KVCacheDataType)0>"
ACT = "void vllm::act_and_mul_kernel<{dtype}, &vllm::silu_kernel<{dtype}>, true>"


@dataclass(frozen=True)
class LayerKernels:
    """Makes the kernels of a layer; the `work` of each names what it grows with.

    "gemm": tokens, but reading the weights takes its time however few there are. "tokens": tokens.
    "kv": keys and values read by decoding. "prefill": pairs of prefilling.

    Attributes:
        fused: Whether norms and activations run as one kernel each.
        eager: Whether each kernel is launched by an operator of its own.
    """

    model: Model
    launches: Launches
    fused: bool = True
    eager: bool = False

    def before_attention(self) -> Iterator[Launch]:
        """Norm, queries, keys and values, positions, and their way into the cache."""
        model = self.model
        yield from self._norm("norm_1")
        yield self.product("qkv", *model.products()["qkv"])
        width = model.own_heads + 2 * model.own_kv_heads
        yield self._named("rope", ROPE, "_C::rotary_embedding", 2 * width * model.head)
        yield self._named(
            "cache", CACHE, "_C_cache_ops::reshape_and_cache_flash", width * model.head
        )

    def attention(self) -> Iterator[Launch]:
        """Attention of prompts and of answers in progress, each if there are any."""
        if self.launches.costs.framework.attention == "math":
            yield from self._math()
            return
        flash = kernels.flash(self.model.head, backward=False)
        yield self._pairs("attention.prefill", flash, self.launches.costs.flash_q16(backward=False))
        yield self._context("attention.decode", SPLIT_KV.format(head=self.model.head))

    def after_attention(self) -> Iterator[Launch]:
        """The projection back; a sum over ranks follows."""
        yield self.product("o_proj", *self.model.products()["o_proj"])

    def mlp(self) -> Iterator[Launch]:
        """Norm and gated products; a sum over ranks follows."""
        model = self.model
        yield from self._norm("norm_2")
        yield self.product("gate_up", *model.products()["gate_up"])
        inner = model.products()["down"][1]
        if self.fused:
            yield self._named("act", ACT, "_C::silu_and_mul", 3 * inner, ACTIVATION_Q16)
        else:
            yield self._plain("act.silu", "silu_kernel", "aten::silu", 2 * inner, ACTIVATION_Q16)
            yield self._plain("act.mul", "BinaryFunctor_mul", "aten::mul", 3 * inner, FUSED_Q16)
        yield self.product("down", *model.products()["down"])

    def product(self, name: str, outputs: int, inputs: int, tokens: int = TOKENS) -> Launch:
        """A product of `tokens` tokens with weights."""
        launches = self.launches
        ops = ("aten::linear", "aten::addmm") if self.eager else ("aten::mm",)
        launch = launches.gemm(name, (tokens, outputs, inputs), "tn", ops)
        weights = outputs * inputs * launches.costs.element_bytes
        cost = launches.costs.product(launch.cost.flops, weights)
        return replace(launch, cost=cost, work="gemm", host_q16=self._host_q16)

    @property
    def _host_q16(self) -> int:
        return self.launches.host_q16 if self.eager else COMPILED_Q16

    def _norm(self, name: str) -> Iterator[Launch]:
        hidden = self.model.hidden
        if self.fused:
            yield self._named(
                name, NORM, "_C::fused_add_rms_norm", 4 * hidden, FUSED_NORM_Q16, "norm"
            )
            return
        share = UNFUSED_NORM_Q16
        yield self._plain(f"{name}.add", "CUDAFunctor_add", "aten::add", 3 * hidden, share)
        yield self._plain(f"{name}.pow", "pow_tensor_scalar", "aten::pow", 2 * hidden, share)
        yield self._plain(f"{name}.mean", "MeanOps", "aten::mean", hidden, REDUCTION_Q16)
        yield self._plain(f"{name}.mul", "BinaryFunctor_mul", "aten::mul", 3 * hidden, share)

    def _named(
        self,
        name: str,
        kernel: str,
        op: str,
        elements: int,
        share_q16: int = FUSED_Q16,
        family: str = "elementwise",
    ) -> Launch:
        """A kernel of `elements` elements moved for each token."""
        costs = self.launches.costs
        text = kernel.format(dtype=self.launches.dtype)
        moved = elements * TOKENS * costs.element_bytes
        label = Label(
            cpu_ops=(op,),
            kernel=text,
            dims=((TOKENS, self.model.hidden),),
            dtype=self.launches.dtype,
            grid=(TOKENS, 1, 1),
            block=(1024, 1, 1),
        )
        return Launch(name, label, costs.stream(moved, share_q16, family), host_q16=self._host_q16)

    def _plain(self, name: str, functor: str, op: str, elements: int, share_q16: int) -> Launch:
        text = kernels.elementwise(f"{functor}<{self.launches.dtype}>", 3)
        return self._named(
            name, text.replace("{", "{{").replace("}", "}}"), op, elements, share_q16
        )

    def _pairs(self, name: str, kernel: str, share_q16: int, products: int = 2) -> Launch:
        """`products` products of every pair of tokens under one head each."""
        model, costs = self.model, self.launches.costs
        flops = 2 * products * PAIRS * model.own_heads * model.head
        cost = costs.product(flops, 0, "attention", share_q16)
        return self._attention(name, kernel, cost, "prefill")

    def _context(self, name: str, kernel: str, times: int = 1) -> Launch:
        """Reading the keys and values of the context, `times` over."""
        costs = self.launches.costs
        moved = times * CONTEXT * self.model.kv_elements() * costs.element_bytes
        return self._attention(name, kernel, costs.stream(moved, FUSED_Q16, "attention"), "kv")

    def _attention(self, name: str, kernel: str, cost: Cost, work: str) -> Launch:
        label = Label(
            cpu_ops=("vllm::unified_attention_with_output",),
            kernel=kernel,
            dtype=self.launches.dtype,
            grid=(1, 8, self.model.own_heads),
            registers=255,
            shared_bytes=81_920,
        )
        return Launch(name, label, cost, Noise.GEMM, self.launches.host_q16, work)

    def _math(self) -> Iterator[Launch]:
        """Attention by plain operators: scores are written out, shared heads are copied apart."""
        launches, model = self.launches, self.model
        costs, precision = launches.costs, launches.precision
        assert costs.machine.gpu is not None
        bmm = kernels.gemm(costs.machine.gpu, precision, "nn")
        scores = PAIRS * model.own_heads * costs.element_bytes
        softmax = kernels.reduction("softmax_warp_forward", launches.dtype)
        for product in ("scores", "values"):
            work = self._pairs(f"attention.prefill.{product}", bmm, 2**16, products=1)
            memory_ns = costs.stream(scores, FUSED_Q16, "attention").memory_ns
            yield replace(work, cost=replace(work.cost, memory_ns=memory_ns))
            if product == "scores":
                cost = costs.stream(2 * scores, SOFTMAX_Q16, "attention")
                yield self._attention("attention.prefill.softmax", softmax, cost, "prefill")
        group = max(1, model.own_heads // model.own_kv_heads)
        expand = kernels.elementwise(f"direct_copy_kernel<{launches.dtype}>", 2)
        yield self._context("attention.decode.expand", expand, times=1 + group)
        yield self._context("attention.decode.scores", bmm, times=group)
