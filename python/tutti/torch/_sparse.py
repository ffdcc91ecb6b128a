"""The sum of sparse tensors: every rank gets the indices and values of all, and adds them up."""
from __future__ import annotations

from typing import Any

import torch

import tutti


def all_reduce_sparse(comm: tutti.Communicator, tensor: Any) -> None:
    """In place, for tensors in coordinate format, whose numbers of values may differ between ranks."""
    mine = tensor.coalesce()
    nonzero = torch.zeros(comm.size, dtype=torch.int64)
    nonzero[comm.rank] = mine._nnz()
    comm.all_gather(None, nonzero)
    # By value first, so that the parts of the ranks lie one after another.
    indices = _gather(comm, mine.indices().t().contiguous(), nonzero)
    values = _gather(comm, mine.values().contiguous(), nonzero)
    tensor.copy_(torch.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce())


def _gather(comm: tutti.Communicator, mine: Any, nonzero: Any) -> Any:
    """Rows of all ranks, one rank after another."""
    width = mine[0].numel() if len(mine) else int(torch.tensor(mine.shape[1:]).prod())
    whole = torch.empty((int(nonzero.sum()), *mine.shape[1:]), dtype=mine.dtype)
    comm.all_gather_v(mine, whole, [int(count) * width for count in nonzero])
    return whole
