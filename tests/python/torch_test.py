#!/usr/bin/env python3
"""The backend of torch.distributed where PyTorch's own tests do not look: errors, training, what is refused."""
import os
import signal
import sys
import unittest
from datetime import timedelta

import ranks as testing

try:
    import torch
    import torch.distributed as dist
except ImportError:
    print("skipped: this Python has no torch (Debian: python3-torch)")
    sys.exit(77)
import tutti
import tutti.torch

torch.set_num_threads(1)


def with_group(function, path, limit_s, arguments):
    dist.init_process_group("tutti", init_method=f"file://{path}", rank=int(os.environ["TUTTI_RANK"]),
                            world_size=int(os.environ["TUTTI_NRANKS"]), timeout=timedelta(seconds=limit_s))
    try:
        return function(*arguments)
    finally:
        dist.destroy_process_group()


def error_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except RuntimeError as error:
        return str(error)
    raise AssertionError("no error")


def different_counts():
    work = dist.all_reduce(torch.zeros(3 + dist.get_rank()), async_op=True)
    return error_of(work.wait), error_of(dist.barrier)


def a_rank_that_does_not_come(has_failed, group_limit_s):
    group = dist.new_group(timeout=timedelta(seconds=group_limit_s)) if group_limit_s else None
    if dist.get_rank() == 0:
        error = error_of(dist.all_reduce, torch.zeros(3), group=group)
        has_failed.set()
        return error
    has_failed.wait(testing.LIMIT_S)
    return None


def a_peer_that_is_killed():
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return error_of(dist.all_reduce, torch.zeros(3))


def refused():
    return (error_of(dist.all_reduce, torch.zeros(3, dtype=torch.int16)),
            error_of(dist.all_reduce, torch.zeros(3), op=dist.ReduceOp.BAND),
            error_of(dist.all_to_all_single, torch.zeros(3), torch.zeros(3), [1, 1, 1], [1]),
            error_of(dist.all_reduce, torch.empty(3, device="meta")))


def messages_out_of_order():
    """A receive that is waited for holds up neither collectives nor messages of other tags and peers."""
    rank, size = dist.get_rank(), dist.get_world_size()
    late, early = torch.zeros(4), torch.zeros(4)
    peer = (rank - 1) % size
    works = [dist.irecv(late, peer, tag=1), dist.irecv(early, peer, tag=2)]
    for tag, value in ((2, 20 + rank), (1, 10 + rank)):
        x = torch.ones(5)
        dist.all_reduce(x)
        assert x.tolist() == [size] * 5
        dist.send(torch.full((4,), float(value)), (rank + 1) % size, tag=tag)
    for work in works:
        work.wait()
    assert late.tolist() == [10 + peer] * 4 and early.tolist() == [20 + peer] * 4
    return True


def train():
    """Parameters after some steps on this rank's share of the batches; all ranks have the same."""
    torch.manual_seed(1)
    size, rank = (dist.get_world_size(), dist.get_rank()) if dist.is_initialized() else (1, 0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 20), torch.nn.Tanh(), torch.nn.Linear(20, 2)).double()
    inputs, targets = torch.randn(5, 12, 6, dtype=torch.double), torch.randn(5, 12, 2, dtype=torch.double)
    if dist.is_initialized():
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs[step, rank::size]), targets[step, rank::size])
        loss.backward()
        optimizer.step()
    return torch.cat([parameter.detach().view(-1) for parameter in model.parameters()]).tolist()


class Backend(unittest.TestCase):
    def outcomes(self, ranks, function, *arguments, limit_s=60):
        path = f"/tmp/tutti-torch-{os.getpid()}-{id(function)}"
        try:
            with testing.Job(ranks, with_group, function, path, limit_s, arguments) as job:
                return job.outcomes()
        finally:
            if os.path.exists(path):
                os.unlink(path)

    def values(self, *arguments, **options):
        outcomes = self.outcomes(*arguments, **options)
        for outcome in outcomes:
            self.assertIsNone(outcome.trace)
        return [outcome.value for outcome in outcomes]

    def test_wait_raises_the_error_of_the_call(self):
        for first, later in self.values(2, different_counts):
            self.assertRegex(first, r"(?s)AllReduce count=3.*AllReduce count=4")
            self.assertRegex(later, r"(?s)AllReduce count=3.*AllReduce count=4")

    def test_timeout_names_the_rank(self):
        error, _ = self.values(2, a_rank_that_does_not_come, testing._fork.Event(), None, limit_s=1)
        self.assertRegex(error, r"(?s)Timed out after 1 s: .*rank 1")

    def test_timeout_of_a_group(self):
        error, _ = self.values(2, a_rank_that_does_not_come, testing._fork.Event(), 0.5)
        self.assertIn("Timed out after 0.5 s", error)

    def test_killed_peer(self):
        first, killed = self.outcomes(2, a_peer_that_is_killed)
        self.assertEqual(killed.exitcode, -signal.SIGKILL)
        self.assertIsNone(first.trace)
        self.assertIn("rank 1/2", first.value)

    def test_what_is_refused_says_why(self):
        for reasons in self.values(2, refused):
            for reason, words in zip(reasons, ("int16, which cannot be reduced", "is not one of SUM", "do not divide 3 rows",
                                               "device meta|on meta")):
                self.assertRegex(reason, words)

    def test_messages_and_collectives_in_any_order(self):
        for ranks in (2, 3):
            self.assertEqual(self.values(ranks, messages_out_of_order), [True] * ranks)

    def test_training_gives_what_one_process_gives(self):
        alone = torch.tensor(train())
        for ranks in (2, 3):
            results = self.values(ranks, train)
            self.assertTrue(all(result == results[0] for result in results), "ranks differ")
            self.assertTrue(torch.allclose(torch.tensor(results[0]), alone, rtol=1e-10, atol=1e-12))
            self.assertEqual(results, self.values(ranks, train), "two runs differ")

    def test_registered_once(self):
        self.assertEqual(dist.Backend("tutti"), "tutti")
        self.assertTrue(issubclass(tutti.torch.ProcessGroupTutti, dist.ProcessGroup))


if __name__ == "__main__":
    unittest.main()
