#!/usr/bin/env python3
"""What the built libraries show and keep: libtutti exports the C API alone, and no module holds state of its own.

Usage: tests/symbols.py exports LIBTUTTI HEADERS    every TUTTI_API function is exported, and nothing else
       tests/symbols.py state SOURCES ARCHIVE...    writable data only where the list below allows it
"""
import pathlib
import re
import subprocess
import sys

# What a process has once, and what a thread has once. Everything else is handed in.
STATE_ALLOWED = [
    r"tutti::real_system\(\)::",               # the operating system, as an object
    r"tutti::Process::get\(\)::",              # what a process has once
    r"tutti::(\(anonymous namespace\)::socket_table\(\)::sockets|own_sockets\(\)::known)$",  # all that a forked child finds
    r"tutti::\(anonymous namespace\)::stand_ins\(\)::all$",  # what holds 0, 1 and 2 while libraries open
    r"tutti::Group::current\(\)::group$",      # thread-local: the calls of a thread's group
    r"tutti::Group::depth_$",                  # thread-local: how deep a thread is in groups
    r"tutti::api::\w+(\[\S*\])?\(\)::(table|words)$",    # the C API's handles, and a thread's last error
]
# Sections that are written to while the program runs; .data.rel.ro is constant after relocation, and so is the compiler's
# reference to its unwinder.
WRITABLE = re.compile(r"^\.(data|bss|tdata|tbss)(?!\.rel\.ro|\.rel\.local\.DW\.ref)")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def exports(library, header):
    files = sorted(pathlib.Path(header).glob("*.h")) if pathlib.Path(header).is_dir() else [pathlib.Path(header)]
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    declared = set(re.findall(r"^TUTTI_API\b[^;(]*?\b(tutti\w+)\s*\(", text, re.M))
    exported = {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()}
    problems = [f"{library}: exports {name}, which {header} does not declare" for name in sorted(exported - declared)]
    problems += [f"{header}: declares {name}, which {library} does not export" for name in sorted(declared - exported)]
    return problems or [] if declared else [f"{header}: no TUTTI_API declaration found"]


def is_constant(name, unit, sources):
    """The compiler keeps some constants in writable sections; the source of the unit says what they are."""
    variable = re.escape(re.split(r"::", name)[-1].split("[")[0])
    for file in pathlib.Path(sources).rglob(unit.removesuffix(".o")):
        for declared in re.findall(rf"([^;{{}}()=]*)\b{variable}\s*[=;{{(\[]", file.read_text(encoding="utf-8")):
            # A constant pointer to something that changes is state.
            if all(re.search(r"\bconst(expr)?\b", part) for part in declared.split("*")):
                return True
    return False


def state(sources, *archives):
    problems, objects = [], 0
    for archive in archives:
        unit = archive
        for line in output("objdump", "--syms", "--demangle", archive).splitlines():
            if "file format" in line:
                unit, objects = pathlib.Path(line.split(":")[0]).name, objects + 1
            # value flags section <tab> size [visibility] name
            match = re.match(r"[0-9a-f]{8,} (.{7}) (\S+)\t[0-9a-f]{8,} +(?:\.hidden |0x\S+ )?(.+)$", line)
            if not match or "d" in match.group(1) or not WRITABLE.match(match.group(2)):
                continue
            name = match.group(3)
            allowed = any(re.search(pattern, name) for pattern in STATE_ALLOWED)
            if not allowed and not is_constant(name, unit, sources):
                problems.append(f"{pathlib.Path(archive).name}({unit}): {name} is state in {match.group(2)}: hand it in instead")
    return problems if objects else ["no object files seen"]


if __name__ == "__main__":
    found = {"exports": exports, "state": state}[sys.argv[1]](*sys.argv[2:])
    print("\n".join(found) if found else "as it should be")
    sys.exit(1 if found else 0)
