#!/usr/bin/env python3
"""On a real GPU, with a torch that has CUDA: do two processes train by DDP on tutti what they train on gloo, do
collectives of CUDA tensors give what those of host memory give, and can calls be captured into torch's CUDA graphs?

Usage: torch_gpu_ddp.py FOLDER [--graphs]
If there is a GPU that this Python's torch does not see, the newest torch is installed in FOLDER, once. --graphs: the captured calls
alone, also of memory that a graph allocates and of expandable segments, with times; of use where processes share the GPU by MPS.
Exit status 77: there is no GPU, or torch cannot be installed or does not see it
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

import newest_torch

RANKS, STEPS, REPLAYS, LIMIT_S, SKIPPED = 2, 30, 100, 300, 77


# ---- A rank


def losses(dist, torch):
    """Of each step, of both ranks together; buckets are small, so several are reduced during the backward pass."""
    torch.manual_seed(1)
    rank, size = dist.get_rank(), dist.get_world_size()
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256), torch.nn.Tanh(),
                                torch.nn.Linear(256, 8)).double().cuda()
    inputs, targets = (torch.randn(STEPS, 16, width, dtype=torch.double).cuda() for width in (64, 8))
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=0.1)
    optimizer, found = torch.optim.SGD(model.parameters(), lr=0.05), []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs[step, rank::size]), targets[step, rank::size])
        loss.backward()
        optimizer.step()
        found.append(loss.detach() / size)
    together = torch.stack(found)
    dist.all_reduce(together)
    return together.cpu()


def collectives(dist, torch):
    """Many calls in a row on a stream that is busy, whose results only this stream's order makes right."""
    rank, size = dist.get_rank(), dist.get_world_size()
    square = torch.rand(2000, 2000, device="cuda")
    for step in range(50):
        for _ in range(4):
            square = square @ square / 1000
        x = torch.full((1 << 18,), float(step + rank), device="cuda")
        parts = [torch.empty_like(x) for _ in range(size)]
        work = dist.all_reduce(x, async_op=True)
        gathered = dist.all_gather(parts, torch.full_like(x, float(rank)), async_op=True)
        work.wait()
        doubled = 2 * x
        gathered.wait()
        expected = 2.0 * sum(step + one for one in range(size))
        assert doubled.eq(expected).all().item(), (step, doubled[0].item(), expected)
        assert all(part.eq(one).all().item() for one, part in enumerate(parts)), step
    x = torch.full((1 << 16,), float(rank), device="cuda")
    received = torch.empty_like(x)
    works = [dist.isend(x, (rank + 1) % size), dist.irecv(received, (rank - 1) % size)]
    for work in works:
        work.wait()
    assert received.eq((rank - 1) % size).all().item()
    dist.barrier()


def train(folder, backend):
    import torch
    import torch.distributed as dist

    import tutti.torch  # noqa: F401: registers the backend
    torch.cuda.set_device(0)
    dist.init_process_group(backend, init_method=f"file://{folder}/{backend}", rank=int(os.environ["RANK"]), world_size=RANKS)
    if backend == "tutti":
        collectives(dist, torch)
    torch.save(losses(dist, torch), f"{folder}/{backend}-{dist.get_rank()}")
    dist.destroy_process_group()


def captured():
    """Graphs around one call and the work before and behind it: small ones and large ones."""
    import torch

    import tutti
    torch.cuda.set_device(0)
    with tutti.Communicator.from_environment() as comm:
        for count in (1000, 200_000, 4_000_000):
            x, y = torch.zeros(count, device="cuda"), torch.zeros(count, device="cuda")
            graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()

            def step():
                x.add_(comm.rank + 1)
                comm.all_reduce(x, y, stream=torch.cuda.current_stream())
                y.mul_(2)

            with torch.cuda.stream(stream):
                for _ in range(20):  # until peers have mapped the memory
                    step()
            stream.synchronize()
            x.zero_()
            with torch.cuda.graph(graph, stream=stream):
                step()
            for replay in range(1, REPLAYS + 1):
                graph.replay()
                if replay % 10 == 0:
                    expected = 2.0 * replay * sum(range(1, comm.size + 1))
                    assert y.eq(expected).all().item(), (count, replay, y[0].item(), expected)
            if "--graphs" in sys.argv:
                of_own = in_memory_of_the_graph(torch, comm, x, stream)
                say_times(torch, comm, count, mapped=graph, own=of_own)
                del of_own
            del graph
    print(f"rank {os.environ['TUTTI_RANK']}: {REPLAYS} replays of graphs")


