#!/usr/bin/env python3
"""Runs the perf programs and some tests by RDMA in guests with Soft-RoCE or soft-iWARP devices (see support/vm).

Usage: tests/guests_test.py BUILD PART        PART: one | two | three | loss | faults | product | siw
Exit status 77: cannot be run here.
Inside a guest the same script runs with --inside.
"""
import csv
import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
PROGRAMS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter",
            "all_gather_v", "reduce_scatter_v", "all_to_all_v", "sendrecv")
# GoogleTest programs that know devices of the machine, and what of them to run.
TESTS = (("api_point_to_point_test", "*rdma*"), ("api_counts_test", "*rdma*"), ("api_exit_test", "*rdma*"),
         ("api_kill_test", "*/rdma"), ("api_stop_test", "*ByName/rdma"))
PORT = 4711
# An emulated guest does not know how loaded its machine is.
PATIENCE_OF_TESTS = "5"
PARTS = {"one": 1, "two": 2, "three": 3, "loss": 2, "faults": 2, "product": 1, "siw": 1}  # guests
# What happens in mid-run, to which rank, and within how many seconds the other must say so; guests are slow. The last
# one ends the guest.
FAULTS = {"killed": (1, 5), "stopped": (1, 12), "link_down": (1, 12), "other_link_down": (0, 12), "reset": (1, 12)}
OUTAGE_S = 0.4
# Packets are repeated every 1.1 s for 7.5 s, so that an outage which the guest's machine makes longer is survived too.
PATIENCE = {"TUTTI_IB_TIMEOUT": "18", "TUTTI_SILENCE_MS": "12000"}
DEVICE = pathlib.Path("/sys/class/infiniband/rxe0/ports/1")


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


def run(name, command, settings, limit_s=300):
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


def carried_right(name, path):
    """Whether all bytes of a table went by RDMA and none was wrong."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    others = {row["transport"] for row in rows} - {"rdma"}
    wrong = [row for row in rows if row["wrong"] != "0"]
    if rows and not others and not wrong:
        return True
    print(f"{name}: FAILED: {len(rows)} rows, transports {others or 'as they should be'}, wrong: {wrong}", flush=True)
    return False


def perf(build, settings, arguments, programs=PROGRAMS, limit_s=300):
    good = True
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder) / "table.csv"
            command = [build / "perf" / f"{program}_perf", "-n", "2", "-w", "1", "-c", "1", "--csv", table, *arguments]
            good = run(f"{program} {' '.join(arguments)}", command, settings, limit_s) and good
            if table.exists():  # of rank 0
                good = carried_right(program, table) and good
    return good


def counts():
    """What this guest has sent and received, by name."""
    files = {name: DEVICE / "hw_counters" / name for name in ("sent_pkts", "rcvd_pkts", "rdma_recvs", "completer_retry_err")}
    files["sent_bytes"] = pathlib.Path("/sys/class/net/eth0/statistics/tx_bytes")
    return {name: int(path.read_text(encoding="ascii")) for name, path in files.items()}


def sends_what_it_must(build, settings):
    """Of an all-reduce of two ranks each sends its size once. A small one is one packet and one acknowledgement."""
    good = True
    for size, calls, name, least, most in ((1 << 20, 100, "sent_bytes", 1 << 20, 1.06 * (1 << 20)),
                                           (8, 10000, "sent_pkts", 1.9, 2.2)):
        command = [build / "perf" / "all_reduce_perf", "-b", str(size), "-e", str(size), "-d", "int32", "-w", "0",
                   "-c", "0", "--no-inplace", "-n", str(calls)]  # so many that there is one batch
        before = counts()
        ran = run(f"{calls} all-reduces of {size} B", command, settings)
        sent = {key: (value - before[key]) / calls for key, value in counts().items()}
        right = ran and least <= sent[name] <= most
        print(f"each: {sent}: {'ok' if right else f'FAILED: {name} not in {least} to {most}'}", flush=True)
        good = good and right
    return good


def start(build, settings, *arguments):
    """The program, once its channel goes by RDMA, and what it said until then."""
    command = [build / "perf" / "all_reduce_perf", "-b", "64K", "-e", "64K", "-d", "int32", "-w", "1", *arguments]
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


def with_own_port(settings, number):
    return settings | {"TUTTI_COMM_ID": f"{os.environ['VM_IPS'].split()[0]}:{PORT + 20 + number}"}


def await_packets(more):
    until, before = time.monotonic() + 30, counts()["rcvd_pkts"]
    while counts()["rcvd_pkts"] < before + more and time.monotonic() < until:
        time.sleep(0.01)


def link(state):
    subprocess.run(["ip", "link", "set", "eth0", state], check=True)
    until = time.monotonic() + 10
    while state == "up" and "ACTIVE" not in (DEVICE / "state").read_text(encoding="ascii") and time.monotonic() < until:
        time.sleep(0.05)


def await_relays():
    """Until the processes that carry this one's output out of the guest have read all of it."""
    until = time.monotonic() + 3
    while any(fcntl.ioctl(out, termios.FIONREAD, bytes(4)) != bytes(4) for out in (1, 2)) and time.monotonic() < until:
        time.sleep(0.01)


def reset(good):
    """As if somebody pressed the button. The status is what vm-run takes for that of the command."""
    await_relays()
    next(pathlib.Path("/dev").glob("vport*p3")).write_text(f"exit {0 if good else 1}\n", encoding="ascii")
    pathlib.Path("/proc/sysrq-trigger").write_text("b", encoding="ascii")


