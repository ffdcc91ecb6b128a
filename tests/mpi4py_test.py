#!/usr/bin/env python3
"""mpi4py's own tests of collectives (test_cco_* of its source archive) on the interposer: do they pass, served by tutti?

Usage: mpi4py_test.py MPI RANKS BUILD [TESTS]     MPI: openmpi mpich;  TESTS: a pattern, test_cco without
The archive is downloaded with pip and built once for each MPI, in BUILD/mpi4py. Ranks that wait in MPICH yield the core
(mpi/yield.c). Exit status 77: no package index, no compiler of that MPI, or no launcher.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

SKIPPED, VERSION = 77, "4.1.2"
LIMIT_S = 3000
LEAST_SERVED, LEAST_TESTS = 95.0, 300


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def python():
    """One with numpy, for which mpi4py has its fullest tests, and with pip."""
    for one in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([one, "-c", "import numpy, pip"], capture_output=True, check=False).returncode == 0:
            return one
    return sys.executable


def source(folder):
    """The unpacked archive, in a folder of its own: MPIs must not share one."""
    unpacked = folder / f"mpi4py-{VERSION}"
    if unpacked.exists():
        return unpacked
    folder.mkdir(parents=True, exist_ok=True)
    got = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "mpi4py", "-d",
                          str(folder), f"mpi4py=={VERSION}"], capture_output=True, text=True, timeout=600, check=False)
    archives = list(folder.glob("*.tar.gz"))
    if not archives:
        skip(f"mpi4py's source archive cannot be downloaded: {(got.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder)
    return unpacked


def built(mpi, folder, interpreter):
    """mpi4py's sources, and a folder with its module for that MPI."""
    compiler = shutil.which(f"mpicc.{mpi}")
    if compiler is None or shutil.which(f"mpirun.{mpi}") is None:
        skip(f"{mpi} is not installed")
    sources, modules = source(folder), folder / "modules"
    if not modules.exists():
        environment = {**os.environ, "MPICC": compiler, "MPI4PY_BUILD_MPICC": compiler, "CFLAGS": "-O0"}
        made = subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "new"),
                               str(sources)], env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if made.returncode != 0:
            sys.exit(f"mpi4py does not build:\n{made.stdout}{made.stderr}")
        shutil.rmtree(sources / "build", ignore_errors=True)  # its tests would take modules from there
        (folder / "new").rename(modules)
    return sources, modules


def yielding(folder):
    """The library that lets MPICH's ranks yield."""
    made = folder / "libyield.so"
    yielder = pathlib.Path(__file__).resolve().parent / "mpi/yield.c"
    subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", str(yielder), "-o", str(made)], check=True)
    return made


def main():
    mpi, ranks, build = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    pattern = sys.argv[4] if len(sys.argv) > 4 else "test_cco"
    interpreter = python()
    sources, modules = built(mpi, build / "mpi4py" / mpi, interpreter)
    command = [str(build / "tools/tutti-mpirun"), f"--mpirun=mpirun.{mpi}", "-n", ranks, interpreter,
               str(sources / "test/main.py"), "-q", "-i", pattern]
    environment = {**os.environ, "PYTHONPATH": str(modules), "TUTTI_MPI_STATS": "1", "TUTTI_MPI_START": "early"}
    if mpi == "mpich":
        environment["LD_PRELOAD"] = str(yielding(build / "mpi4py" / mpi))
    else:
        command[2:2] = ["--allow-run-as-root", "--oversubscribe"]
    ended = subprocess.run(command, cwd=sources, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=LIMIT_S, check=False)
    said = re.search(r"^all .* ([\d.]+) % by tutti$", ended.stdout, re.M)
    passed = [int(number) for number in re.findall(r"Ran (\d+) tests", ended.stdout)]
    if ended.returncode != 0 or not said or not passed:
        sys.exit(f"{' '.join(command)}\nexit status {ended.returncode}\n{ended.stdout[-20000:]}")
    print(ended.stdout[-4000:])
    if float(said.group(1)) < LEAST_SERVED:
        sys.exit(f"tutti served {said.group(1)} % of the collective calls, not {LEAST_SERVED} %")
    if pattern == "test_cco" and max(passed) < LEAST_TESTS:
        sys.exit(f"only {max(passed)} tests ran, of at least {LEAST_TESTS}")


if __name__ == "__main__":
    main()
