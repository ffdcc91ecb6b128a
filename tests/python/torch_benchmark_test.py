#!/usr/bin/env python3
"""The benchmark of DDP measures, and its traces show collective calls of both backends."""
import csv
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent.parent / "python/benchmarks"
LIMIT_S = 300
BACKENDS = ("gloo", "tutti")

if importlib.util.find_spec("torch") is None:
    print("skipped: this Python has no torch (Debian: python3-torch)")
    sys.exit(77)
sys.path.insert(0, str(BENCHMARKS))
import overlap  # noqa: E402


def run(program, *arguments):
    ended = subprocess.run([sys.executable, str(BENCHMARKS / program), *map(str, arguments)], capture_output=True, text=True,
                           timeout=LIMIT_S, check=False)
    if ended.returncode != 0:
        raise AssertionError(ended.stdout + ended.stderr)
    return ended.stdout


class Benchmark(unittest.TestCase):
    def test_measures_and_traces(self):
        with tempfile.TemporaryDirectory() as folder:
            times, traces = pathlib.Path(folder) / "times.csv", pathlib.Path(folder) / "traces"
            said = run("ddp.py", "--model", "small", "--rounds", 3, "--csv", times, "--trace", traces)
            self.assertRegex(said, r"# small: 33,088 parameters, 2 ranks")
            for backend in BACKENDS:
                self.assertRegex(said, rf"(?m)^{backend} +[\d.]+ \(.*\) +[\d.]+ \(.*\) +-?[\d.]+ \(.*\)$")
            with times.open(encoding="utf-8", newline="") as file:
                rounds = list(csv.DictReader(file))
            self.assertEqual(len(rounds), 3)
            self.assertTrue(all(float(seconds) > 0 for one in rounds for seconds in one.values()))
            for backend in BACKENDS:
                rows = overlap.of_trace(traces / f"{backend}.json")
                begin = {row["row"]: float(row["begin_ms"]) for row in rows}
                if backend == "gloo":  # which tells the profiler of the end of a call after whoever waits for it
                    begin.setdefault("communication", begin["backward"])
                self.assertEqual(set(begin), set(overlap.ROWS), backend)
                # One bucket: its call begins in the backward pass.
                self.assertGreaterEqual(begin["communication"], begin["backward"], backend)

    def test_models_have_the_sizes_of_the_originals(self):
        import models
        for name, parameters in (("resnet50", 25_557_032), ("bert", 109_482_240)):
            made = models.MODELS[name][0]()
            self.assertEqual(sum(one.numel() for one in made.parameters()), parameters)

    def test_short_gaps_are_closed(self):
        self.assertEqual(overlap.merged([(5, 6), (0, 1), (1.1, 2), (1.5, 1.6)]), [(0, 2), (5, 6)])

    def test_usage(self):
        self.assertTrue(re.search("--trace", run("ddp.py", "--help")))


if __name__ == "__main__":
    unittest.main()
