"""Between tensors and arrays: without a copy on the CPU, else in one transfer each way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor


def as_arrays(tensors: Sequence[Tensor]) -> list[Any]:
    """Returns tensors as arrays: without a copy from the CPU, if NumPy knows their type, else in one transfer."""
    given = [each.detach() if each.requires_grad else each for each in tensors]
    if not all(each.is_cpu for each in given):
        device = next(each.device for each in given if not each.is_cpu)
        order = sorted(range(len(given)), key=lambda n: -given[n].element_size())  # so that each is aligned
        parts = [given[n].to(device).contiguous().reshape(-1).view(torch.uint8) for n in order]
        sent = torch.cat(parts).cpu().split([len(part) for part in parts])
        for n, part in zip(order, sent, strict=True):
            given[n] = part.view(given[n].dtype).reshape(given[n].shape)
    return [
        (each.float() if each.is_floating_point() and each.itemsize < 4 else each).contiguous().numpy()
        for each in given
    ]


def as_tensors(arrays: Sequence[Any], device: torch.device) -> list[Tensor]:
    """Returns arrays of ours as tensors, on the CPU without a copy, else in one transfer."""
    if device.type == "cpu":
        return [torch.from_numpy(each) for each in arrays]
    order = sorted(range(len(arrays)), key=lambda n: -arrays[n].itemsize)
    sent = torch.cat([torch.from_numpy(arrays[n].reshape(-1).view(np.uint8)) for n in order]).to(device)
    found: list[Any] = list(arrays)
    for n, part in zip(order, sent.split([arrays[n].nbytes for n in order]), strict=True):
        like = torch.from_numpy(arrays[n])
        found[n] = part.view(like.dtype).reshape(like.shape).clone()  # outputs share no memory
    return found
