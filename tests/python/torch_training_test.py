#!/usr/bin/env python3
"""Do several ranks train what one process trains, in each of torch's ways, and twice the same?"""
import importlib.util
import os
import sys
import unittest

if importlib.util.find_spec("torch") is None:
    print("skipped: this Python has no torch (Debian: python3-torch)")
    sys.exit(77)

import ranks as testing
import training
import torch
import torch.distributed as dist

import tutti.torch  # noqa: F401: registers the backend

torch.set_num_threads(1)
HAS_FSDP2 = tuple(int(number) for number in torch.__version__.split(".")[:2]) >= (2, 6)


def losses(path, task, way):
    dist.init_process_group("tutti", init_method=f"file://{path}", rank=int(os.environ["TUTTI_RANK"]),
                            world_size=int(os.environ["TUTTI_NRANKS"]))
    try:
        return training.train(task, way)
    finally:
        dist.destroy_process_group()


def run(ranks, task, way):
    path = f"/tmp/tutti-training-{os.getpid()}"
    try:
        return testing.start(ranks, losses, path, task, way)
    finally:
        if os.path.exists(path):
            os.unlink(path)


class Training(unittest.TestCase):
    alone = {}

    @classmethod
    def setUpClass(cls):
        cls.alone = {task: training.train(task, training.alone) for task in training.TASKS}

    def is_as_alone(self, way):
        for task, alone in self.alone.items():
            for ranks in (2, 4):
                with self.subTest(task=task, ranks=ranks):
                    trained = run(ranks, task, way)
                    self.assertEqual(trained, [trained[0]] * ranks, "ranks differ")
                    for one, expected in zip(trained[0], alone):
                        self.assertAlmostEqual(one, expected, delta=1e-9 * expected)
                    self.assertEqual(trained, run(ranks, task, way), "two runs differ")

    def test_one_process_learns(self):
        for task, alone in self.alone.items():
            self.assertLess(alone[-1], alone[0] / 4, task)

    def test_ddp(self):
        self.is_as_alone(training.ddp)

    def test_zero_redundancy_optimizer(self):
        self.is_as_alone(training.zero)

    def test_fsdp1(self):
        self.is_as_alone(training.fsdp1)

    @unittest.skipUnless(HAS_FSDP2, f"torch {torch.__version__} has no fully_shard, which came with 2.6")
    def test_fsdp2(self):
        self.is_as_alone(training.fsdp2)

    def test_pipeline(self):
        self.is_as_alone(training.pipeline)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
