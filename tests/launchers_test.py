#!/usr/bin/env python3
"""Starts ranks by a real launcher: a program that makes two communicators from its environment, and a perf program, unchanged.

Usage: launchers_test.py LAUNCHER ENV_RANK PERF      LAUNCHER: plain torchrun mpirun hydra srun
Exit status 77: the launcher is not installed, or cannot be used here; the reason is said.
"""
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
LIMIT_S = 300


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def find(*programs):
    """The first that is there."""
    for program in programs:
        if path := shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            return path
    skip(f"{programs[0]} is not installed")


def clean_environment():
    """What is left of one launcher must not be taken for another's."""
    prefixes = ("TUTTI_RANK", "TUTTI_NRANKS", "OMPI_", "PMIX_", "PMI_", "SLURM_", "MPI_LOCAL")
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(prefixes) and k not in names}
    return environment | {"TUTTI_DEBUG": "INFO", "TUTTI_TUNE": "off"}


def free_ports(count):
    """That many in a row that nobody has at this moment; below those that connections get."""
    for first in range(21000 + os.getpid() % 8000, 32000):
        listeners = []
        try:
            for port in range(first, first + count):
                listeners.append(socket.create_server(("127.0.0.1", port)))
            return first
        except OSError:
            continue
        finally:
            for listener in listeners:
                listener.close()
    skip("no free ports")


def adopt_orphans():
    """Daemons make children that outlive them; from now on these are ours, to be ended."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def own_children():
    return [int(child) for child in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def run(command, environment):
    """Output of a command that has to succeed."""
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexit status {ended.returncode}\n{ended.stdout}")
    return ended.stdout


def run_together(command, environments):
    """The same for several processes that need each other."""
    started = [subprocess.Popen(command, env=one, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for one in environments]
    output = ""
    for process in started:
        text, _ = process.communicate(timeout=LIMIT_S)
        output += text
    if any(process.returncode for process in started):
        sys.exit(f"{' '.join(command)}\nexit status {[process.returncode for process in started]}\n{output}")
    return output


class ByVariables:
    """No launcher at all: processes whose variables are set by hand."""

    ranks = 3
    way = "a socket of this host"

    def __init__(self, variables):
        self.variables = variables

    def run(self, command, environment):
        port = str(free_ports(2))
        return run_together(command, [environment | self.variables(rank, self.ranks, port) for rank in range(self.ranks)])


def plain(rank, ranks, port):
    return {"TUTTI_RANK": str(rank), "TUTTI_NRANKS": str(ranks), "TUTTI_COMM_ID": f"127.0.0.1:{port}"}


def torchrun(rank, ranks, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": f"test-{os.getpid()}"}


class OpenMpi:
    ranks = 3
    way = "PMIx"

    def __init__(self):
        self.mpirun = find("mpirun.openmpi", "mpirun")
        if not re.search("Open MPI|OpenRTE", run([self.mpirun, "--version"], clean_environment())):
            skip("mpirun is not Open MPI's")

    def run(self, command, environment):
        as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return run([self.mpirun, "-n", str(self.ranks), "--oversubscribe", "--bind-to", "none", *command], environment | as_root)


class Hydra:
    ranks = 3
    way = "PMI-1"

    def __init__(self):
        self.mpiexec = find("mpiexec.hydra")

    def run(self, command, environment):
        return run([self.mpiexec, "-n", str(self.ranks), *command], environment)


class Slurm:
    """Four virtual nodes on this machine, with daemons of our own in a folder of our own."""

    ranks = 6
    way = "PMI-2"
    nodes = ("n1", "n2", "n3", "n4")

    def __init__(self):
        if os.geteuid() != 0:
            skip("virtual nodes of Slurm need root")
        self.srun = find("srun")
        controller, daemon, munged = find("slurmctld"), find("slurmd"), find("munged")
        adopt_orphans()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-slurm-"))
        self.started = []
        conf = self.folder / "slurm.conf"
        self.environment = {"SLURM_CONF": str(conf)}
        try:
            socket_path = self.start_munge(munged)
            conf.write_text(self.configuration(socket_path))
            for node in self.nodes:
                (self.folder / "spool" / node).mkdir(parents=True)
            (self.folder / "state").mkdir()
            self.start([controller, "-D", "-f", str(conf)])
            for node in self.nodes:
                self.start([daemon, "-D", "-f", str(conf), "-N", node])
            if not self.ask_until([find("sinfo"), "-h", "-N", "-o", "%T"], " ".join(["idle"] * len(self.nodes))):
                self.fail("Slurm")
        except BaseException:
            self.stop()
            raise

    def start(self, command):
        with open(self.folder / f"{len(self.started)}.log", "w") as log:
            self.started.append(subprocess.Popen(command, env=clean_environment() | self.environment, stdout=log, stderr=log))

    def start_munge(self, munged):
        """Slurm's tasks prove who they are by it; a socket and a key of our own."""
        folder = self.folder / "munge"
        folder.mkdir(mode=0o700)
        self.folder.chmod(0o755)
        folder.chmod(0o755)
        key = folder / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        path = folder / "socket"
        self.start([munged, "--foreground", "--force", f"--socket={path}", f"--key-file={key}", f"--log-file={folder}/log",
                    f"--pid-file={folder}/pid", f"--seed-file={folder}/seed"])
        self.wait_for(path.exists, "munged")
        return path

    def configuration(self, munge):
        first = free_ports(2 + len(self.nodes))
        host = socket.gethostname().split(".")[0]
        ports = f"[{first + 2}-{first + 1 + len(self.nodes)}]"
        return f"""ClusterName=tutti
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmctldPort={first}
SlurmdPort={first + 1}
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.%n.pid
SlurmdSpoolDir={self.folder}/spool/%n
StateSaveLocation={self.folder}/state
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
NodeName=n[1-{len(self.nodes)}] NodeHostname={host} NodeAddr=127.0.0.1 Port={ports} CPUs=4 RealMemory=500 State=UNKNOWN
PartitionName=all Nodes=n[1-{len(self.nodes)}] Default=YES MaxTime=INFINITE State=UP
"""

    def wait_for(self, is_so, what):
        end = time.monotonic() + LIMIT_S
        while not is_so():
            if time.monotonic() > end or any(process.poll() is not None for process in self.started):
                self.fail(what)
            time.sleep(0.05)

    def fail(self, what):
        logs = "".join(f"{log.name}: {log.read_text()[-2000:]}\n" for log in sorted(self.folder.glob("*.log")))
        sys.exit(f"{what} did not start\n{logs}")

    def ask_until(self, command, answer):
        """True once that is what it says; False after a while."""
        end = time.monotonic() + LIMIT_S / 4
        while time.monotonic() < end:
            said = subprocess.run(command, env=clean_environment() | self.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, check=False).stdout
            if " ".join(said.split()) == answer:
                return True
            time.sleep(0.05)
        return False

    def run(self, command, environment):
        nodes = self.ranks // 2
        return run([self.srun, f"-N{nodes}", "--ntasks-per-node=2", "--mpi=pmi2", *command], environment | self.environment)

    def stop(self):
        """Daemons are gone, and what they left behind: all of it is ours, see adopt_orphans."""
        if len(self.started) > len(self.nodes):
            self.ask_until(["squeue", "-h"], "")  # the daemons of a step still report its end
        for process in reversed(self.started):
            process.terminate()
        end = time.monotonic() + 10
        while children := own_children():
            for child in children:
                if time.monotonic() > end:
                    os.kill(child, signal.SIGKILL)
                try:
                    os.waitpid(child, os.WNOHANG)
                except ChildProcessError:
                    pass
            time.sleep(0.05)
        shutil.rmtree(self.folder)


