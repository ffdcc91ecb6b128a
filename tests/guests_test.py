#!/usr/bin/env python3
"""Runs the perf programs and some tests by RDMA in guests with Soft-RoCE or soft-iWARP devices (see support/vm).

Usage: tests/guests_test.py BUILD PART        PART: one | two | three | loss | faults | siw     exit status 77: cannot be run here
Inside a guest the same script runs with --inside.
"""
import csv
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
PROGRAMS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter",
            "all_gather_v", "reduce_scatter_v", "all_to_all_v", "sendrecv")
# GoogleTest programs that know devices of the machine, and what of them to run.
TESTS = (("api_point_to_point_test", "*rdma*"), ("api_counts_test", "*rdma*"), ("api_exit_test", "*rdma*"),
         ("api_kill_test", "*/rdma"), ("api_stop_test", "*ByName/rdma"))
PORT = 4711
# What happens to rank 1 in mid-run, and within how many seconds rank 0 must say so; guests are slow.
FAULTS = {"killed": 5, "stopped": 12, "link_down": 12}


def missing():
    """Why guests cannot be booted here, or nothing."""
    for tool in ("qemu-system-x86_64", "busybox", "modprobe", "xz"):
        if shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            return f"{tool} is not installed; bash tools/setup tools/packages.guests installs it"
    if not any(pathlib.Path("/boot").glob("vmlinuz-*")):
        return "there is no kernel in /boot; bash tools/setup tools/packages.guests installs one"
    return ""


def has_siw():
    return any(pathlib.Path("/lib/modules").glob("*/updates/siw.ko"))


def run(name, command, settings, limit_s=120):
    """Runs a command of a guest; True, or prints what it said."""
    began = time.monotonic()
    try:
        done = subprocess.run(command, env={**os.environ, **settings}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit_s, check=False)
        status, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        status, said = "no end", (late.stdout or b"").decode(errors="replace")
    print(f"{name}: {'ok' if status == 0 else f'FAILED ({status})'}, {time.monotonic() - began:.1f} s", flush=True)
    if status != 0:
        print(said[-4000:], flush=True)
    return status == 0


