"""compare --mpi-interposer: all-reduces of an MPI program by tutti's interposer and by the MPI underneath, for each MPI.

Both are timed in turn in one process (interposed.c), so that both find the machine in the same state.
"""
import collections
import csv
import os
import pathlib
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SIZES = "8,16,64,256,1K,4K,16K,64K,256K,1M,4M"
ROUNDS = 41
FIELDS = ["mpi", "ranks", "bytes", "rounds", "tutti_us", "tutti_us_low", "tutti_us_high", "mpi_us", "mpi_us_low", "mpi_us_high",
          "ratio", "ratio_low", "ratio_high"]
# name → the arguments of its mpirun
LAUNCHERS = {
    "openmpi": ["--bind-to", "none", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "vader,self"],
    "mpich": ["-bind-to", "none"],
}
FASTER_FROM, SLOWER_MOST = 1024, 1.05  # from this size on tutti has to be faster, below it at most this much slower


def quartiles(values):
    """Median, lower and upper quartile."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return middle, low, high


def rows_of(name, options, folder):
    """The rows of one MPI; none where it is not there."""
    missing = next((tool for tool in (f"mpicc.{name}", f"mpirun.{name}") if shutil.which(tool) is None), None)
    if missing:
        print(f"# {name}: left out, there is no {missing}")
        return []
    program = folder / name
    made = subprocess.run([f"mpicc.{name}", "-O2", str(HERE / "interposed.c"), "-o", str(program)], capture_output=True, text=True,
                          check=False)
    if made.returncode != 0:
        sys.exit(f"compare: interposed.c does not build:\n{made.stderr}")
    launcher = options.tutti.parent.parent / "tools/tutti-mpirun"
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_mpi_yield_when_idle": "1" if options.ranks > (os.cpu_count() or 1) else "0"}
    command = [str(launcher), f"--mpirun=mpirun.{name}", "-n", str(options.ranks), *LAUNCHERS[name], str(program),
               str(options.rounds), str(options.ms * 1000 / options.rounds), *map(str, options.sizes)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=options.timeout, check=False)
    if ended.returncode != 0:
        sys.exit(f"compare: {shlex.join(command)}\nexit status {ended.returncode}\n{ended.stdout}{ended.stderr}")
    times, wrong = collections.defaultdict(list), 0
    for size, _, tutti, mpi, failed in csv.reader(ended.stdout.splitlines()):
        times[int(size)].append((float(tutti), float(mpi)))
        wrong += int(failed)
    if wrong:
        sys.exit(f"compare: {name}: {wrong} WRONG values")
    return [[name, options.ranks, size, len(pairs), *quartiles([tutti for tutti, _ in pairs]), *quartiles([mpi for _, mpi in pairs]),
             *quartiles([tutti / mpi for tutti, mpi in pairs])] for size, pairs in times.items()]


def write(rows, options):
    model = next((line.partition(": ")[2] for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
                  if line.startswith("model name")), "unknown")
    with options.csv.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# command: {shlex.join(sys.argv)}\n# machine: {os.cpu_count()} cores: {model}; Linux {platform.release()}\n"
                   f"# date: {time.strftime('%Y-%m-%d')}; median, lower and upper quartile of the rounds\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows([*row[:4], *(f"{value:.3f}" for value in row[4:])] for row in rows)


def compare(options):
    """Prints the table, in which SLOWER marks where tutti is slower than it should be. The exit status: 1 without any MPI."""
    with tempfile.TemporaryDirectory(prefix="compare.") as folder:
        rows = [row for name in LAUNCHERS for row in rows_of(name, options, pathlib.Path(folder))]
    print(f"All-reduce of floats, {options.ranks} ranks: median (quartiles) of the rounds, µs\n")
    print("| MPI | bytes | interposed | MPI itself | interposed ÷ MPI | |\n|---|---|---|---|---|---|")
    for name, _, size, _, *values in rows:
        limit = 1.0 if size >= FASTER_FROM else SLOWER_MOST
        cells = [f"{values[i]:.3g} ({values[i + 1]:.3g} … {values[i + 2]:.3g})" for i in (0, 3, 6)]
        print(f"| {name} | {size} | {' | '.join(cells)} | {'SLOWER' if values[6] > limit else ''} |")
    if options.csv:
        write(rows, options)
    return 0 if rows else 1
