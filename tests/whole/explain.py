#!/usr/bin/env python3
"""Says whether a libtutti knows the machine: eight ranks on a recorded one have its levels, order and rings.

Usage: explain.py FOLDER_OF_LIBTUTTI REPOSITORY     exit status 0: they have
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = """
import tutti
with tutti.Communicator.from_environment() as comm:
    if comm.rank == 0:
        print(comm.explain("all_reduce", 1 << 18))
    comm.barrier()
"""
RANKS = 8
# Of tests/machines/cube-mesh-double.txt: its levels, and rings over its NVLinks, each of whom is an order of ranks.
EXPECTED = ["6 rings: 0 2 ", "multi_ring/0"]


def sanitizer_of(libraries):
    """Of a libtutti that was built with one, which a program has to load first; with addresses where it expects them."""
    needed = subprocess.run(["ldd", f"{libraries}/libtutti.so"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"=> (\S*/libtsan\S*)", needed)
    if not found:
        return [], {}
    return ["setarch", "-R"], {"LD_PRELOAD": found[1], "TSAN_OPTIONS": "report_bugs=0"}  # Python's own are not asked for


def main():
    libraries, source = sys.argv[1], pathlib.Path(sys.argv[2])
    before, sanitizer = sanitizer_of(libraries)
    with tempfile.TemporaryDirectory() as folder:
        written = pathlib.Path(folder) / "job.json"
        common = {"LD_LIBRARY_PATH": libraries, "PYTHONPATH": str(source / "python"), "TUTTI_TUNE": "off",
                  "TUTTI_TOPO_FILE": str(source / "tests/machines/cube-mesh-double.txt"), "TUTTI_TRANSPORT": "slots",
                  "TUTTI_ALGO": "multi_ring", "TUTTI_JOB_ID": str(written), "TUTTI_NRANKS": str(RANKS),
                  "TUTTI_JOB_DUMP_FILE": str(written)}
        ranks = [subprocess.Popen([*before, sys.executable, "-c", PROGRAM], text=True, stdout=subprocess.PIPE,
                                  env={**os.environ, **common, **sanitizer, "TUTTI_RANK": str(rank)}) for rank in range(RANKS)]
        told = [rank.communicate(timeout=300)[0] for rank in ranks]
        if any(rank.returncode != 0 for rank in ranks):
            sys.exit(f"a rank failed: {[rank.returncode for rank in ranks]}")
        job = written.read_text(encoding="utf-8")
    missing = [part for part in EXPECTED if part not in told[0]] + [part for part in ('"rings": [',) if part not in job]
    print(told[0])
    sys.exit(f"it lacks {missing}" if missing else 0)


if __name__ == "__main__":
    main()
