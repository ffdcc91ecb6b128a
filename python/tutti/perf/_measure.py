"""One rank's part of the measurement, and the table that rank 0 prints."""
from __future__ import annotations

import argparse
import os
import struct
import time
from typing import Any, Callable, List, Optional, Tuple

import tutti

from ._kinds import COLLECTIVES, Call, Collective, Memory, Region
from ._options import TYPES, sizes

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

_WRONG = 2  # exit status


class _Rank:
    """Measures size after size."""

    def __init__(self, comm: tutti.Communicator, options: argparse.Namespace) -> None:
        self.comm, self.options = comm, options
        self.collective: Collective = COLLECTIVES[options.collective]
        self.dtype = tutti.DataType[TYPES[options.datatype].upper()]
        self.send, self.recv = (Memory(max(options.maxbytes, self.dtype.itemsize * comm.size)) for _ in range(2))
        self.figure = bytearray(8)
        self.words = "N/A"  # algorithm and transport of what was timed last
        known = numpy is not None and self.dtype < tutti.DataType.BFLOAT16
        self.numpy_type = TYPES[options.datatype] if known else None

    def call(self, count: int) -> Call:
        """A call on `count` elements, or so many for each rank."""
        nbytes = count * self.dtype.itemsize
        size = self.comm.size
        return Call(self.comm, self.send.region(nbytes * (size if self.collective.send_blocks else 1)),
                    self.recv.region(nbytes * (size if self.collective.recv_blocks else 1)), self.dtype,
                    tutti.RedOp[self.options.op.upper()], self.options.root)

    def most(self, value: float) -> float:
        """The largest of all ranks' values."""
        struct.pack_into("=d", self.figure, 0, value)
        self.comm.all_reduce(self.figure, op=tutti.RedOp.MAX, dtype=tutti.DataType.FLOAT64)
        return float(struct.unpack("=d", self.figure)[0])

    def time(self, run: Callable[[Call], Any], call: Call) -> float:
        """Seconds of a call, on the rank that takes longest."""
        for _ in range(self.options.warmup_iters):
            run(call)
        self.comm.barrier()
        begin = time.perf_counter()
        for _ in range(self.options.iters):
            run(call)
        seconds = (time.perf_counter() - begin) / self.options.iters
        if self.options.collective != "sendrecv":
            self.words = " over ".join(self.comm.last_algorithm())
        return self.most(seconds)

    def inputs(self, call: Call) -> List[Any]:
        """What each rank sends: small integers, so that no type rounds."""
        count = call.send.nbytes // self.dtype.itemsize
        return [((numpy.arange(count) + 3 * rank) % 4).astype(self.numpy_type) for rank in range(self.comm.size)]

    def wrong(self, run: Callable[[Call], Any], call: Call, send: Region, recv: Region) -> Optional[int]:
        """Elements of a result that differ from what numpy computes, most of all ranks; None: not checked."""
        if not self.options.check or self.numpy_type is None:
            return None
        inputs = self.inputs(call)
        got = self.array(recv)
        got[:] = 99
        self.array(send)[:] = inputs[self.comm.rank]
        run(call)
        expected = self.collective.result(inputs, call)
        different = 0 if expected is None else int((got != expected.astype(self.numpy_type)).sum())
        return int(self.most(different))

    def array(self, region: Region) -> Any:
        return numpy.frombuffer(region.memory.view[region.start:region.start + region.nbytes], dtype=self.numpy_type)

    def measure(self, call: Call, size: int, in_place: bool) -> Tuple[str, float, int]:
        """Cells of the table, the bus bandwidth, and how many elements were wrong."""
        run = self.collective.run_in_place if in_place else self.collective.run
        if run is None:
            return f"  {'N/A':>9}  {'N/A':>8}  {'N/A':>8}  {'N/A':>6}", 0, 0
        wrong = self.wrong(run, call, *(self.collective.in_place(call) if in_place else (call.send, call.recv)))
        seconds = self.time(run, call)
        algorithm = size / seconds * 1e-9
        bus = algorithm * self.collective.bus_factor(self.comm.size)
        text = f"  {_figures(seconds * 1e6):>9}  {_figures(algorithm):>8}  {_figures(bus):>8}"
        return text + f"  {'N/A' if wrong is None else wrong:>6}", bus, wrong or 0


def _figures(value: float) -> str:
    """Four significant figures."""
    digits = 0 if value >= 10000 else 1 if value >= 1000 else 2 if value >= 100 else 3 if value >= 10 else 4
    return f"{value:.{digits}f}"


def _head(comm: tutti.Communicator, options: argparse.Namespace) -> str:
    columns, units = "", ""
    for _ in range(2):
        columns += f"  {'time':>9}  {'algbw':>8}  {'busbw':>8}  {'#wrong':>6}"
        units += f"  {'(us)':>9}  {'(GB/s)':>8}  {'(GB/s)':>8}  {'':>6}"
    return f"""# tutti version {tutti.library_version()}, from Python: a call takes its time in C and some microseconds in Python
# Collective test starting: {options.collective}
# warmup iters: {options.warmup_iters} iters: {options.iters} validation: {options.check}
#
# Using {comm.size} ranks on {os.uname().nodename}, {os.cpu_count()} cores
#
# {'':>10}  {'':>12}  {'':>8}  {'':>6}  {'':>6} {'out-of-place':^37} {'in-place':^37}
# {'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}  {'root':>6}{columns}
# {'(B)':>10}  {'(elements)':>12}  {'':>8}  {'':>6}  {'':>6}{units}  # algorithm over transport"""


def _sweep(rank: _Rank, options: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Measures all sizes; returns the number of wrong elements."""
    collective, comm = rank.collective, rank.comm
    per_rank = collective.send_blocks or collective.recv_blocks
    wrong, bandwidths, last = 0, [], None
    for size in sizes(options):
        count = size // rank.dtype.itemsize // (comm.size if per_rank else 1)
        if count == 0 or count == last:
            continue
        last, call = count, rank.call(count)
        size = max(call.send.nbytes, call.recv.nbytes)
        cells = ""
        for in_place in (False, True):
            text, bandwidth, damaged = rank.measure(call, size, in_place)
            cells += text
            wrong += damaged
            if bandwidth:
                bandwidths.append(bandwidth)
        op = options.op if collective.has_op else "none"
        root = options.root if collective.has_root else -1
        say(f"{size:>12}  {count:>12}  {options.datatype:>8}  {op:>6}  {root:>6}{cells}  # {rank.words}")
    checked = rank.numpy_type is not None and options.check
    verdict = f"{wrong} {'OK' if wrong == 0 else 'FAILED'}" if checked else "not checked"
    say(f"# Out of bounds values : {verdict}")
    say(f"# Avg bus bandwidth    : {sum(bandwidths) / max(len(bandwidths), 1):.6g}\n#")
    say(f"# Collective test concluded: {options.collective}")
    return wrong


def measure(options: argparse.Namespace) -> int:
    """The exit status: 0, or 2 if a result was wrong."""
    with tutti.Communicator.from_environment() as comm:
        def say(text: str) -> None:
            if comm.rank == 0:
                print(text, flush=True)

        say(_head(comm, options))
        return _WRONG if _sweep(_Rank(comm, options), options, say) else 0
