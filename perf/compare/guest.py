"""What compare --net rdma adds: its contenders, and the guest with a Soft-RoCE device (tests/support/vm) it runs in.

Elements are integers, because guests without hardware virtualisation emulate floating point, at a sixtieth of the speed.
"""
import os
import pathlib
import subprocess
import sys

VM_RUN = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "support" / "vm" / "vm-run"
DEVICE = "rxe0"
COLLECTIVES, SIZES, ROUNDS, MS = ["all_reduce"], "8,64K,1M", 7, 300
FEWEST_PACKETS = 1000  # of a contender's run, which calls more often than that

OPENMPI = ["mpirun.openmpi", "--bind-to", "none", "--oversubscribe", "--mca", "btl", "self", "--mca", "pml", "ucx",
           "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "--mca", "osc", "^ucx"]
OURS = {"COMPARE_MALLOC": "1", "TUTTI_TUNE": "off"}
# UCX drops each datagram of Soft-RoCE when it checks the address that the datagram was sent to. Reliable connections
# (rc) begin with datagrams too.
UCX = {"UCX_NET_DEVICES": "{device}:1", "UCX_UD_VERBS_ETH_DGID_CHECK": "n"}

# name → (program, launcher, environment, what it is), as in compare
CONTENDERS = {
    "tutti": ("tutti", None, {**OURS, "TUTTI_TRANSPORT": "rdma"}, "ordinary memory, RDMA"),
    "tutti-socket": ("tutti", None, {**OURS, "TUTTI_TRANSPORT": "socket"}, "ordinary memory, sockets"),
    "ompi-ucx-rc": ("openmpi", OPENMPI, {**UCX, "UCX_TLS": "rc,self"}, "Open MPI, UCX over reliable connections"),
    "ompi-ucx-ud": ("openmpi", OPENMPI, {**UCX, "UCX_TLS": "ud,self"}, "Open MPI, UCX over datagrams"),
    "raw": ("perftest", None, {"COMPARE_RAW": "perftest"}, "ib_write_lat and ib_write_bw -b"),
    "ucx-rc": ("ucx_perftest", None, {**UCX, "UCX_TLS": "rc,self", "COMPARE_RAW": "ucx"}, "ucx_perftest tag_lat and tag_bw"),
}
WITHOUT_DEVICE = ("tutti-socket",)


def boot(written):
    """Runs the same command in a guest, which may write the files given. Its exit status."""
    command = [VM_RUN, "--timeout", "3000"]
    for folder in {path.resolve().parent for path in written if path}:
        command += ["--rw", folder]
    return subprocess.run([*command, "--", sys.executable, *sys.argv], check=False).returncode


def is_guest():
    return "VM_NODE" in os.environ


def let_the_device_go_first():
    """Ranks that poll would keep the kernel's threads, which are the device, waiting for a tick of 4 ms."""
    pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled").write_text("0", encoding="utf-8")
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def packets():
    """How many the device has sent."""
    path = pathlib.Path("/sys/class/infiniband") / DEVICE / "ports/1/hw_counters/sent_pkts"
    return int(path.read_text(encoding="utf-8"))


def went_by_device(name, sent):
    """Whether a run of a contender that sent so many packets was what its name says; else says why it does not count."""
    if (sent < FEWEST_PACKETS) == (name in WITHOUT_DEVICE):
        return True
    print(f"compare: {name} is left out of a round: {DEVICE} sent {sent} packets", file=sys.stderr)
    return False