def carried_right(name, path, wanted):
    """Whether all bytes of a table went by RDMA and none was wrong."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    others = {row["transport"] for row in rows} - set(wanted)
    wrong = [row for row in rows if row["wrong"] != "0"]
    if rows and not others and not wrong:
        return True
    print(f"{name}: FAILED: {len(rows)} rows, transports {others or 'as they should be'}, wrong: {wrong}", flush=True)
    return False


def perf(build, settings, arguments, programs=PROGRAMS):
    good = True
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder) / "table.csv"
            command = [build / "perf" / f"{program}_perf", "-n", "2", "-w", "1", "-c", "1", "--csv", table, *arguments]
            good = run(f"{program} {' '.join(arguments)}", command, settings) and good
            if table.exists():  # of rank 0
                good = carried_right(program, table, ("rdma", "N/A")) and good
    return good


def start_endless(build, settings):
    """A program that calls until something fails, once its channel goes by RDMA."""
    command = [build / "perf" / "all_reduce_perf", "-b", "64K", "-e", "64K", "-n", "1000000", "-w", "1", "-c", "0"]
    debug = {"TUTTI_DEBUG": "INFO", "TUTTI_DEBUG_SUBSYS": "NET", "TUTTI_SOCKET_IFNAME": "=eth0"}
    program = subprocess.Popen(command, env={**os.environ, **settings, **debug}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    said = []
    for line in program.stdout:
        said.append(line)
        if "by RDMA over" in line:
            return program, said
    print("".join(said), flush=True)
    return None, said


def fault(build, settings, name, number):
    """Rank 1 suffers it and tells rank 0 when, over the other network; rank 0 must end in time and name rank 1."""
    node = int(os.environ["VM_NODE"])
    port = PORT + 1 + number
    settings = settings | {"TUTTI_COMM_ID": f"{os.environ['VM_IPS'].split()[0]}:{PORT + 20 + number}"}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as news:
        if node == 0:
            news.bind(("10.77.1.1", port))
            news.settimeout(120)
        program, said = start_endless(build, settings)
        if program is None:
            return False
        if node == 1:
            if name == "link_down":
                subprocess.run(["ip", "link", "set", "eth0", "down"], check=True)
            else:
                program.send_signal(signal.SIGKILL if name == "killed" else signal.SIGSTOP)
            news.sendto(b"now", ("10.77.1.1", port))
            if name == "link_down":
                rest, _ = program.communicate(timeout=120)
                return program.returncode != 0 and "rank 0" in rest
            if name == "stopped":
                news.recvfrom(1)  # until rank 0 has had its time
                program.kill()
            return True
        _, other = news.recvfrom(16)
        began = time.monotonic()
        rest, _ = program.communicate(timeout=120)
        took = time.monotonic() - began
        news.sendto(b"!", other)
        good = program.returncode != 0 and "rank 1" in rest and took < FAULTS[name]
        print(f"{name}: {'ok' if good else 'FAILED'}, told after {took:.1f} s, exit status {program.returncode}", flush=True)
        if not good:
            print("".join(said) + rest, flush=True)
        return good


def known_tests(build, settings, names):
    good = True
    for test, chosen in TESTS:
        if test in names:
            good = run(test, [build / "tests" / test, f"--gtest_filter={chosen}"],
                       {"TUTTI_TEST_RDMA": "devices", "TUTTI_TUNE": "off",
                        "TUTTI_IB_HCA": settings["TUTTI_IB_HCA"]}, 200) and good
    return good


def inside(build, part):
    settings = {"TUTTI_TUNE": "off", "TUTTI_DEBUG": "WARN", "TUTTI_TRANSPORT": "rdma",
                "TUTTI_IB_HCA": "=siw0" if part == "siw" else "=rxe0"}
    node, nodes = int(os.environ["VM_NODE"]), int(os.environ["VM_NODES"])
    if nodes > 1:
        settings |= {"TUTTI_TRANSPORT": "auto", "TUTTI_RANK": str(node), "TUTTI_NRANKS": str(nodes),
                     "TUTTI_COMM_ID": f"{os.environ['VM_IPS'].split()[0]}:{PORT}",
                     "TUTTI_COMM_SECRET": "a secret of guests that live for a minute"}
    if part == "loss":
        subprocess.run(["tc", "qdisc", "add", "dev", "eth0", "root", "netem", "loss", "0.1%"], check=True)
        return perf(build, settings, ["-b", "8", "-e", "64K", "-f", "90"], PROGRAMS[:4])
    if part == "siw":
        good = perf(build, settings, ["--procs", "3", "-b", "8", "-e", "700K", "-f", "30"])
        return known_tests(build, settings, ("api_exit_test",)) and good
    if part == "faults":
        return all([fault(build, settings, name, number) for number, name in enumerate(FAULTS)])
    if nodes > 1:
        few = PROGRAMS if part == "three" else PROGRAMS[:6]
        return perf(build, settings, ["-b", "8", "-e", "64K", "-f", "90"], few)
    good = perf(build, settings, ["--procs", "3", "-b", "8", "-e", "64K", "-f", "90"])
    good = perf(build, settings | {"TUTTI_IB_QPS_PER_CONNECTION": "3"},
                ["--procs", "2", "-b", "3", "-e", "700K", "-f", "300", "-d", "int32"], PROGRAMS[:2]) and good
    return known_tests(build, settings, [test for test, _ in TESTS]) and good


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--inside":
        return 0 if inside(pathlib.Path(sys.argv[2]), sys.argv[3]) else 1
    if len(sys.argv) != 3 or sys.argv[1] == "--help":
        print(__doc__)
        return 0 if "--help" in sys.argv else 2
    if why := missing():
        print(f"skipped: {why}")
        return SKIPPED
    if sys.argv[2] == "siw" and not has_siw():
        print("skipped: the kernel in /boot has no soft-iWARP; bash tests/support/vm/build-siw adds it")
        return SKIPPED
    build, part = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    nodes = {"one": 1, "two": 2, "three": 3, "loss": 2, "faults": 2, "siw": 1}[part]
    command = [HERE / "support" / "vm" / "vm-run", "--nodes", str(nodes), "--timeout", "600", "--",
               sys.executable, HERE / "guests_test.py", "--inside", build, part]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