def in_memory_of_the_graph(torch, comm, x, stream):
    """A graph whose call is on memory that torch allocates during the capture, which no other rank can have mapped by then."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        sent = x * 3
        received = comm.all_reduce(sent, torch.empty_like(sent), stream=torch.cuda.current_stream())
        y = received + 1
    for replay in range(1, REPLAYS + 1):
        x.fill_(replay * (comm.rank + 1))
        graph.replay()
        if replay % 10 == 0:
            expected = 3.0 * replay * sum(range(1, comm.size + 1)) + 1
            assert y.eq(expected).all().item(), (x.numel(), replay, y[0].item(), expected)
    return graph


def say_times(torch, comm, count, **graphs):
    for name, graph in graphs.items():
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        comm.barrier()
        begin.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        end.synchronize()
        print(f"rank {comm.rank}: {4 * count} bytes, a graph in {name} memory: {begin.elapsed_time(end) / REPLAYS * 1000:.1f} us")


# ---- The test


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def sees_gpu(python):
    asks = [str(python), "-c", "import torch; assert torch.cuda.is_available()"]
    return subprocess.run(asks, capture_output=True, check=False).returncode == 0


def run(what, *command, **environment):
    """Both ranks, on one GPU."""
    job = {"TUTTI_NRANKS": str(RANKS), "TUTTI_JOB_ID": f"{what}-{os.getpid()}", **environment}
    ranks = [subprocess.Popen([*map(str, command)], env={**os.environ, **job, "RANK": str(rank), "TUTTI_RANK": str(rank)})
             for rank in range(RANKS)]
    try:
        for rank, process in enumerate(ranks):
            if process.wait(LIMIT_S) != 0:
                sys.exit(f"rank {rank} of {what} ended with status {process.returncode}")
    finally:
        for process in ranks:
            with process:
                process.kill()


def compare(folder):
    """In a process with torch."""
    import torch

    of = {name: torch.load(f"{folder}/{name}") for name in ("gloo-0", "gloo-1", "tutti-0", "tutti-1")}
    assert torch.equal(of["tutti-0"], of["tutti-1"]), "ranks differ"
    assert torch.allclose(of["tutti-0"], of["gloo-0"], rtol=1e-9, atol=1e-12), (of["tutti-0"], of["gloo-0"])
    print(f"{STEPS} steps of DDP, from a loss of {of['tutti-0'][0]:.4f} to {of['tutti-0'][-1]:.4f}, as on gloo")


def main():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        skip("there is no CUDA driver here")
    if not os.path.exists("/dev/nvidiactl"):
        skip("there is no GPU here")
    python = sys.executable if sees_gpu(sys.executable) else newest_torch.install(pathlib.Path(sys.argv[1]))
    if not sees_gpu(python):
        skip("torch does not see the GPU")
    if "--graphs" in sys.argv:
        for what, settings in (("graphs", {}), ("expandable segments", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})):
            print(f"{what}:", flush=True)
            run(what.replace(" ", "-"), python, __file__, "--captured", "--graphs", **settings)
        return
    run("captured calls", python, __file__, "--captured", TUTTI_GPU_P2P="flags")
    with tempfile.TemporaryDirectory() as folder:
        for backend in ("gloo", "tutti"):
            run(backend, python, __file__, "--rank", folder, backend)
        sys.exit(subprocess.run([str(python), __file__, "--compare", folder], check=False).returncode)


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        train(*sys.argv[2:])
    elif sys.argv[1] == "--captured":
        captured()
    elif sys.argv[1] == "--compare":
        compare(sys.argv[2])
    else:
        main()
