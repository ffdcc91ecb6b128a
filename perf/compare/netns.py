"""What compare --net netns adds: two hosts in one machine."""
import os
import pathlib
import subprocess
import sys
import time

STARTER = """#!/bin/sh
# Starts a launcher's command on a host, whose address ends in the number of its namespace, and which has its own name.
host=$1; shift
exec ip netns exec {name}${{host##*.}} unshare --uts sh -c "hostname host${{host##*.}}; $*"
"""


class Hosts:
    """Rank r runs on host r mod 2. Each host is a network namespace; a veth pair connects the two (root only)."""

    def __init__(self, folder):
        self.name = f"compare{os.getpid()}-"
        self.starter = pathlib.Path(folder) / "starter"
        self.starter.write_text(STARTER.format(name=self.name), encoding="utf-8")
        self.starter.chmod(0o755)

    def __enter__(self):
        for host in (1, 2):
            self.ip("netns", "add", f"{self.name}{host}")
        self.ip("link", "add", "wire1", "netns", f"{self.name}1", "type", "veth", "peer", "name", "wire1", "netns", f"{self.name}2")
        for host in (1, 2):
            inside = ("-n", f"{self.name}{host}")
            self.ip(*inside, "address", "add", f"10.213.0.{host}/24", "dev", "wire1")
            for device in ("lo", "wire1"):
                self.ip(*inside, "link", "set", device, "up")
        for host in (1, 2):
            self.await_carrier(host)
        return self

    def await_carrier(self, host):
        """The kernel reports up to a second later that a link is up."""
        until = time.monotonic() + 10
        while "state UP" not in self.ip("-n", f"{self.name}{host}", "link", "show", "wire1"):
            if time.monotonic() > until:
                sys.exit("compare: --net netns: wire1 has no carrier")
            time.sleep(0.05)

    def __exit__(self, *problem):
        for host in (1, 2):
            subprocess.run(["ip", "netns", "delete", f"{self.name}{host}"], capture_output=True, check=False)

    def ip(self, *words):
        made = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            sys.exit(f"compare: --net netns: ip {' '.join(words)}: {made.stderr.strip()}")
        return made.stdout

    def inside(self, rank):
        return ["ip", "netns", "exec", f"{self.name}{rank % 2 + 1}"]

    def launched(self, launcher, ranks):
        """A launcher's command, with both hosts."""
        hosts = [f"10.213.0.{host}" for host in (1, 2)]
        if launcher[0] == "mpirun.mpich":
            told = ["-hosts", ",".join(hosts), "-ppn", str((ranks + 1) // 2), "-launcher", "rsh", "-launcher-exec", str(self.starter), "-iface", "wire1"]
        else:
            told = ["--host", ",".join(f"{host}:{ranks}" for host in hosts), "--map-by", "node", "--mca", "plm_rsh_agent", str(self.starter),
                    "--mca", "oob_tcp_if_include", "wire1"]
        return [*self.inside(0), "unshare", "--uts", "sh", "-c", 'hostname host1; exec "$0" "$@"', launcher[0], "-np", str(ranks), *told, *launcher[1:]]
