#!/usr/bin/env python3
"""Does what gloo passes of PyTorch's own tests pass on tutti with the newest torch of the package index? And our own tests?

Usage: newest_torch.py FOLDER FAKE_CUDA_LIBRARY      torch is installed in the folder, once
Exit status 77: it cannot be downloaded
"""
import os
import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
OWN = (["torch_test.py"], ["torch_cuda_test.py", *sys.argv[2:]], ["torch_training_test.py"], ["torch_benchmark_test.py"])
# What DDP's log says of the backend: under its own name, as a group called gloo has to be gloo's in C++.
BY_OWN_NAME = {"test_ddp_logging_data_cpu"}
# Of time: see torch_suite.py.
NOT_OURS = {"test_barrier_timeout_full_group", "test_barrier_timeout_group"}
SKIPPED, LIMIT_S, LEAST = 77, 3000, 60


def install(folder):
    """The interpreter of a virtual environment with torch."""
    python = folder / "bin/python"
    if subprocess.run([str(python), "-c", "import torch, numpy"], capture_output=True, check=False).returncode == 0 \
            if python.exists() else False:
        return python
    venv.create(folder, with_pip=True)
    got = subprocess.run([str(python), "-m", "pip", "install", "--quiet", "torch", "numpy"], capture_output=True, text=True,
                         timeout=LIMIT_S, check=False)
    if got.returncode != 0:
        print(f"skipped: torch cannot be installed: {(got.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        sys.exit(SKIPPED)
    return python


def passed(python, folder, backend, tests=()):
    """Those of the tests of torch's suite, all without, that this backend passes."""
    names = folder / f"passed-by-{backend}"
    names.unlink(missing_ok=True)
    ended = subprocess.run([str(python), str(HERE / "torch_suite.py"), backend, *(f"TestOnBackend.{test}" for test in tests)],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False,
                           env={**os.environ, "TUTTI_TEST_PASSED": str(names)})
    if ended.returncode != 0 or not names.exists():
        sys.exit(f"the suite ended with status {ended.returncode}\n{ended.stdout[-20000:]}")
    return set(names.read_text(encoding="utf-8").split()), ended.stdout


def main():
    folder = pathlib.Path(sys.argv[1])
    python = install(folder)
    print(subprocess.run([str(python), "-c", "import torch; print('torch', torch.__version__)"], capture_output=True, text=True,
                         check=True).stdout.strip(), flush=True)
    by_gloo, _ = passed(python, folder, "gloo")
    by_tutti, said = passed(python, folder, "in-place-of-gloo")
    by_name, said_by_name = passed(python, folder, "tutti", sorted(BY_OWN_NAME))
    by_tutti, said = by_tutti | by_name, said + said_by_name
    missing = by_gloo - by_tutti - NOT_OURS
    print(f"gloo passes {len(by_gloo)} tests, tutti {len(by_tutti)}", flush=True)
    if missing:
        sys.exit(f"{said[-20000:]}\ngloo passes these, tutti does not: {' '.join(sorted(missing))}")
    if len(by_tutti) < LEAST:
        sys.exit(f"only {len(by_tutti)} tests passed, of at least {LEAST}")
    for test, *arguments in OWN:
        if subprocess.run([str(python), str(HERE / test), *arguments], timeout=LIMIT_S, check=False).returncode != 0:
            sys.exit(f"{test} failed")


if __name__ == "__main__":
    main()
