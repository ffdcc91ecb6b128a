#!/usr/bin/env python3
"""Does python -m tutti.perf measure each collective, see wrong results, end when a rank fails, and run under
launchers?"""
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

LIMIT_S = 300
QUICK = ["-b", "8", "-e", "64K", "-f", "32", "-n", "2", "-w", "1"]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(command, **environment):
    """The command in a group of its own, of which nothing is left where it takes too long."""
    with subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, said)


def perf(*arguments):
    return run([sys.executable, "-m", "tutti.perf", *arguments])


def rows(table):
    return [line.split() for line in table.splitlines() if re.match(r" +\d", line)]


class Perf(unittest.TestCase):
    def test_every_collective(self):
        for collective in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter",
                           "scan", "ex_scan", "sendrecv"):
            with self.subTest(collective):
                said = perf(collective, "--procs", "3", *QUICK, "-d", "int8", "-r", "1")
                self.assertEqual(said.returncode, 0, said.stdout)
                self.assertIn("# Out of bounds values : 0 OK", said.stdout)
                table = rows(said.stdout)
                self.assertEqual(len(table), 3, said.stdout)
                for row in table:
                    self.assertGreater(float(row[5]), 0)
                    self.assertEqual(row[8], "0")
                    self.assertEqual(row[12], "N/A" if collective == "sendrecv" else "0")

    def test_columns_are_those_of_nccl_tests(self):
        said = perf("--procs", "2", *QUICK, "-o", "avg", "-d", "bfloat16").stdout
        self.assertRegex(said, r"# +size +count +type +redop +root( +time +algbw +busbw +#wrong){2}\n")
        self.assertRegex(said, r"(?m)^ +256 +128 +bfloat16 +avg +-1( +[\d.]+ +[\d.]+ +[\d.]+ +N/A){2} +# \w+")

    def test_bus_bandwidth(self):
        """That of an all-reduce of 4 ranks is 6/4 of the algorithm's."""
        said = perf("--procs", "4", *QUICK)
        self.assertEqual(said.returncode, 0, said.stdout)
        table = rows(said.stdout)
        self.assertEqual(len(table), 3, said.stdout)
        for row in table[1:]:
            size, time_us, algorithm, bus = (float(row[i]) for i in (0, 5, 6, 7))
            self.assertAlmostEqual(algorithm, size / time_us * 1e-3, delta=0.01 * algorithm + 1e-4)
            self.assertAlmostEqual(bus, 1.5 * algorithm, delta=0.01 * bus + 2e-4)

    def test_wrong_results_are_seen(self):
        script = ("import sys; from tutti.perf import _kinds, __main__; right = _kinds.COLLECTIVES['all_reduce']\n"
                  "_kinds.COLLECTIVES['all_reduce'] = right._replace(result=lambda inputs, call: right.result(inputs, call) + 1)\n"
                  f"sys.exit(__main__.main({QUICK} + ['--as-rank']))")
        said = run([sys.executable, "-c", script], TUTTI_RANK="0", TUTTI_NRANKS="1")
        self.assertEqual(said.returncode, 2, said.stdout)
        self.assertRegex(said.stdout, r"# Out of bounds values : [1-9]\d* FAILED")

    def test_a_rank_that_fails_ends_the_others(self):
        said = perf("broadcast", "--procs", "3", *QUICK, "-r", "7", "-c", "0")
        self.assertEqual(said.returncode, 1, said.stdout)
        self.assertIn("InvalidArgumentError", said.stdout)

    def test_help_and_bad_arguments(self):
        said = perf("--help")
        self.assertEqual(said.returncode, 0)
        for option in ("--procs", "--minbytes", "--datatype", "all_reduce"):
            self.assertIn(option, said.stdout)
        for bad in (["-b", "8X"], ["-b", "2K", "-e", "1K"], ["no_such"], ["--procs", "0"], ["-f", "1"]):
            self.assertEqual(perf(*bad).returncode, 2, bad)


class Launchers(unittest.TestCase):
    def expect_table(self, command, ranks, **environment):
        said = run([*command, sys.executable, "-m", "tutti.perf", *QUICK], **environment)
        self.expect_ranks(said, ranks)

    def expect_ranks(self, said, ranks):
        self.assertEqual(said.returncode, 0, said.stdout)
        self.assertEqual(said.stdout.count(f"# Using {ranks} ranks"), 1, said.stdout)
        self.assertIn("# Out of bounds values : 0 OK", said.stdout)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "Open MPI is not installed")
    def test_open_mpi(self):
        self.expect_table(["mpirun.openmpi", "-n", "3", "--oversubscribe", "--bind-to", "none", "-x", "PYTHONPATH", "-x",
                           "LD_LIBRARY_PATH"], 3, **AS_ROOT)

    @unittest.skipUnless(shutil.which("mpiexec.hydra"), "MPICH is not installed")
    def test_mpich(self):
        self.expect_table(["mpiexec.hydra", "-n", "3"], 3)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_torchrun(self):
        # Debian's torch 1.13 cannot read its own defaults of these two with Python 3.11.
        said = run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-r", "1", "--tee", "1",
                    "-m", "tutti.perf", *QUICK])
        self.expect_ranks(said, 2)


if __name__ == "__main__":
    unittest.main()
