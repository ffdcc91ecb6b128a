#!/usr/bin/env python3
"""What the CUDA compiler made of the kernels: registers alone, 16-byte accesses, the memory orders that were asked for.

Usage: tests/kernel_code.py LOGS NVCC ARGUMENT...
LOGS: the folder where the build left what ptxas said (*.fatbin.log). NVCC and its arguments: how to compile kernels/entry.cu; -ptx and
the choice of body and types are added.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8_e4m3", "float8_e5m2"]
BODIES = ["run_plan", "two_shot", "one_shot"]
THREADS, REGISTERS = 512, 65536

found = []


def report(what):
    found.append(what)


def check_logs(folder):
    """No stack, no spills, few enough registers, in every kernel for every processor."""
    entry = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
                       r"(\d+) bytes spill loads.*?Used (\d+) registers", re.S)
    seen = {}
    for log in sorted(folder.glob("*.fatbin.log")):
        for name, arch, stack, stores, loads, registers in entry.findall(log.read_text()):
            seen.setdefault(arch, set()).add(name)
            if int(stack) or int(stores) or int(loads):
                report(f"{name} for {arch}: {stack} bytes of stack, {stores} and {loads} bytes spilled")
            if int(registers) * THREADS > REGISTERS:
                report(f"{name} for {arch}: {registers} registers are too many for {THREADS} threads")
    wanted = {f"tutti_{body}_{kind}" for body in BODIES for kind in TYPES}
    if not seen:
        report(f"nothing about kernels in {folder}")
    for arch, names in seen.items():
        if names != wanted:
            report(f"{arch}: missing {sorted(wanted - names)}, unknown {sorted(names - wanted)}")
    return sum(len(names) for names in seen.values())


def entries(ptx):
    """Name and text of each kernel."""
    parts = re.split(r"\.visible \.entry (\w+)", ptx)
    return zip(parts[1::2], parts[2::2])


def check_code(name, code):
    """16-byte accesses and memory orders of one kernel's PTX."""
    wide_loads = code.count("ld.global.L1::no_allocate.v2.b64")
    wide_stores = code.count("st.global.v2.b64")
    if "one_shot" in name:
        if not code.count("ld.relaxed.sys.global.v2.b64") or not code.count("st.relaxed.sys.global.v2.b64"):
            report(f"{name}: words with flags are not two halves of 8 bytes")
    elif wide_loads < 4 or wide_stores < 4:
        report(f"{name}: {wide_loads} loads and {wide_stores} stores of 16 bytes")
    for order in ("ld.acquire.sys.global.u64", "st.release.sys.global.u64", "ld.relaxed.sys.global.u32"):
        if order not in code:
            report(f"{name}: no {order}")
    for pattern, what in ((r"\.local\b", "local memory"), (r"ld\.global\.nc", "loads as if nobody wrote"), (r"\bfma\.", "contraction"),
                          (r"\bcall\b", "a call")):
        if re.search(pattern, code):
            report(f"{name}: {what}")
    return 1


def main():
    folder, nvcc = pathlib.Path(sys.argv[1]), sys.argv[2:]
    kernels = check_logs(folder)
    looked = 0
    with tempfile.TemporaryDirectory() as scratch:
        for body, group in (("run_plan", "floating"), ("two_shot", "small"), ("one_shot", "integer")):
            out = pathlib.Path(scratch) / f"{body}.ptx"
            subprocess.run(nvcc + [f"-DTUTTI_BODY={body}", f"-DTUTTI_GROUP={group}", "-ptx", "-o", str(out)], check=True)
            for name, code in entries(out.read_text()):
                looked += check_code(name, code)
    if looked == 0:
        report("no PTX to look at")
    print("\n".join(found) if found else f"{kernels} kernels, {looked} of them as PTX: nothing wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
