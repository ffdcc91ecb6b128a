#!/usr/bin/env python3
"""CUDA tensors in the backend of torch.distributed, on a fake CUDA driver and a stand-in for torch.cuda.

Usage: torch_cuda_test.py FAKE_CUDA_LIBRARY     exit status 77: it is not there, or this Python has no torch
"""
import os
import sys
import types
import unittest
from datetime import timedelta

import ranks as testing

try:
    import torch
    import torch.distributed as dist
except ImportError:
    print("skipped: this Python has no torch (Debian: python3-torch)")
    sys.exit(77)
import torch_cuda_stand_in as cuda
import tutti.torch

torch.set_num_threads(1)
IS_2 = not torch.__version__.startswith("1.")


def with_group(function, path, limit_s, arguments):
    cuda.install()
    dist.init_process_group("cpu:tutti,cuda:tutti" if IS_2 else "tutti", init_method=f"file://{path}",
                            rank=int(os.environ["TUTTI_RANK"]), world_size=int(os.environ["TUTTI_NRANKS"]),
                            timeout=timedelta(seconds=limit_s))
    try:
        return function(*arguments)
    finally:
        dist.destroy_process_group()


def error_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except RuntimeError as error:
        return str(error)
    return None


def group():
    return dist.distributed_c10d._get_default_group()


# ---- What each call gives. A call gets a function that puts a tensor where it shall be; it returns what it has written.


def numbers(*shape, dtype=torch.float32, salt=0):
    """Others on each rank, and small enough to be exact in every type."""
    count = int(torch.tensor(shape).prod())
    return ((torch.arange(count) + 3 * dist.get_rank() + salt) % 4 + 1).to(dtype).view(shape)


def all_reduce(put):
    x, y = put(numbers(5, 7)), put(numbers(5, 7, dtype=torch.int64))
    dist.all_reduce(x)
    dist.all_reduce(y, op=dist.ReduceOp.MAX)
    return [x, y]


def all_reduce_average(put):
    x = put(numbers(9))
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    return [x]


def all_reduce_coalesced(put):
    xs = [put(numbers(3)), put(numbers(2, 2, salt=1))]
    dist.all_reduce_coalesced(xs)
    return xs


def not_contiguous(put):
    x = put(numbers(4, 6)).t()
    dist.all_reduce(x)
    y = put(numbers(6, 4)).t()
    dist.broadcast(y, 1)
    return [x.contiguous(), y.contiguous()]


def broadcast(put):
    xs = [put(numbers(40, dtype=kind)) for kind in (torch.float16, torch.int16, torch.bool, torch.uint8, torch.complex64)]
    for x in xs:
        dist.broadcast(x, dist.get_world_size() - 1)
    return xs


def reduce(put):
    x = put(numbers(11))
    dist.reduce(x, 1)
    return [x] if dist.get_rank() == 1 else []


def all_gather(put):
    parts = [put(torch.zeros(2, 3)) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, put(numbers(2, 3)))
    return parts


def all_gather_coalesced(put):
    parts = [[put(torch.zeros(2)), put(torch.zeros(3))] for _ in range(dist.get_world_size())]
    dist.all_gather_coalesced(parts, [put(numbers(2)), put(numbers(3, salt=1))])
    return [part for of_rank in parts for part in of_rank]


def all_gather_into_tensor(put):
    whole = put(torch.zeros(4 * dist.get_world_size(), dtype=torch.int16))
    dist.all_gather_into_tensor(whole, put(numbers(4, dtype=torch.int16)))
    return [whole]


def reduce_scatter(put):
    part = put(torch.zeros(6))
    dist.reduce_scatter(part, [put(numbers(6, salt=rank)) for rank in range(dist.get_world_size())])
    return [part]


def reduce_scatter_tensor(put):
    part = put(torch.zeros(6))
    dist.reduce_scatter_tensor(part, put(numbers(6 * dist.get_world_size())))
    return [part]


def coalesced_tensors(put):
    size = dist.get_world_size()
    parts, wholes = [put(torch.zeros(n)) for n in (2, 5)], [put(torch.zeros(n * size)) for n in (3, 1)]
    options = dist.ReduceScatterOptions()
    group().reduce_scatter_tensor_coalesced(parts, [put(numbers(n * size)) for n in (2, 5)], options).wait()
    group().allgather_into_tensor_coalesced(wholes, [put(numbers(n)) for n in (3, 1)]).wait()
    return parts + wholes


def gather(put):
    rank, size = dist.get_rank(), dist.get_world_size()
    parts = [put(torch.zeros(3)) for _ in range(size)] if rank == 1 else None
    dist.gather(put(numbers(3)), parts, 1)
    return parts or []