LAUNCHERS = {"plain": lambda: ByVariables(plain), "torchrun": lambda: ByVariables(torchrun), "mpirun": OpenMpi, "hydra": Hydra,
             "srun": Slurm}


def check_refused(launcher, env_rank):
    """One rank's settings are refused before it meets the others: all say why, at once. The launcher hears of no failure."""
    rank = "${TUTTI_RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-$RANK}}}}"
    for odd in (0, 1):
        script = f'[ "{rank}" = {odd} ] && export TUTTI_ALGO=refused; "$0"; true'
        said = launcher.run(["sh", "-c", script, env_rank],
                            clean_environment() | {"TUTTI_DEBUG": "NONE", "TUTTI_INIT_TIMEOUT_MS": str(2000 * LIMIT_S)})
        if said.count('unknown algorithm "refused"') != launcher.ranks or said.count(f"rank {odd} (") < launcher.ranks - 1:
            sys.exit(f"not every rank was told of rank {odd}\n{said}")


def check(launcher, env_rank, perf):
    said = launcher.run([env_rank], clean_environment())
    ranks = sorted(int(rank) for rank in re.findall(rf"rank (\d+) of {launcher.ranks}\n", said))
    if ranks != list(range(launcher.ranks)):
        sys.exit(f"ranks {ranks} said who they are\n{said}")
    if said.count(f"agreed by {launcher.way}") != 2 * launcher.ranks:
        sys.exit(f"not every rank met by {launcher.way}\n{said}")
    table = launcher.run([perf, "-b", "8", "-e", "64K", "-f", "64", "-n", "2", "-w", "1", "-c", "1", "-T", "540"],
                         clean_environment() | {"TUTTI_DEBUG": "WARN"})
    if not re.search(r"Out of bounds values : 0 ", table):
        sys.exit(f"no table, or wrong values\n{table}")


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in LAUNCHERS:
        sys.exit(__doc__)
    launcher = LAUNCHERS[sys.argv[1]]()
    try:
        check(launcher, *sys.argv[2:])
        check_refused(launcher, sys.argv[2])
    finally:
        if hasattr(launcher, "stop"):
            launcher.stop()


if __name__ == "__main__":
    main()
