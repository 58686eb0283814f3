"""The operator that PyTorch knows, `hasten.call`, its gradients and its maps.

Where nothing has to know of an operator, PyTorch's dispatcher is passed by, which takes longer than small batches do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hasten.torch.calls import OPERATIONS, Call

PLAIN = {torch.Tensor, torch.nn.Parameter}


def ask(call: Call) -> list[Tensor]:
    """Carries out a call."""
    tensors, operation = call.tensors, OPERATIONS[call.what]
    smooth = operation.gradient is not None and torch.is_grad_enabled() and any(each.requires_grad for each in tensors)
    if smooth:
        call = call._replace(asked=call.asked._replace(sharing=True))
    elif operation.gradient is None:
        tensors = [each.detach() for each in tensors]
    if (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack()
        or not PLAIN.issuperset(map(type, tensors))
    ):
        told = call.told
        found: list[Tensor] = operator(*told[:3], tensors, *told[3:])
        return found
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return list(Mapped.apply(call.told, *tensors))
    return list(Direct.apply(call, *tensors)) if smooth else operation.run(call)


@torch.library.custom_op("hasten::call", mutates_args=())
def operator(
    what: str, layer: str, kinds: str, tensors: Sequence[Tensor], counts: Sequence[int], asked: Sequence[float]
) -> list[Tensor]:
    """Carries out a call, for compilers and transforms."""
    return OPERATIONS[what].run(Call.of((what, layer, kinds, counts, asked), tensors))


@operator.register_fake
def _(what, layer, kinds, tensors, counts, asked):  # type: ignore[no-untyped-def]
    return OPERATIONS[what].fake(Call.of((what, layer, kinds, counts, asked), tensors))


def keep(ctx: Any, call: Call, outputs: Sequence[Tensor]) -> None:
    """Keeps what the gradient of a call needs: of most losses, only outputs, so that scores may be changed in place."""
    operation, ctx.n = OPERATIONS[call.what], len(call.tensors)
    if len(outputs) > 1 and not (operation.reads or call.tables):
        call = call._replace(scores=[], where=[], gold=[], last=[])
    ctx.told, kept = call.told, call.tensors
    ctx.mark_non_differentiable(*(outputs[operation.n_smooth :] if operation.gradient else outputs))
    ctx.n_kept = len(kept)
    ctx.save_for_backward(*kept, *outputs)


def backward(ctx: Any, slopes: Sequence[Tensor]) -> list[Tensor | None]:
    """Returns the gradient of a call, of which scores and tables have one."""
    saved = ctx.saved_tensors
    call, gradient = Call.of(ctx.told, saved[: ctx.n_kept]), OPERATIONS[ctx.told[0]].gradient
    found = ask(gradient(call, saved[ctx.n_kept :], slopes)) if gradient else []
    return [*found, *[None] * (ctx.n - len(found))]


operator.register_autograd(
    lambda ctx, slopes: (None, None, None, backward(ctx, slopes), None, None),
    setup_context=lambda ctx, inputs, output: keep(ctx, Call.of((*inputs[:3], *inputs[4:]), inputs[3]), output),
)


class Direct(torch.autograd.Function):
    """A call without the dispatcher."""

    @staticmethod
    def forward(ctx: Any, call: Call, *_: Tensor) -> tuple[Tensor, ...]:
        """Returns what the operator does."""
        outputs = OPERATIONS[call.what].run(call)
        keep(ctx, call, outputs)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        """Returns the gradient of the operator."""
        return None, *backward(ctx, slopes)


class Mapped(torch.autograd.Function):
    """A call under the transforms of `torch.func`, which know no operator; it takes longer than `Direct`."""

    @staticmethod
    def forward(told: tuple[Any, ...], *tensors: Tensor) -> tuple[Tensor, ...]:
        """Returns what the operator does."""
        return tuple(OPERATIONS[told[0]].run(Call.of(told, tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keeps what the gradient needs."""
        keep(ctx, Call.of(inputs[0], inputs[1:]), output)

    backward = Direct.backward

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], told: tuple[Any, ...], *tensors: Tensor) -> Any:
        """Runs mapped calls."""
        found, axes = run_mapped(info.batch_size, dims[1:], told, tensors)
        return tuple(found), tuple(axes)


def run_mapped(size: int, dims: Sequence[int | None], told: tuple[Any, ...], tensors: Sequence[Tensor]) -> Any:
    """Runs mapped calls as more examples; where tables or seeds differ, or tables have gradients, call by call."""
    what, counts = told[0], told[3]
    groups = [group for group, n in zip(Call._fields[4:], counts, strict=True) for _ in range(n)]
    whole = [g for g, dim in zip(groups, dims, strict=True) if dim is not None or what.startswith(("loss", "sums"))]
    if "tables" in whole or ("last" in whole and what in ("loss", "sample", "moved", "draw")):
        given = [[each] * size if dim is None else each.unbind(dim) for each, dim in zip(tensors, dims, strict=True)]
        one_by_one = [ask(Call.of(told, each)) for each in zip(*given, strict=True)]
        found = [torch.stack(each) for each in zip(*one_by_one, strict=True)]
        return found, [0] * len(found)
    folded = []
    for each, group, dim in zip(tensors, groups, dims, strict=True):
        if group == "tables" or (dim is None and (not each.ndim or not each.numel())):
            folded.append(each)  # or a seed, or something that is not given
            continue
        wide = each.expand(size, *each.shape) if dim is None else each.movedim(dim, 0)
        folded.append(wide.flatten(0, 1))
    found = ask(Call.of(told, folded))
    return [each.unflatten(0, (size, -1)) for each in found], [0] * len(found)


operator.register_vmap(
    lambda info, dims, what, layer, kinds, tensors, *rest: run_mapped(
        info.batch_size, dims[3], (what, layer, kinds, *rest), tensors
    )
)