def scatter(put):
    parts = [put(numbers(4, salt=rank)) for rank in range(dist.get_world_size())] if dist.get_rank() == 0 else None
    part = put(torch.zeros(4))
    dist.scatter(part, parts, 0)
    return [part]


def all_to_all(put):
    rank, size = dist.get_rank(), dist.get_world_size()
    received = [put(torch.zeros(1 + peer + rank)) for peer in range(size)]
    dist.all_to_all(received, [put(numbers(1 + peer + rank, salt=peer)) for peer in range(size)])
    return received


def all_to_all_single(put):
    rank, size = dist.get_rank(), dist.get_world_size()
    even = put(torch.zeros(2 * size))
    dist.all_to_all_single(even, put(numbers(2 * size)))
    # To rank r go r rows, so rank 0 receives nothing.
    uneven = put(torch.zeros(rank * size, 2))
    dist.all_to_all_single(uneven, put(numbers(sum(range(size)), 2)), [rank] * size, list(range(size)))
    return [even, uneven]


def messages(put):
    """To the next rank, of two tags out of order, and back from whoever."""
    rank, size = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % size, (rank + 1) % size
    first, second, any_one = put(torch.zeros(5)), put(torch.zeros(5)), put(torch.zeros(3))
    works = [dist.irecv(first, left, tag=1), dist.irecv(second, left, tag=2)]
    works += [dist.isend(put(numbers(5, salt=tag)), right, tag=tag) for tag in (2, 1)]
    works.append(dist.isend(put(numbers(3)), left, tag=7))
    from_any = group().recv_anysource([any_one], 7)
    for work in [*works, from_any]:
        work.wait()
    assert from_any._source_rank() == right
    return [first, second, any_one]


def messages_of_both_kinds(put):
    """From a GPU to host memory, and from there to a GPU."""
    rank, size = dist.get_rank(), dist.get_world_size()
    there, here = put(torch.zeros(3)), torch.zeros(3)
    works = [dist.irecv(there, (rank - 1) % size, tag=1), dist.irecv(here, (rank - 1) % size, tag=2),
             dist.isend(numbers(3), (rank + 1) % size, tag=1), dist.isend(put(numbers(3)), (rank + 1) % size, tag=2)]
    for work in works:
        work.wait()
    return [there, here]


