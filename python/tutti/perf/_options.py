"""What to measure, from the command line. Names and letters are those of nccl-tests and of tutti's perf programs."""
from __future__ import annotations

import argparse
import re
from typing import List

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter",
               "scan", "ex_scan", "sendrecv")
TYPES = {
    "int8": "int8", "uint8": "uint8", "int32": "int32", "uint32": "uint32", "int64": "int64", "uint64": "uint64",
    "half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16", "f8e4m3": "float8_e4m3",
    "f8e5m2": "float8_e5m2"}
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d{1,15})([kmg]?)", text.lower())
    if not found:
        raise argparse.ArgumentTypeError(f"not a size like 8, 4K, 256M or 1G: {text}")
    return int(found.group(1)) << _UNITS[found.group(2)]


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a number from 1 on: {text}")
    return int(text)


def parse(arguments: List[str]) -> argparse.Namespace:
    """Ends the program with a message where the arguments are wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tutti.perf", formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Measures and checks a collective over a range of sizes. Under torchrun, mpirun or srun the ranks "
                    "are the launcher's, else processes of this host.")
    add = parser.add_argument
    add("collective", nargs="?", default="all_reduce", choices=COLLECTIVES, help="what to measure")
    add("--procs", type=_positive, metavar="N", help="ranks on this host (default: 2, or the launcher's)")
    add("--no-pin", action="store_true", help="do not bind rank i to core i mod cores (with --procs)")
    add("-b", "--minbytes", type=_bytes, default="8", metavar="SIZE", help="smallest size")
    add("-e", "--maxbytes", type=_bytes, default="64M", metavar="SIZE", help="largest size")
    add("-f", "--stepfactor", type=_positive, default=4, metavar="F", help="factor from size to size")
    add("-i", "--stepbytes", type=_bytes, metavar="SIZE", help="step from size to size, in place of -f")
    add("-n", "--iters", type=_positive, default=20, metavar="N", help="timed calls")
    add("-w", "--warmup_iters", type=int, default=5, metavar="N", help="calls before, not timed")
    add("-c", "--check", type=int, default=1, choices=(0, 1), help="1: compare every element of a result (needs numpy)")
    add("-d", "--datatype", default="float", choices=TYPES, help="type of the elements")
    add("-o", "--op", default="sum", choices=("sum", "prod", "min", "max", "avg"), help="operator of reductions")
    add("-r", "--root", type=int, default=0, metavar="RANK", help="root of the collectives that have one")
    add("--as-rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.maxbytes < options.minbytes:
        parser.error("--maxbytes is less than --minbytes")
    if options.stepfactor == 1 and options.stepbytes is None:
        parser.error("--stepfactor 1 leads nowhere; give --stepbytes for a step")
    return options


def sizes(options: argparse.Namespace) -> List[int]:
    """In bytes, ascending."""
    listed, size = [], options.minbytes
    while size <= options.maxbytes:
        listed.append(size)
        size = max(size + options.stepbytes if options.stepbytes else size * options.stepfactor, size + 1)
    return listed
