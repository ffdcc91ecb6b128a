#!/usr/bin/env python3
"""Time of a training step of DistributedDataParallel with gloo and with tutti, in turn, on ranks of this host.

Usage: ddp.py [--model resnet50|bert] [--ranks 2] [--rounds 10] [--batch 2] [--csv FILE] [--trace FOLDER]

Each round takes one step with each backend, and one with each in which the ranks do not communicate (no_sync). What
communication adds to a step is what it exposes: the rest is hidden behind the backward pass. A round's steps follow each
other closely, so the differences of a round are compared, and their medians printed.
--trace: one more step with each under torch's profiler; FOLDER gets BACKEND.json of rank 0, for ui.perfetto.dev.
"""
from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List

BACKENDS = ("gloo", "tutti")
STEPS = tuple(f"{backend}{kind}" for backend in BACKENDS for kind in ("", " alone"))
WARMUP = 2  # rounds


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50", choices=("resnet50", "bert", "small"))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--batch", type=int, default=2, help="inputs of each rank in a step")
    parser.add_argument("--bucket-mb", type=float, default=25, help="DDP's bucket_cap_mb")
    parser.add_argument("--mapped", action="store_true", help="tutti's buckets are in memory that peers can map")
    parser.add_argument("--csv", help="file for the times of all steps")
    parser.add_argument("--trace", help="folder for what torch's profiler saw of a step")
    parser.add_argument("--rendezvous", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


class Trainer:
    """A model of its own for each backend, with the same parameters."""

    def __init__(self, options: argparse.Namespace, groups: Dict[str, Any]) -> None:
        import torch
        from models import MODELS
        from torch.nn.parallel import DistributedDataParallel

        make, inputs = MODELS[options.model]
        torch.manual_seed(1)
        self.inputs = inputs(options.batch)
        self.models, self.optimizers = {}, {}
        for backend, group in groups.items():
            torch.manual_seed(2)
            self.models[backend] = DistributedDataParallel(make(), process_group=group, gradient_as_bucket_view=True,
                                                           bucket_cap_mb=options.bucket_mb)
            self.optimizers[backend] = torch.optim.SGD(self.models[backend].parameters(), lr=1e-3)

    @property
    def parameters(self) -> int:
        return sum(one.numel() for one in self.models["gloo"].parameters())

    def step(self, name: str) -> float:
        """Seconds of forward and backward pass; the optimizer, which is alike for all, is not counted."""
        import torch.distributed as dist

        backend, _, alone = name.partition(" ")
        model, optimizer = self.models[backend], self.optimizers[backend]
        dist.barrier()
        began = time.perf_counter()
        with model.no_sync() if alone else contextlib.nullcontext():
            model(self.inputs).square().mean().backward()
        taken = time.perf_counter() - began
        if not alone:
            optimizer.step()
        optimizer.zero_grad(set_to_none=False)  # of views into buckets: they stay there
        return taken


def trace(trainer: Trainer, folder: pathlib.Path) -> None:
    """Rank 0's step with each backend."""
    import torch
    import torch.distributed as dist

    folder.mkdir(parents=True, exist_ok=True)
    for backend in BACKENDS:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            trainer.step(backend)
            dist.barrier()  # gloo tells the profiler of the end of a call after whoever waits for it
        if dist.get_rank() == 0:
            file = folder / f"{backend}.json"
            profile.export_chrome_trace(str(file))
            separate(file, f"{backend}:")


def separate(file: pathlib.Path, prefix: str) -> None:
    """Gives asynchronous calls a row of their own: torch puts tutti's on the thread that made them, across what ran
    there meanwhile."""
    trace = json.loads(file.read_text(encoding="utf-8"))
    for event in trace if isinstance(trace, list) else trace["traceEvents"]:
        if str(event.get("name", "")).startswith(prefix):
            event["tid"] = prefix.rstrip(":")
    file.write_text(json.dumps(trace), encoding="utf-8")


def measure(options: argparse.Namespace) -> List[Dict[str, float]]:
    """Seconds of each step of each round: of the slowest rank."""
    import torch
    import torch.distributed as dist

    import tutti.torch  # noqa: F401: registers the backend

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{options.rendezvous}", rank=options.rank,
                            world_size=options.ranks)
    groups = {"gloo": None, "tutti": dist.new_group(backend="tutti")}
    made_in = tutti.torch.mapped_memory() if options.mapped else contextlib.nullcontext()
    with made_in:
        trainer = Trainer(options, groups)
        for _ in range(WARMUP):  # DDP makes its buckets anew after the first step
            for name in STEPS:
                trainer.step(name)
    if options.rank == 0:
        print(f"# {options.model}: {trainer.parameters:,} parameters, {options.ranks} ranks, batch {options.batch}, "
              f"torch {torch.__version__}", flush=True)
    rounds = []
    for number in range(options.rounds):
        order = STEPS[number % len(STEPS):] + STEPS[:number % len(STEPS)]
        taken = {name: trainer.step(name) for name in order}
        slowest = torch.tensor([taken[name] for name in STEPS], dtype=torch.double)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        rounds.append(dict(zip(STEPS, slowest.tolist())))
    if options.trace:
        trace(trainer, pathlib.Path(options.trace))
    dist.barrier()
    dist.destroy_process_group()
    return rounds


def spread(values: List[float]) -> str:
    """Median and quartiles, of seconds, in milliseconds."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{1e3 * middle:9.1f} ({1e3 * low:.1f} … {1e3 * high:.1f})"


def report(rounds: List[Dict[str, float]]) -> None:
    print(f"{'ms, median (quartiles)':<24}{'step':>26}{'without communication':>30}{'exposed':>28}")
    exposed = {}
    for backend in BACKENDS:
        exposed[backend] = [one[backend] - one[f"{backend} alone"] for one in rounds]
        columns = [[one[backend] for one in rounds], [one[f"{backend} alone"] for one in rounds], exposed[backend]]
        print(f"{backend:<24}" + "".join(f"{spread(column):>28}" for column in columns))
    gloo, tutti = (statistics.median(exposed[backend]) for backend in BACKENDS)
    print(f"exposed by tutti: {tutti / gloo:.2f} of gloo's" if gloo > 0 else "gloo exposes nothing")


def start(options: argparse.Namespace) -> int:
    """Runs this program once for each rank, each on a core of its own; returns the first exit status that is not 0."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(options.ranks):
            ranks.append(subprocess.Popen([sys.executable, *sys.argv, "--rank", str(rank), "--rendezvous", f"{folder}/meet"]))
            os.sched_setaffinity(ranks[-1].pid, [cores[rank % len(cores)]])
        return next((status for status in [rank.wait() for rank in ranks] if status != 0), 0)


def main() -> int:
    options = parsed()
    if options.rank is None:
        return start(options)
    rounds = measure(options)
    if options.rank == 0:
        report(rounds)
        if options.csv:
            with open(options.csv, "w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, STEPS)
                writer.writeheader()
                writer.writerows(rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
