#!/usr/bin/env python3
"""The backend of torch.distributed where PyTorch's own tests do not look: errors, training, what is refused."""
import os
import signal
import sys
import threading
import unittest
import unittest.mock
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


def killed_in_training(where):
    """What DDP, whose calls are made and awaited by C++ code, says on the rank that lives."""
    model = torch.nn.Linear(3, 3)
    if where == "backward":
        model = torch.nn.parallel.DistributedDataParallel(model)
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if where == "backward":
        return error_of(lambda: model(torch.ones(2, 3)).sum().backward())
    return error_of(torch.nn.parallel.DistributedDataParallel, model)


def ends_with_a_group(kept):
    """Rank 0 ends while something still holds its group; the error of rank 1, which makes another call."""
    kept.append(dist.distributed_c10d._get_default_group())
    dist.all_reduce(torch.ones(2))
    return error_of(dist.all_reduce, torch.ones(2)) if dist.get_rank() == 1 else None


def waits_with_a_limit(has_failed):
    if dist.get_rank() == 1:
        has_failed.wait(testing.LIMIT_S)
    work = dist.all_reduce(torch.ones(2), async_op=True)
    error = error_of(work.wait, timeout=timedelta(seconds=0.1)) if dist.get_rank() == 0 else None
    has_failed.set()
    work.wait()
    return error


def a_longer_limit(has_failed):
    """A call of the second group outlasts the limit of the first group."""
    group, x = dist.new_group(timeout=timedelta(seconds=60)), torch.ones(2)
    if dist.get_rank() == 0:
        work = dist.all_reduce(x, group=group, async_op=True)
        error_of(dist.all_reduce, torch.ones(2))
        has_failed.set()
        work.wait()
    else:
        has_failed.wait(testing.LIMIT_S)
        dist.all_reduce(x, group=group)
    return x.tolist(), "TUTTI_TIMEOUT_MS" in os.environ


def a_receive_without_a_send():
    tutti.torch._worker._END_LIMIT_S = 0.1
    works = [dist.irecv(torch.ones(2), 1 - dist.get_rank(), tag=tag) for tag in range(3)]
    works.append(dist.distributed_c10d._get_default_group().recv_anysource([torch.ones(2)], 9))
    dist.distributed_c10d._get_default_group().shutdown()
    names = [thread.name for thread in threading.enumerate()]
    left = [name for name in names if name.startswith(("tutti-0", "tutti-1", "tutti-any"))]
    return left, [error_of(work.wait) for work in works]


def receives_from_anyone():
    """Two receives at a time, one of which names its sender, get one message each."""
    if dist.get_rank() == 1:
        for value in range(40):
            dist.send(torch.full((1,), float(value)), 0)
        return None
    group, got = dist.distributed_c10d._get_default_group(), []
    for _ in range(20):
        x, y = torch.zeros(1), torch.zeros(1)
        works = [group.recv_anysource([x], 0), dist.irecv(y, 1)]
        for work in works:
            work.wait()
        got += [x.item(), y.item()]
    return sorted(got)


def barrier_of_some():
    group = dist.distributed_c10d._get_default_group()
    return error_of(group.monitored_barrier) if dist.get_rank() == 0 else None


def refused():
    return (error_of(dist.all_reduce, torch.zeros(3, dtype=torch.bool)),
            error_of(dist.all_reduce, torch.zeros(3), op=dist.ReduceOp.BAND),
            error_of(dist.all_to_all_single, torch.zeros(3), torch.zeros(3), [1, 1, 1], [1]),
            error_of(dist.all_reduce, torch.empty(3, device="meta")))


def in_mapped_memory():
    """How calls on ordinary and mapped memory went, and how many blocks of the latter there were, and are left."""
    elements, group = 1 << 20, dist.distributed_c10d._get_default_group()
    ordinary = torch.ones(elements)
    with tutti.torch.mapped_memory():
        mapped, small = torch.ones(elements), torch.ones(5)
    later = torch.ones(elements)
    ways = []
    for x in (mapped, ordinary, later, small):
        dist.all_reduce(x)
        ways.append(group._communicators.on_host.last_algorithm()[1])
        assert x.eq(dist.get_world_size()).all()
    blocks = tutti.torch._mapped._installed.tutti_torch_blocks
    before = blocks()
    grown = mapped.resize_(2 * elements)  # by torch's allocator of the time
    del mapped, grown
    return ways, before, blocks()


def profiled():
    """Names and kinds of this backend's events in torch's profiler, and whether calls still give what they should."""
    peer, x, y = 1 - dist.get_rank(), torch.ones(2), torch.zeros(2)
    with torch.autograd.profiler.profile() as profile:
        works = [dist.irecv(y, peer), dist.isend(x, peer), dist.all_reduce(torch.ones(3), async_op=True)]
        for work in works:
            work.wait()
        error = error_of(dist.all_reduce, torch.zeros(3 + dist.get_rank()))
    events = [event for event in profile.function_events if event.name.startswith("tutti:")]
    names = sorted(event.name for event in events)
    return names, all(event.is_async for event in events if event.name == "tutti:recv"), y.tolist(), error


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


def calls_on_lists():
    """Works, the lists that they were given, and the tensors that are to have the results."""
    rank, size = dist.get_rank(), dist.get_world_size()
    gathered, mine, scattered = [torch.zeros(3) for _ in range(size)], torch.zeros(3), torch.zeros(3)
    lists = [gathered[:] if rank == 0 else None, [torch.full((3,), 10.0 * rank + i) for i in range(size)],
             [torch.full((3,), 5.0 + i) for i in range(size)] if rank == 0 else None]
    works = [dist.gather(torch.full((3,), 1.0 + rank), lists[0], dst=0, async_op=True),
             dist.reduce_scatter(mine, lists[1], async_op=True),
             dist.scatter(scattered, lists[2], src=0, async_op=True)]
    return works, lists, [*gathered, mine, scattered]


