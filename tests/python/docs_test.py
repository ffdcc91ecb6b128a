#!/usr/bin/env python3
"""Do the Python programs in the documentation run, as two ranks?"""
import importlib.util
import os
import pathlib
import re
import socket
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = ("docs/frameworks.md", "python/README.md", "python/tutti/__init__.py")
LIMIT_S = 300


def programs(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".py"):  # the indented lines of the first docstring
        lines = re.findall(r"^(?:    .*)?$", text.split('"""')[1], re.M)
        return ["\n".join(line[4:] for line in lines).strip()]
    return re.findall(r"```python\n(.*?)```", text, re.S)


def start(program, rank, port):
    environment = {**os.environ, "TUTTI_RANK": str(rank), "TUTTI_NRANKS": "2", "TUTTI_JOB_ID": f"docs-{os.getpid()}",
                   "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


class Programs(unittest.TestCase):
    def test_every_program_runs(self):
        for page in PAGES:
            found = programs(page)
            self.assertTrue(found, page)
            for number, program in enumerate(found):
                with self.subTest(page=page, number=number):
                    self.run_as_two_ranks(program)

    def run_as_two_ranks(self, program):
        if re.search(r"\bimport torch\b", program) and not importlib.util.find_spec("torch"):
            self.skipTest("torch is not installed")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = str(listener.getsockname()[1])
        started = []
        try:
            started += [start(program, rank, port) for rank in range(2)]
            for process in started:
                said, _ = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, 0, f"{program}\n{said}")
        finally:
            for process in started:
                with process:  # closes its pipe and waits
                    process.kill()
        if "print" in program:
            self.assertIn("3", said)  # the sum over two ranks


if __name__ == "__main__":
    unittest.main()