def suffer(name, program, news, witness, good):
    """Makes it happen and tells the witness when, over the other network. Whether this rank's program did as it should."""
    if name == "killed":
        program.kill()
    elif name == "stopped":
        program.send_signal(signal.SIGSTOP)
    elif name.endswith("link_down"):
        link("down")
    news.sendto(b"now", witness)
    if name == "reset":
        reset(good)
    if name == "stopped":
        news.recvfrom(1)  # until the witness has had its time
        program.kill()
    rest, _ = program.communicate(timeout=300)
    if not name.endswith("link_down"):
        return True
    news.recvfrom(1)
    link("up")
    if program.returncode != 0 and f"rank {1 - int(os.environ['VM_NODE'])}" in rest:
        return True
    print(f"{name}: FAILED where it happened, exit status {program.returncode}\n{rest}", flush=True)
    return False


def fault(build, settings, number, name, good):
    """The rank that suffers it tells the other one when; that one must end in time and name the first."""
    node = int(os.environ["VM_NODE"])
    sufferer, limit_s = FAULTS[name]
    witness = (f"10.77.1.{2 - sufferer}", PORT + 1 + number)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as news:
        news.settimeout(120)
        if node != sufferer:
            news.bind(witness)
        program, said = start(build, with_own_port(settings, number), "-n", "1000000", "-c", "0")
        if program is None:
            return False
        await_packets(100)
        if node == sufferer:
            return suffer(name, program, news, witness, good)
        _, other = news.recvfrom(16)
        began = time.monotonic()
        rest, _ = program.communicate(timeout=300)
        took = time.monotonic() - began
        news.sendto(b"!", other)
        right = program.returncode != 0 and f"rank {sufferer}" in rest and took < limit_s
        print(f"{name}: {'ok' if right else 'FAILED'}, told after {took:.1f} s, exit status {program.returncode}", flush=True)
        if not right:
            print("".join(said) + rest, flush=True)
        return right


def await_silence():
    """Until nothing arrives any more. The kernel may have to load modules before it loses packets."""
    until, before = time.monotonic() + 10, -1
    while counts()["rcvd_pkts"] != before and time.monotonic() < until:
        before = counts()["rcvd_pkts"]
        time.sleep(0.2)


def lose_everything(tc, time_s):
    """Both ways; how many packets were lost. Not by taking eth0 down: without a route Soft-RoCE fails at once, and repeats nothing.

    `tc` runs already and obeys all the commands: to start a process takes an emulated guest longer than the outage lasts."""
    tc.stdin.write("qdisc add dev eth0 clsact\n"
                   "filter add dev eth0 ingress matchall action drop\n"
                   "qdisc add dev eth0 root netem loss 100%\n")
    tc.stdin.flush()
    await_silence()
    time.sleep(time_s)
    said, _ = tc.communicate("qdisc show dev eth0\n"
                             "filter show dev eth0 ingress\n"
                             "qdisc del dev eth0 clsact\n"
                             "qdisc del dev eth0 root\n")
    if tc.returncode != 0:
        raise subprocess.CalledProcessError(tc.returncode, "tc", said)
    return sum(int(number) for number in re.findall(r"dropped (\d+)", said))


def outage(build, settings):
    """No packet of rank 1 arrives for a moment, while each result is checked; nobody may notice."""
    with subprocess.Popen(["tc", "-s", "-batch", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tc:
        program, said = start(build, with_own_port(settings | PATIENCE, len(FAULTS)), "-n", "1", "-c", "800", "--no-inplace")
        if program is None:
            return False
        survived, lost = True, "unknown how many"  # where nothing is lost
        if os.environ["VM_NODE"] == "1":
            await_packets(500)
            lost = lose_everything(tc, OUTAGE_S)
            survived = program.poll() is None and lost > 0
        rest, _ = program.communicate(timeout=300)
    good = survived and program.returncode == 0
    print(f"outage: {'ok' if good else 'FAILED'}, exit status {program.returncode}, {'' if survived else 'not '}in mid-run, "
          f"{lost} packets lost, {counts()['completer_retry_err']} repeats", flush=True)
    if not good:
        print("".join(said) + rest, flush=True)
    return good


def faults(build, settings):
    good = outage(build, settings)
    for number, name in enumerate(FAULTS):
        good = fault(build, settings, number, name, good) and good
    return good


def product(build, settings):
    """Every type, operator and root with two to four ranks; few sizes, since floating point is emulated."""
    return all([perf(build, settings, ["--procs", str(ranks), "-d", "all", "-o", "all", "-r", "all", "-b", "40",
                                       "-e", "10K", "-f", "16", "-T", "600"], limit_s=600) for ranks in (2, 3, 4)])


def known_tests(build, settings, names):
    good = True
    for test, chosen in TESTS:
        if test in names:
            good = run(test, [build / "tests" / test, f"--gtest_filter={chosen}"],
                       {"TUTTI_TEST_RDMA": "devices", "TUTTI_TUNE": "off", "TUTTI_TEST_PATIENCE": PATIENCE_OF_TESTS,
                        "TUTTI_IB_HCA": settings["TUTTI_IB_HCA"]}, 600) and good
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
        return faults(build, settings)
    if part == "product":
        return product(build, settings)
    if nodes > 1:
        few = PROGRAMS if part == "three" else PROGRAMS[:6]
        good = perf(build, settings, ["-b", "8", "-e", "64K", "-f", "90"], few)
        return (part != "two" or sends_what_it_must(build, settings)) and good
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
    command = [HERE / "support" / "vm" / "vm-run", "--nodes", str(PARTS[part]),
               "--timeout", "3000" if part == "product" else "1500", "--",
               sys.executable, HERE / "guests_test.py", "--inside", build, part]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