def batch_of_messages(put):
    rank, size = dist.get_rank(), dist.get_world_size()
    received = put(torch.zeros(4))
    batch = [dist.P2POp(dist.isend, put(numbers(4)), (rank + 1) % size), dist.P2POp(dist.irecv, received, (rank - 1) % size)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    return [received]


def together(put):
    x, y = put(numbers(4)), put(numbers(2))
    group()._start_coalescing(x.device)
    group().allreduce([x])
    group().allreduce([y])
    group()._end_coalescing(x.device).wait()
    return [x, y]


def nothing(put):
    x, whole = put(torch.zeros(0)), put(torch.zeros(0))
    dist.all_reduce(x)
    dist.all_gather_into_tensor(whole, x)
    return [x, whole]


CALLS = (all_reduce, all_reduce_average, all_reduce_coalesced, not_contiguous, broadcast, reduce, all_gather,
         all_gather_coalesced, all_gather_into_tensor, reduce_scatter, reduce_scatter_tensor, coalesced_tensors, gather,
         scatter, all_to_all, all_to_all_single, messages, messages_of_both_kinds, batch_of_messages, together, nothing)


def as_in_host_memory():
    """Calls whose results on a GPU are not those in host memory."""
    wrong = []
    for call in CALLS:
        expected = call(lambda tensor: tensor)
        got = call(cuda.on_gpu)
        cuda.current_stream().synchronize()
        assert len(expected) == len(got), call.__name__
        for here, there in zip(expected, got):
            if not torch.equal(here, cuda.on_host(there)):
                wrong.append((call.__name__, here.tolist(), cuda.on_host(there).tolist()))
    return wrong


def in_any_order():
    """Calls on host memory and on a GPU, of which none has been waited for, when the first of the latter comes."""
    size = dist.get_world_size()
    tensors = [torch.ones(3), cuda.on_gpu(torch.ones(3)), torch.ones(5), cuda.on_gpu(torch.ones(5)), torch.ones(1)]
    for work in [dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
        work.wait()
    cuda.current_stream().synchronize()
    return all(cuda.on_host(tensor).eq(size).all() for tensor in tensors)


# ---- When things happen


def behind_what_is_queued(opened):
    """A call whose input the caller's stream writes later; and what follows on that stream is behind the call."""
    x, here = cuda.on_gpu(torch.zeros(1000, dtype=torch.uint8)), cuda.current_stream()
    dist.all_reduce(cuda.on_gpu(torch.ones(1)))
    here.synchronize()
    gate = cuda.Gate(here)
    here.fill(x, 1 + dist.get_rank())
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    completed, untouched = work.is_completed(), cuda.on_host(x).eq(0).all().item()
    if dist.get_rank() == 1:
        opened.wait(testing.LIMIT_S)
        gate.open()
    else:
        gate.open()
        passed_without_the_peer = here.passed()
        opened.set()
        assert not passed_without_the_peer, "wait() has not made the caller's stream wait"
    here.fill(y := cuda.on_gpu(torch.zeros(1, dtype=torch.uint8)), 9)
    here.synchronize()
    assert cuda.on_host(y).item() == 9
    # The end of a call is seen on its own stream.
    testing.wait_until(work.is_completed, "the end of the call")
    return completed and tutti.torch._work.KEEPS_SUBCLASSES, untouched, cuda.on_host(x).tolist() == [3] * 1000, work.wait()


def on_the_side():
    """Where torch's operations of calls run and results are set, and whether the allocator knows that tensors are used
    there."""
    x = cuda.on_gpu(torch.zeros(4, 6)).t()
    mine, parts = cuda.on_gpu(torch.ones(3)), [cuda.on_gpu(torch.zeros(3)) for _ in range(dist.get_world_size())]
    here = cuda.current_stream()
    del cuda.OPERATIONS[:], cuda.SET_ON[:]
    dist.all_reduce(x)
    dist.all_gather(parts, mine)
    dist.reduce_scatter(mine, parts)
    names = {name for name, _ in cuda.OPERATIONS}
    used = [stream for _, stream in cuda.OPERATIONS] + [part.used_on for part in [x, mine, *parts]] + cuda.SET_ON
    streams = {stream.cuda_stream for stream in used}
    return {"contiguous", "copy_", "cat"} <= names, len(streams), here.cuda_stream in streams


def message_that_is_written_later():
    """What is sent is what the sender's stream writes before, and the receiver's stream reads it after it has come."""
    x, y, here = *(cuda.on_gpu(torch.zeros(1000, dtype=torch.uint8)) for _ in range(2)), cuda.current_stream()
    gate = cuda.Gate(here)
    here.fill(x, 7 + dist.get_rank())
    works = [dist.isend(x, 1 - dist.get_rank()), dist.irecv(y, 1 - dist.get_rank())]
    early = error_of(works[1].wait, timeout=timedelta(seconds=0.2))
    gate.open()
    for work in works:
        work.wait()
    here.synchronize()
    return early, cuda.on_host(y).tolist() == [8 - dist.get_rank()] * 1000


def barrier_of_gpus(opened):
    """It is passed when the GPUs of all ranks have done what their callers had queued."""
    dist.all_reduce(cuda.on_gpu(torch.ones(1)))
    if dist.get_rank() == 1:
        gate = cuda.Gate(cuda.current_stream())
        work = dist.barrier(async_op=True)
        opened.wait(testing.LIMIT_S)
        gate.open()
        work.wait()
        return None
    work = dist.barrier(async_op=True)
    early = error_of(work.wait, timeout=timedelta(seconds=0.2))
    opened.set()
    work.wait()
    return early


# ---- What is refused, and what fails


def refused():
    """Errors before anything is queued, and a call after them."""
    first = cuda.on_gpu(torch.ones(3))
    dist.all_reduce(first)
    sparse = types.SimpleNamespace(is_sparse=True, device=torch.device("cuda:0"))
    errors = [error_of(dist.all_gather_into_tensor, torch.zeros(3 * dist.get_world_size()), first),
              error_of(dist.all_reduce, cuda.on_gpu(torch.ones(3), gpu=1)),
              error_of(group().allreduce_coalesced, [first, cuda.on_gpu(torch.ones(3), gpu=1)]),
              error_of(group().allreduce, [sparse]), error_of(group().broadcast, [sparse], dist.BroadcastOptions()),
              error_of(dist.all_reduce, cuda.on_gpu(torch.ones(3, dtype=torch.int16))),
              error_of(dist.all_reduce, cuda.on_gpu(torch.ones(3, dtype=torch.int32)), op=dist.ReduceOp.BAND)]
    torch.cuda.is_current_stream_capturing = lambda: True
    errors.append(error_of(dist.all_reduce, first))
    torch.cuda.is_current_stream_capturing = lambda: False
    dist.all_reduce(first)
    cuda.current_stream().synchronize()
    return errors, cuda.on_host(first).tolist() == [dist.get_world_size() ** 2] * 3


def different_counts():
    """Of a call that the GPU was to carry out, and of the next one."""
    dist.all_reduce(cuda.on_gpu(torch.ones(1)))
    work = dist.all_reduce(cuda.on_gpu(torch.zeros(3 + dist.get_rank())), async_op=True)
    found = eventual_error(work)
    cuda.current_stream().synchronize()
    return found, error_of(dist.all_reduce, cuda.on_gpu(torch.zeros(3)))


def eventual_error(work):
    found = []

    def is_there():
        found.append(error_of(work.wait))
        return found[-1] is not None
    testing.wait_until(is_there, "an error of the call")
    return found[-1]


def a_rank_that_does_not_come(has_failed, meets_before):
    """Limits of a wait and of the group; `meets_before`: the ranks have made a call before."""
    if meets_before:
        dist.all_reduce(cuda.on_gpu(torch.ones(1)))
        cuda.current_stream().synchronize()
    if dist.get_rank() == 1:
        has_failed.wait(testing.LIMIT_S)
        return None
    work = dist.all_reduce(cuda.on_gpu(torch.zeros(3)), async_op=True)
    first = error_of(work.wait, timeout=timedelta(seconds=0.1))
    last = eventual_error(work)
    cuda.current_stream().synchronize()  # it is not held up for ever
    later = error_of(dist.all_reduce, cuda.on_gpu(torch.zeros(3)))
    has_failed.set()
    return first, last, later


class CudaTensors(unittest.TestCase):
    def values(self, ranks, function, *arguments, limit_s=60):
        path = f"/tmp/tutti-torch-cuda-{os.getpid()}-{id(function)}"
        try:
            return testing.start(ranks, with_group, function, path, limit_s, arguments)
        finally:
            if os.path.exists(path):
                os.unlink(path)

    def test_results_are_those_in_host_memory(self):
        for ranks in (2, 3):
            self.assertEqual(self.values(ranks, as_in_host_memory), [[]] * ranks)

    def test_calls_of_both_kinds_in_any_order(self):
        for ranks in (2, 3):
            self.assertEqual(self.values(ranks, in_any_order), [True] * ranks)

    def test_a_call_is_between_what_the_callers_stream_had_and_gets(self):
        for completed, untouched, right, waited in self.values(2, behind_what_is_queued, testing._fork.Event()):
            self.assertFalse(completed)
            self.assertTrue(untouched, "the CPU has waited for the GPU")
            self.assertTrue(right)
            self.assertTrue(waited)

    def test_operations_run_on_the_side_stream(self):
        for all_seen, streams, the_callers in self.values(2, on_the_side):
            self.assertTrue(all_seen)
            self.assertEqual((streams, the_callers), (1, False))

    def test_messages_are_sent_when_the_gpu_has_them(self):
        for early, right in self.values(2, message_that_is_written_later):
            self.assertIn("has not ended within 0.2 s", early or "")
            self.assertTrue(right)

    def test_barrier(self):
        early, _ = self.values(2, barrier_of_gpus, testing._fork.Event())
        self.assertIn("has not ended within 0.2 s", early)

    def test_what_is_refused_says_why(self):
        words = ("on cpu and cuda:0|on cuda:0 and cpu", "are on cuda:1, and those of earlier calls .* on cuda:0",
                 "on cuda:0 and cuda:1", "a sparse tensor is on cuda:0", "a tensor is sparse",
                 "int16: reductions of that type are", "bit_and: reductions by that operator are", "captured into a CUDA graph")
        for errors, works_afterwards in self.values(2, refused):
            self.assertEqual(len(errors), len(words))
            for error, expected in zip(errors, words):
                self.assertRegex(error or "no error", expected)
            self.assertTrue(works_afterwards)

    def test_errors_reach_the_work_and_the_next_call(self):
        for first, later in self.values(2, different_counts):
            self.assertRegex(first, r"(?s)AllReduce count=3.*AllReduce count=4")
            self.assertRegex(later, r"(?s)AllReduce count=3.*AllReduce count=4")

    def test_timeout(self):
        for meets_before in (False, True):
            with self.subTest(meets_before=meets_before):
                said, _ = self.values(2, a_rank_that_does_not_come, testing._fork.Event(), meets_before, limit_s=1)
                first, last, later = said
                self.assertIn("has not ended within 0.1 s", first)
                self.assertIn("Timed out after 1 s", last)
                self.assertIn("Timed out after 1 s", later)


if __name__ == "__main__":
    if not os.path.exists(sys.argv[1]):
        print(f"skipped: there is no fake CUDA driver {sys.argv[1]}")
        sys.exit(77)
    os.environ["TUTTI_CUDA_LIBRARY"] = sys.argv.pop(1)
    unittest.main(warnings="ignore")
