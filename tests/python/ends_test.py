#!/usr/bin/env python3
"""How Python programs end: an ordinary end without close says nothing and fails nothing, wherever the communicator is held;
an exception fails the other ranks; a forked child leaves its parent's communicators alone."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import uuid

LIMIT_S = 300  # against hangs alone

START = """
import atexit, builtins, functools, gc, multiprocessing, os, pathlib, subprocess, sys, threading, types
{before}
import numpy, tutti
def begin():
    comm = tutti.Communicator.from_environment()
    comm.all_reduce(x)
    assert x[0] == 2
    return comm
def again(comm, calls=20):
    for _ in range(calls):
        x[:] = 1
        comm.all_reduce(x)
        assert x[0] == 2
x = numpy.ones(1000)
"""

# What holds the communicator when the program ends.
ORDINARY = {
    "a global": "comm = begin()",
    "a function that has returned": "(lambda comm: again(comm))(begin())",
    "a function that exits": "def main():\n    comm = begin()\n    sys.exit(0)\nmain()",
    "an attribute of a class": "class Holder: comm = begin()",
    "a builtin": "builtins.comm = begin()",
    "a module": "sys.modules['kept'] = types.ModuleType('kept'); sys.modules['kept'].comm = begin()",
    "a cycle": "class Holder: pass\nheld = Holder(); held.me, held.comm = held, begin()",
    "a cycle that was collected": "class Holder: pass\nheld = Holder(); held.me, held.comm = held, begin()\ndel held; gc.collect()",
    "a thread that has ended": "box = [begin()]\nthread = threading.Thread(target=box.clear); thread.start(); thread.join()",
    "thread-local storage": "local = threading.local(); local.comm = begin()",
    "a cache": "begin = functools.lru_cache(begin); begin()",
    "a stream": "comm, stream = begin(), tutti.Stream()\ncomm.all_reduce(x, stream=stream); stream.synchronize()",
    "a stream with calls": "comm, stream = begin(), tutti.Stream()\ncomm.all_reduce(x, stream=stream); del comm; stream.synchronize()",
    "an operator": "comm = begin()\nop = comm.create_operator(lambda a, b: None, 'float64')",
    "requests": "comm = begin()\nif comm.rank: r = comm.isend(numpy.ones(3), 0); r.wait()\nelse: comm.irecv(x, 1).wait()",
    "a registration": "comm = begin(); kept = comm.register(x)",
    "an exit handler of before": "comm = begin()",
    "several": "comm = begin(); part = comm.split(0); other = tutti.Communicator.init_all(1)",
    "a forked child": "comm = begin(); stream = tutti.Stream(); r = comm.irecv(x, 1 - comm.rank)\n"
                      "if os.fork() == 0: sys.exit(0)\nassert os.wait()[1] == 0\nr.cancel(); r.wait(); again(comm)",
    "a pool's children": "comm = begin()\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n"
                         "    for _ in range(5): again(comm); assert pool.map(abs, range(4)) == [0, 1, 2, 3]\nagain(comm)",
    "children of other programs": "comm = begin()\nfor _ in range(3): subprocess.run(['true'], close_fds=False); again(comm)",
}
BEFORE = {"an exit handler of before": "atexit.register(lambda: again(comm))"}
# Dropped while the program runs, of which Python warns in its development mode.
DROPPED = ("a function that has returned", "a function that exits", "a cycle that was collected", "a thread that has ended",
           "a stream with calls")
WARNING_LINE = "  warnings.warn(words, ResourceWarning, source=self)  # last: where warnings are errors, it raises\n"

# Rank 1 ends when rank 0 has long ended.
EARLY = """
comm = begin()
first = numpy.array([os.getpid()])
comm.broadcast(first)
{then}
while comm.rank != 0 and os.path.exists(f"/proc/{{first[0]}}"):
    os.sched_yield()
"""

BLOCKED = """
if comm.rank == 0:
    thread = threading.Thread(target=lambda: comm.all_reduce(x), daemon=True)
    thread.start()
    while pathlib.Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        os.sched_yield()
"""


def ends_of(programs):
    """(exit status, standard output, standard error) of each rank, which runs programs[rank]."""
    job, started = f"test-{uuid.uuid4()}", []
    for rank, program in enumerate(programs):
        environment = dict(os.environ, TUTTI_RANK=str(rank), TUTTI_NRANKS=str(len(programs)), TUTTI_JOB_ID=job)
        files = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        process = subprocess.Popen([sys.executable, "-X", "dev", "-c", program], env=environment, stdout=files[0],
                                   stderr=files[1])
        started.append((process, files))
    try:
        ends = []
        for process, files in started:
            status = process.wait(LIMIT_S)
            for file in files:
                file.seek(0)
            ends.append((status, *(file.read().decode() for file in files)))
        return ends
    finally:
        for process, files in started:
            process.kill()
            process.wait()
            for file in files:
                file.close()


class Ends(unittest.TestCase):
    def test_ordinary_ends_say_nothing(self):
        for name, what in ORDINARY.items():
            program = START.format(before=BEFORE.get(name, "")) + what
            with self.subTest(name):
                for status, out, error in ends_of([program] * 2):
                    self.assertEqual(status, 0, error)
                    self.assertEqual(out, "")
                    if name in DROPPED:
                        self.assertIn("was not destroyed", error)
                        error = re.sub("[^\n]*ResourceWarning[^\n]*\n", "", error.replace(WARNING_LINE, ""))
                    self.assertEqual(error, "")

    def test_a_rank_that_ends_early_fails_nothing(self):
        program = START.format(before="") + EARLY.format(then="")
        for status, out, error in ends_of([program] * 2):
            self.assertEqual((status, out, error), (0, "", ""))

    def test_a_blocked_thread_holds_nothing_up(self):
        (first, _, words), (second, _, more) = ends_of([START.format(before="") + EARLY.format(then=BLOCKED)] * 2)
        self.assertEqual((first, second), (0, 0), words + more)
        self.assertNotIn("Traceback", words + more)

    def test_an_exception_fails_the_others(self):
        program = START.format(before="") + "comm = begin()\nif comm.rank == 0: raise ValueError('of the program')\nagain(comm)"
        (first, _, words), (second, _, reason) = ends_of([program] * 2)
        self.assertEqual((first, second), (1, 1))
        self.assertIn("ValueError: of the program", words)
        self.assertRegex(reason, r"RemoteError: .*aborted the communicator \[peer 0\]")
        self.assertNotIn("Exception ignored", words + reason)


if __name__ == "__main__":
    unittest.main()