def lists_that_change():
    """A call is on the tensors that its lists had then; the thread that makes the call comes to it later."""
    if dist.get_rank() == 0:
        held = dist.all_reduce(torch.ones(1), async_op=True)  # until rank 1 makes it too
        works, lists, results = calls_on_lists()
        for one in lists:
            if one is not None:
                one[:] = [torch.full((3,), -1.0) for _ in one]
        dist.send(torch.ones(1), 1)  # which waits for none of these
    else:
        dist.recv(torch.ones(1), 0)
        held = dist.all_reduce(torch.ones(1), async_op=True)
        works, _, results = calls_on_lists()
    for work in (held, *works):
        work.wait()
    return [tensor[0].item() for tensor in results]


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


def wait_on_gloo(path):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=0, world_size=1)
    work = dist.all_reduce(torch.ones(2), async_op=True)
    assert work.wait(timeout=timedelta(seconds=60))
    dist.destroy_process_group()


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
            self.assertEqual(outcome.exitcode, 0)
        return [outcome.value for outcome in outcomes]

    def test_wait_raises_the_error_of_the_call(self):
        for first, later in self.values(2, different_counts):
            self.assertRegex(first, r"(?s)AllReduce count=3.*AllReduce count=4")
            self.assertRegex(later, r"(?s)AllReduce count=3.*AllReduce count=4")

    def test_timeout(self):
        error, _ = self.values(2, a_rank_that_does_not_come, testing._fork.Event(), None, limit_s=1)
        self.assertIn("Timed out after 1 s: ", error)

    def test_timeout_of_the_library_names_the_rank(self):
        with unittest.mock.patch.dict(os.environ, TUTTI_TIMEOUT_MS="500"):
            error, _ = self.values(2, a_rank_that_does_not_come, testing._fork.Event(), None)
        self.assertRegex(error, r"(?s)Timed out: .*rank 1")

    def test_timeout_of_a_group(self):
        error, _ = self.values(2, a_rank_that_does_not_come, testing._fork.Event(), 0.5)
        self.assertIn("Timed out after 0.5 s", error)

    def test_a_group_with_a_longer_limit(self):
        self.assertEqual(self.values(2, a_longer_limit, testing._fork.Event(), limit_s=0.5), [([2, 2], False)] * 2)

    def test_wait_has_a_limit(self):
        error, _ = self.values(2, waits_with_a_limit, testing._fork.Event())
        self.assertIn("has not ended within 0.1 s", error)

    def test_a_group_that_is_held_at_the_end_is_left_in_order(self):
        _, error = self.values(2, ends_with_a_group, [])
        self.assertRegex(error, "left the communicator|leaves the communicator")

    def test_works_of_other_backends_are_as_before(self):
        testing.start(1, wait_on_gloo, f"/tmp/tutti-gloo-{os.getpid()}")

    def test_a_receive_without_a_send_is_abandoned(self):
        for left, errors in self.values(2, a_receive_without_a_send):
            self.assertEqual(left, [])
            for error in errors:
                self.assertIn("the process group was ended", error)

    def test_receives_from_anyone_claim_one_message_each(self):
        got, _ = self.values(2, receives_from_anyone)
        self.assertEqual(got, [float(value) for value in range(40)])

    def test_monitored_barrier_has_the_limit_of_the_group(self):
        error, _ = self.values(2, barrier_of_some, limit_s=0.5)
        self.assertRegex(error, "Rank 1 failed to pass monitoredBarrier in 500 ms")

    def test_killed_peer(self):
        first, killed = self.outcomes(2, a_peer_that_is_killed)
        self.assertEqual(killed.exitcode, -signal.SIGKILL)
        self.assertIsNone(first.trace)
        self.assertIn("rank 1/2", first.value)

    def test_killed_peer_in_training(self):
        for where in ("constructor", "backward"):
            with self.subTest(where):
                first, killed = self.outcomes(2, killed_in_training, where)
                self.assertEqual((first.exitcode, killed.exitcode), (0, -signal.SIGKILL), first.trace)
                self.assertIsNone(first.trace)
                self.assertRegex(first.value, "rank 1/2 .* lost")

    def test_what_is_refused_says_why(self):
        for reasons in self.values(2, refused):
            for reason, words in zip(reasons, ("bool, which cannot be reduced", "bit_and is for integers", "do not divide 3 rows",
                                               "device meta|on meta")):
                self.assertRegex(reason, words)

    def test_calls_on_lists_that_change_meanwhile(self):
        self.assertEqual(self.values(2, lists_that_change), [[1, 2, 10, 5], [0, 0, 12, 6]])

    def test_messages_and_collectives_in_any_order(self):
        for ranks in (2, 3):
            self.assertEqual(self.values(ranks, messages_out_of_order), [True] * ranks)

    def test_mapped_memory(self):
        try:
            tutti.torch._mapped._build()
        except tutti.SystemError as error:
            self.skipTest(str(error))
        for ways, before, left in self.values(2, in_mapped_memory):
            self.assertEqual((ways[0], before, left), ("mapped", 1, 0))
            self.assertNotIn("mapped", ways[1:])

    def test_calls_are_in_the_profiler(self):
        for names, asynchronous, received, error in self.values(2, profiled):
            self.assertEqual(names, ["tutti:all_reduce", "tutti:all_reduce", "tutti:recv", "tutti:send"])
            self.assertTrue(asynchronous)
            self.assertEqual(received, [1, 1])
            self.assertIn("AllReduce count=3", error)

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
