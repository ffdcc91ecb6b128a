#!/usr/bin/env python3
"""Is libtutti the same whichever way people get it: the same sources, and no part left out by a definition?

Usage: whole_library_test.py SOURCE BUILD [--build] [GENERATOR ARGUMENTS...]
SOURCE: the repository; BUILD: a build tree, with which trees that are only configured here are compared.
--build: builds the libraries of all of them, too, and asks each for the rings of a recorded machine.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# How people and presets get libtutti, and by which folder and arguments CMake configures it.
WAYS = {
    "preset tsan": (".", ["-DCMAKE_BUILD_TYPE=Debug", "-DTUTTI_SANITIZE=thread", "-DTUTTI_BUILD_TOOLS=OFF",
                          "-DTUTTI_BUILD_PERF=OFF", "-DTUTTI_BUILD_EXAMPLES=OFF", "-DTUTTI_CUDA=OFF"]),
    "wheel": ("python", ["-DCMAKE_BUILD_TYPE=Release", "-DTUTTI_CUDA=OFF"]),
    "subproject": ("tests/whole", ["-DCMAKE_BUILD_TYPE=Release", "-DTUTTI_CUDA=OFF"]),
    "library alone": (".", ["-DCMAKE_BUILD_TYPE=Release", "-DTUTTI_BUILD_TOOLS=OFF", "-DTUTTI_BUILD_TESTS=OFF",
                            "-DTUTTI_BUILD_PERF=OFF", "-DTUTTI_BUILD_EXAMPLES=OFF", "-DTUTTI_CUDA=OFF"]),
}
# What may differ: CUDA's kernels are compiled where there is a compiler for them.
KERNELS = re.compile("kernels/")


def must(command, **more):
    ended = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False, **more)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit status {ended.returncode}\n{ended.stdout}")
    return ended.stdout


def inputs_of(build, target):
    """Without those that only have to be there before."""
    lines = must(["ninja", "-C", build, "-t", "query", target]).split("  outputs:")[0].splitlines()
    return [line.split()[-1] for line in lines if re.match(r" {4}(\| )?[^|\s]", line)]


def library_of(source, build):
    """Sources of libtutti, relative to the repository, each with the TUTTI_ definitions that it is compiled with."""
    targets = must(["ninja", "-C", build, "-t", "targets", "all"])
    (library,) = set(re.findall(r"^(\S*libtutti\.so\.[\d.]*\d): CXX_SHARED_LIBRARY", targets, re.M))
    objects = set()
    for one in inputs_of(build, library):
        objects |= set(inputs_of(build, one)) if one.endswith(".a") else {one}
    found = {}
    for unit in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(unit["file"])
        (compiled,) = re.findall(r" -o (\S+)", unit["command"])
        if compiled not in objects or not path.is_relative_to(source) or path.is_relative_to(build):
            continue
        of = str(path.relative_to(source))
        if not KERNELS.match(of):
            found[of] = sorted(set(re.findall(r"-D(TUTTI_\w+(?:=\S*)?)", unit["command"])))
    return found


def differences(name, expected, found):
    for of in sorted(expected.keys() | found.keys()):
        if of not in found:
            yield f"{name}: libtutti lacks {of}"
        elif of not in expected:
            yield f"{name}: libtutti has {of}, which the compared build lacks"
        elif expected[of] != found[of]:
            yield f"{name}: {of} is compiled with {found[of]}, not {expected[of]}"


def knows_a_machine(source, build):
    libraries = next(build.rglob("libtutti.so")).parent
    must([sys.executable, source / "tests/whole/explain.py", libraries, source])


def main():
    source, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    builds = "--build" in sys.argv
    arguments_of_all = [argument for argument in sys.argv[3:] if argument != "--build"]
    expected = library_of(source, build)
    assert any(of.startswith("src/topology/sources/") for of in expected), "this build itself has no detector"
    conditional = {of: words for of, words in expected.items() if any("_HAS_" in word for word in words)}
    if builds:
        knows_a_machine(source, build)
    wrong = [f"{of} depends on {words}" for of, words in conditional.items()]
    with tempfile.TemporaryDirectory() as name:
        for way, (folder, arguments) in WAYS.items():
            tree = pathlib.Path(name) / way.replace(" ", "-")
            must(["cmake", "-G", "Ninja", "-S", source / folder, "-B", tree, f"-DTUTTI_SOURCE={source}",
                  "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *arguments, *arguments_of_all])
            wrong += differences(way, expected, library_of(source, tree))
            if builds:
                must(["cmake", "--build", tree, "--target", "tutti"])
                knows_a_machine(source, tree)
    print("\n".join(wrong) or f"{len(expected)} sources in each of {len(WAYS) + 1} libraries")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
