#!/usr/bin/env python3
"""PyTorch's own tests of torch.distributed, which are part of torch, on the backend tutti or another one.

Usage: torch_suite.py BACKEND [unittest's arguments]     WORLD_SIZE: number of ranks, 3 without
"""
import importlib.util
import os
import sys
import tempfile
import types
import unittest

BACKEND = sys.argv[1] if len(sys.argv) > 1 else "tutti"
os.environ.update(BACKEND=BACKEND, INIT_METHOD="env://")
os.environ.setdefault("WORLD_SIZE", "3")

# torch's helpers import a package of literals that are expected; the distributed tests have none.
if importlib.util.find_spec("expecttest") is None:
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False)  # type: ignore[assignment]

folder = tempfile.TemporaryDirectory()
os.environ["TEMP_DIR"] = folder.name

import torch  # noqa: E402

import tutti.torch  # noqa: E402,F401: registers the backend
from torch.testing._internal import common_distributed  # noqa: E402

for feature in ("ddp", "subgroup"):
    common_distributed.DistTestCases.backend_feature[feature].add(BACKEND)
from torch.testing._internal.distributed import distributed_test  # noqa: E402


class TestOnBackend(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Each test forks its ranks: a tenth of the time of starting them anew."""

    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
