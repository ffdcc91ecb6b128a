#!/usr/bin/env python3
"""PyTorch's own tests of torch.distributed, which are part of torch, on the backend tutti or another one.

Usage: torch_suite.py BACKEND [unittest's arguments]     WORLD_SIZE: number of ranks, 3 without
BACKEND in-place-of-gloo: tutti under gloo's name, for the many tests that are for gloo alone.
TUTTI_TEST_TIMED=1: also tests that measure time. TUTTI_TEST_PASSED: a file for the names of those that passed; then
no test has to. Exit status 77: this Python has no torch
"""
import importlib.util
import os
import sys
import tempfile
import types
import unittest

import torch_1_13

if importlib.util.find_spec("torch") is None:
    print("skipped: this Python has no torch (Debian: python3-torch)")
    sys.exit(77)
IN_PLACE = sys.argv[1:2] == ["in-place-of-gloo"]
BACKEND = "gloo" if IN_PLACE else sys.argv[1]
os.environ.update(BACKEND=BACKEND, INIT_METHOD="env://")
os.environ.setdefault("WORLD_SIZE", "3")

# torch's helpers import a package of literals that are expected; the distributed tests have none.
if importlib.util.find_spec("expecttest") is None:
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False)  # type: ignore[assignment]

folder = tempfile.TemporaryDirectory()
os.environ["TEMP_DIR"] = folder.name

torch_1_13.repair_imports()
import torch  # noqa: E402

import tutti.torch  # noqa: E402,F401: registers the backend
from torch.testing._internal import common_distributed  # noqa: E402



class InPlaceOfGloo(tutti.torch.ProcessGroupTutti):
    """Made as gloo's groups are, with what newer versions of torch add to that."""

    def __init__(self, store, rank, size, timeout, **others):
        super().__init__(store, rank, size, timeout)
        self.options = types.SimpleNamespace()

    _device_types = [torch.device("cpu")]  # dist.monitored_barrier looks here


if IN_PLACE:
    c10d = torch.distributed.distributed_c10d
    c10d.ProcessGroupGloo = InPlaceOfGloo
    # What checks calls at TORCH_DISTRIBUTED_DEBUG=DETAIL is made of gloo's own group.
    c10d._create_process_group_wrapper = lambda wrapped_pg, **others: wrapped_pg
for feature in ("ddp", "subgroup"):
    common_distributed.DistTestCases.backend_feature[feature].add(BACKEND)
from torch.testing._internal.distributed import distributed_test  # noqa: E402

if IN_PLACE:  # the names and shapes that gloo's groups, written in C++, give to the profiler
    distributed_test.PROFILING_SUPPORTED_BACKENDS.remove("gloo")
    distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.remove("gloo")


class TestOnBackend(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Each test forks its ranks: a tenth of the time of starting them anew."""

    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


left_out = []
if IN_PLACE:
    left_out.append("test_ddp_logging_data_cpu")  # of the backend's own name: passes under that
if "TUTTI_TEST_TIMED" not in os.environ:
    # They want an error within a tenth of a second of their limit, which a loaded machine cannot promise.
    left_out += ["test_barrier_timeout_full_group", "test_barrier_timeout_group"]
for name in left_out:
    setattr(TestOnBackend, name, None)


class Passed(unittest.TextTestResult):
    names = []

    def addSuccess(self, test):  # noqa: N802: unittest's name
        super().addSuccess(test)
        self.names.append(test._testMethodName)


# Tests that must run; torch skips those of backends it does not know of, and newer ones have fewer for CPUs.
LEAST = 60 if not IN_PLACE else 100 if torch.__version__.startswith("1.") else 80


if __name__ == "__main__":
    said = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False,
                         testRunner=unittest.TextTestRunner(resultclass=Passed)).result
    if "TUTTI_TEST_PASSED" in os.environ:
        with open(os.environ["TUTTI_TEST_PASSED"], "w", encoding="utf-8") as file:
            file.write("\n".join(Passed.names))
        sys.exit(0)
    ran = said.testsRun - len(said.skipped)
    if len(sys.argv) == 2 and ran < LEAST:
        sys.exit(f"only {ran} tests ran, of at least {LEAST}")
    sys.exit(not said.wasSuccessful())
