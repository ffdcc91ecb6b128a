#!/usr/bin/env python3
"""tutti-topo on recorded machines: what it says of each must be the known answer, and every ring must be one.

Usage: tests/tutti_topo_test.py TUTTI-TOPO FOLDER       FOLDER has more recorded machines; it may be missing
Rings and trees are checked here by an independent count of links, and bounds by all cuts.
"""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TOPO, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
OURS = pathlib.Path(__file__).parent / "machines"
failures, checks = [], 0


def expect(what, got, wanted):
    global checks
    checks += 1
    if got != wanted:
        failures.append(f"{what}: {got!r}, not {wanted!r}")


def run(*arguments, **settings):
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    return subprocess.run([TOPO, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
                          env=environment)


def load(path, *more):
    done = run("--json", "--file", path, *more)
    expect(f"{path}: status ({done.stderr.strip()})", done.returncode, 0)
    return json.loads(done.stdout) if done.returncode == 0 else None


def of_kind(machine, kind):
    return [device for device in machine["devices"] if device["kind"] == kind]


def links_between(machine, a, b):
    """NVLinks one way between two GPUs by the matrix; a switch reaches everybody."""
    cell = machine["matrix"][a][b]
    return int(cell[2:]) if cell.startswith("NV") else 0


def switched(machine):
    return any(link["to"].startswith("NVS") for link in machine["links"])


def check_search(name, machine):
    """Every ring passes every GPU once; no link is used beyond its number; nothing beats the bound of all cuts."""
    gpus = [device["index"] for device in of_kind(machine, "gpu")]
    place = {number: at for at, number in enumerate(gpus)}
    rings, used = machine["rings"], {}
    for order in rings["orders"]:
        expect(f"{name}: a ring {order} passes all", sorted(order), sorted(gpus))
        for a, b in zip(order, order[1:] + order[:1]):
            used[a, b] = used.get((a, b), 0) + 1
    rates = [link["gbps_each"] for link in machine["links"] if link["kind"] != "memory"]
    if not rates or switched(machine):
        return
    rate = min(rates)
    share = round(rate / rings["gbps_each"])
    for (a, b), times in used.items() if rings["kind"] == "NVL" else []:
        there = links_between(machine, place[a], place[b])
        expect(f"{name}: {times} rings over {there} links of {a} to {b}", times <= there * share, True)
    booked, got = {}, dict.fromkeys(gpus, 0)
    for tree in machine["trees"]:
        expect(f"{name}: a tree reaches all", sorted(tree["gpus"]), sorted(gpus))
        got[tree["root"]] += tree["gbps"]
        seen = set()
        for gpu, parent in zip(tree["gpus"], tree["parents"]):
            expect(f"{name}: parents come first", parent in seen or gpu == tree["root"], True)
            seen.add(gpu)
            if gpu != tree["root"]:
                booked[parent, gpu] = booked.get((parent, gpu), 0) + tree["gbps"]
    for (a, b), gbps in booked.items():
        expect(f"{name}: {gbps} GB/s of trees on {a} to {b}",
               gbps <= links_between(machine, place[a], place[b]) * rate + 1e-6, True)
    if len(gpus) <= 10:
        bound = min(sum(links_between(machine, a, b) for a in inside for b in range(len(gpus)) if b not in inside) / size
                    for size in range(1, len(gpus)) for inside in itertools.combinations(range(len(gpus)), size))
        expect(f"{name}: bound", round(machine["cut_bound_gbps"], 3), round(bound * len(gpus) * rate, 3))
        if machine["trees"]:
            expect(f"{name}: each root's trees carry the bound", {round(v, 3) for v in got.values()}, {round(bound * rate, 3)})
    best = max(machine["ring_gather_gbps"], machine["tree_gather_gbps"])
    expect(f"{name}: rings or trees reach the bound", best >= machine["cut_bound_gbps"] - 1e-6, True)


def packing(path, gpus, rings, optimum):
    """Ring packing in links' rates, and the all-gather optimum in the same unit."""
    machine = load(path, *(["--what-if", "gpus=" + ",".join(map(str, gpus))] if gpus else []))
    name = f"{path.name} {gpus or ''}"
    rate = max(link["gbps_each"] for link in machine["links"])
    total = machine["rings"]["count"] * machine["rings"]["gbps_each"] / rate if machine["rings"]["kind"] == "NVL" else 0
    expect(f"{name}: rings", round(total, 3), rings)
    expect(f"{name}: optimum", round(machine["cut_bound_gbps"] / rate, 3), optimum)
    check_search(name, machine)


def our_machines():
    double, single = OURS / "cube-mesh-double.txt", OURS / "cube-mesh-single.txt"
    packing(double, [], 6, 6.857)
    packing(single, [], 4, 4.571)
    packing(double, [0, 1, 2, 3], 4, 5.333)
    packing(double, [0, 1, 4, 5], 2, 4.0)
    packing(double, [0, 3, 4, 7], 2, 4.0)
    packing(double, [0, 1, 2, 3, 4, 5], 2, 3.6)
    packing(double, [0, 1, 2], 2, 3.0)
    packing(double, [0, 1, 2, 4], 0, 2.667)
    packing(double, [0, 1, 2, 3, 4], 0, 2.5)
    packing(double, [1, 2, 3, 4, 5, 6, 7], 4, 4.667)
    packing(double, [0, 1, 2, 3, 4, 5, 6], 4, 4.667)
    packing(OURS / "all-to-all-4x1.txt", [], 3, 4.0)
    packing(OURS / "all-to-all-4x3.txt", [], 9, 12.0)
    packing(OURS / "all-to-all-8x1.txt", [], 7, 8.0)
    machine = load(OURS / "switched-8.xml")
    expect("switched: cells", {cell for row in machine["matrix"][:8] for cell in row[:8]}, {"X", "NV18"})
    expect("switched: its own NIC", machine["matrix"][0][8], "PIX")
    expect("switched: NICs", len(of_kind(machine, "nic")), 9)
    expect("switched: rings", round(machine["rings"]["count"] * machine["rings"]["gbps_each"], 1), 370.8)
    expect("switched: a made-up bridge is not believed", machine["paths"][0][8]["gbps"], 48)
    expect("switched: another GPU's NIC by way of it", machine["paths"][0][10]["kind"], "PXN")
    check_search("switched", machine)
    expect("switched: levels", machine["levels"], [[0, 0, 0, 0, 1, 1, 1, 1]])
    expect("switched: CPUs near", {machine["near_cpus"][0], machine["near_cpus"][7]}, {"0-31", "32-63"})
    machine = load(OURS / "switched-8-one-off.xml")
    expect("one off: said", any("GPU5 is off the NVLink fabric" in line for line in machine["warnings"]), True)
    machine = load(OURS / "matrix-8-one-off.txt")
    expect("matrix, one off: its links", sum(link["count"] for link in machine["links"] if link["from"] == "GPU5"), 0)
    expect("matrix, one off: links of the others", {link["count"] for link in machine["links"]}, {18})
    expect("matrix, one off: to a switch", switched(machine), True)
    expect("matrix, one off: said", any("GPU5 is off the NVLink fabric" in line for line in machine["warnings"]), True)
    same_matrix(OURS / "matrix-8-one-off.txt", machine)
    rings = load(OURS / "matrix-8-one-off.txt", "--what-if", "gpus=0,1,2,3,4,6,7")["rings"]
    expect("matrix, one off: rings of the others", round(rings["count"] * rings["gbps_each"], 1), 370.8)
    machine = load(OURS / "hwloc3-memory-alone.xml")
    expect("hwloc 3: nodes with CPUs", [node["index"] for node in of_kind(machine, "numa")], [0, 1])
    expect("hwloc 3: devices", [d["name"] for d in machine["devices"] if d["kind"] in ("gpu", "nic")], ["GPU0", "mlx5_0"])
    expect("hwloc 3: NVLinks", machine["nvlink_known"], False)
    expect("hwloc 3: that is said", sum("NVLinks are not known" in line for line in machine["warnings"]), 1)
    expect("hwloc 3: that is said of a job", "Links between GPUs are not known" in run(
        "--job", "--file", OURS / "hwloc3-memory-alone.xml").stdout, True)
    expect("hwloc 3: a rank for each node with CPUs", "Job: 2 ranks" in run(
        "--job", "--file", "synthetic:pack:2 [numa] [numa] core:2 pu:1").stdout, True)
    machine = load(OURS / "hwloc-4x6-divided.xml")
    rings = machine["rings"]
    expect("divided: rings", (rings["count"], rings["gbps_each"], rings["kind"]), (6, 36, "NVL"))
    expect("divided: bound", round(machine["cut_bound_gbps"], 6), 288)
    expect("divided: trees reach it", round(machine["tree_gather_gbps"], 6), 288)
    expect("divided: said", sum("is divided into 6 GPUs" in line for line in machine["warnings"]), 4)
    machine = load(OURS / "template-fragment.xml")
    expect("fragment", machine["matrix"], [["X", "PIX"], ["PIX", "X"]])
    machine = load(OURS / "hwloc-2gpu.xml")
    expect("hwloc: each GPU once, by its number", [d["busid"] for d in of_kind(machine, "gpu")],
           ["0000:00:02.0", "0000:01:00.0"])
    expect("hwloc: links", machine["matrix"], [["X", "NV2"], ["NV2", "X"]])


def round_trip(folder):
    for name in ("switched-8.xml", "cube-mesh-double.txt", "hwloc-2gpu.xml"):
        before = load(OURS / name, "--dump", folder / "dump.xml")
        after = load(folder / "dump.xml")
        for what in ("matrix_names", "matrix", "rings"):
            if name == "switched-8.xml" or what == "matrix_names":  # the schema has no host bridges, so no NODE
                expect(f"{name} written and read: {what}", after[what], before[what])


def settings(folder):
    """TUTTI_TOPO_FILE stands for the machine, and TUTTI_TOPO_DUMP_FILE gets it, in the format that its name says."""
    nccl, hwloc = folder / "set.xml", folder / "set.hwloc.xml"
    wanted = load(OURS / "switched-8.xml")
    for dump, root in ((nccl, "<system "), (hwloc, "<topology ")):
        done = run("--json", TUTTI_TOPO_FILE=OURS / "switched-8.xml", TUTTI_TOPO_DUMP_FILE=dump)
        expect(f"{dump.name}: status ({done.stderr.strip()})", done.returncode, 0)
        expect(f"{dump.name}: what is shown", json.loads(done.stdout)["matrix"], wanted["matrix"])
        expect(f"{dump.name}: its root", root in dump.read_text()[:200], True)
        expect(f"{dump.name}: read again", [row[:8] for row in load(dump)["matrix"][:8]], [row[:8] for row in wanted["matrix"][:8]])
    expect("TUTTI_TOPO_FILE: one that is not there", run(TUTTI_TOPO_FILE=folder / "none.xml").returncode, 1)
    expect("TUTTI_TOPO_DUMP_FILE: a folder that is not there", run(TUTTI_TOPO_DUMP_FILE=folder / "none/x.xml").returncode, 1)
    picture = folder / "machine.svg"
    expect("--svg: status", run("--file", OURS / "switched-8.xml", "--svg", picture).returncode, 0)
    root = xml.etree.ElementTree.parse(picture).getroot()
    texts = {element.text for element in root.iter() if element.text}
    expect("--svg: names all", {f"GPU{i}" for i in range(8)} <= texts, True)


def rebuilt(manifest, folder):
    """A copy of /sys from one JSON object a line: p path, l target of a link, t text, x bytes in hexadecimal."""
    for line in manifest.read_text().splitlines():
        entry = json.loads(line)
        path = folder / entry["p"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if "l" in entry:
            path.symlink_to(entry["l"])
        elif "t" in entry or "x" in entry:
            path.write_bytes(bytes.fromhex(entry["x"]) if "x" in entry else entry["t"].encode())
        else:
            path.mkdir(exist_ok=True)
    return folder


def refusals(folder):
    wrong = {
        "cut.xml": ("<system version=\"1\"><cpu numaid=\"0\">", "cut.xml: line 1: not XML"),
        "bus.xml": ("<system>\n<cpu>\n<pci busid=\"zz\"/></cpu></system>", "line 3: <pci>: busid \"zz\""),
        "count.xml": ("<pci busid=\"1:0.0\"><gpu dev=\"0\"><nvlink target=\"2:0.0\" count=\"many\"/></gpu></pci>",
                      "count is \"many\", not a number"),
        "other.xml": ("<html/>", "<html> is not a machine"),
        "empty.xml": ("", "there is nothing in it"),
        "v4.xml": ("<topology version=\"4.0\"/>", "the format is hwloc 4.0"),
        "row.txt": ("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\tQPI\n", "line 3: \"QPI\" is not a kind of path"),
        "twice.txt": ("\tGPU0\tGPU0\nGPU0\t X \tPIX\n", "line 2: there are two columns GPU0"),
        "log.txt": ("NCCL INFO Channel 00\n", "neither XML nor a matrix"),
    }
    for name, (text, why) in wrong.items():
        (folder / name).write_text(text)
        done = run("--file", folder / name)
        expect(f"{name}: status", done.returncode, 1)
        expect(f"{name}: says why: {done.stderr}", why in done.stderr, True)
    (folder / "deep.xml").write_text("".join(f"<pci busid=\"{i % 256:02x}:00.0\">" for i in range(500)) + "</pci>" * 500)
    expect("deep: status", run("--file", folder / "deep.xml").returncode, 1)


# File → GPUs, NICs, set of GPU-GPU cells. None: any.
RECORDED = {
    "nccl-aws-g5.48xl-sparse.topo.xml": (0, 0, set()),
    "nccl-aws-p4d.topo.xml": (8, 4, None),
    "nccl-aws-p5.48xl-32efa.topo.xml": (0, 0, set()),
    "nccl-azure-nc48v4-2xa100.topo.xml": (2, 1, {"NV12"}),
    "nccl-azure-ncv4-a100pcie-original.topo.xml": (4, 1, {"NV12", "SYS"}),
    "nccl-azure-ndv4-a100-2023-swapped.topo.xml": (8, 8, None),
    "nccl-azure-ndv4-a100.topo.xml": (8, 8, None),
    "nccl-azure-ndv5-h100.topo.xml": (8, 8, None),
    "nccl-gb10-dgx-spark-trimmed.topo.xml": (1, 2, set()),
    "nccl-hgx-h200-8x-container.topo.xml": (8, 1, {"NV18"}),
    "nccl-ibmcloud-gx3d-h100-vsi.topo.xml": (8, 8, {"NV18"}),
    "nccl-oci-bm-a100-flattened.topo.xml": (8, 8, None),
    "nccl-perlmutter-4xa100-nv4-4cxi.topo.xml": (4, 4, {"NV4"}),
    "nccl-uccl-p4d-reservedcores.topo.xml": (8, 4, None),
    "rccl-gfx908-4p3l.topo.xml": (4, 2, {"NV1"}),
    "rccl-gfx908-8p-collnet-4nic.topo.xml": (8, 4, None),
    "rccl-gfx908-8p6l-1nic.topo.xml": (8, 1, None),
    "rccl-gfx90a-3p-pcie.topo.xml": (3, 1, None),
    "rccl-gio-16p-cascade.topo.xml": (16, 1, None),
    "rccl-mi250x-16gcd-8nic.topo.xml": (16, 8, None),
    "rccl-mi300a-4p-4nic.topo.xml": (4, 4, {"NV1"}),
    "rccl-mi300x-8p-8nic.topo.xml": (8, 8, {"NV1"}),
    "rccl-vega20-8p-rome.topo.xml": (8, 1, None),
    "hwloc-2socket-3gpu-ib-normalio.xml": (3, None, None),
    "hwloc-2socket-3nvgpu-ib-nonvml.xml": (3, None, None),
    "hwloc-2socket-noio.xml": (0, 0, set()),
    "hwloc-4node-16pkg-pci.xml": (0, None, set()),
    "hwloc-coralea-p8-4xp100-hwloc1.xml": (4, None, None),
    "hwloc-corona-8xmi50-rsmi.xml": (8, None, None),
    "hwloc-cpuonly-2xepyc7763.xml": (0, 0, set()),
    "hwloc-dgx-spark-gb10-cpu.xml": (0, 0, set()),
    "hwloc-dgx2-nvswitch-nvml.xml": (16, 0, {"NV6"}),
    "hwloc-fake-hetero-distances.xml": (0, 0, set()),
    "hwloc-ipa20-4xh100-nvml-nvlink.xml": (4, None, {"NV6"}),
    "hwloc-laptop-raptorlake-hybrid.xml": (0, 0, set()),
    "hwloc-pascal-2xp100pcie-nvml-cuda-opencl.xml": (2, None, None),
    "hwloc-quartz-2xbroadwell-opa-cpuonly.xml": (0, None, set()),
    "hwloc-tioga-8gcd-mi250x-rsmi.xml": (8, None, None),
    "hwloc-tuolumne-mi300a-spx.xml": (4, None, None),
    "hwloc-v3format-dgx-spark-gb10.xml": (0, 0, set()),
    "smi-2017-gist-1gpu-and-4gpu-soc.txt": (4, 0, {"PHB", "SYS"}),
    "smi-2gpu-node-with-p2p-ns.txt": (2, 0, {"NODE"}),
    "smi-2gpu-nv2.txt": (2, 0, {"NV2"}),
    "smi-gb200-4x-6nic-partial.txt": (4, 6, {"NV18"}),
    "smi-gcp-4gpu-p2p-ok-ns.txt": (4, 0, None),
}
# Product of channels and GB/s that others found, in today's rates; and warnings.
LOGGED = {"nccl-perlmutter-4xa100-nv4-4cxi.topo.xml": 240, "nccl-hgx-h200-8x-container.topo.xml": 360,
          "nccl-azure-nc48v4-2xa100.topo.xml": 240}
WARNED = {"nccl-azure-ndv4-a100-2023-swapped.topo.xml": "have identical affinity masks",
          "nccl-ibmcloud-gx3d-h100-vsi.topo.xml": "slower than",
          "nccl-aws-p4d.topo.xml": "NVLinks are not known",
          "hwloc-2socket-3nvgpu-ib-nonvml.xml": "NVLinks are not known"}
LINK_RINGS = {"rccl-gfx908-4p3l.topo.xml": 3, "rccl-gfx908-8p6l-1nic.topo.xml": 6, "rccl-mi300a-4p-4nic.topo.xml": 3,
              "rccl-mi300x-8p-8nic.topo.xml": 7, "rccl-gio-16p-cascade.topo.xml": 0, "rccl-vega20-8p-rome.topo.xml": 0,
              "smi-v100-8x-baidu-xman2-node.txt": 6, "smi-v100-8x-pytorch-bench-node.txt": 6}


# Parts of machines that others found rings on: file, GPUs, channels × GB/s in today's rates.
LOGGED_PARTS = (("smi-hgx-a100-8x.txt", range(2), 240), ("hwloc-dgx2-nvswitch-nvml.xml", range(8), 6 * 20),
                ("smi-v100-8x-pytorch-bench-node.txt", range(4), 4 * 20), ("smi-dgxh100-13855-gpuonly-rows.txt", range(8), 12 * 30))
# Links of each GPU to the switches: rings use 97 % of them at least.
SWITCHED = {"smi-hgx-a100-8x.txt": 12, "smi-hgx-h200-8x-8nic-container.txt": 18, "hwloc-dgx2-nvswitch-nvml.xml": 6,
            "nccl-hgx-h200-8x-container.topo.xml": 18, "nccl-ibmcloud-gx3d-h100-vsi.topo.xml": 18,
            "smi-dgxh100-13855-gpuonly-rows.txt": 18}


def same_matrix(path, machine):
    """What nvidia-smi printed comes out again, cell by cell."""
    text = path.read_text().replace("\x1b[4m", "").replace("\x1b[0m", "").replace("SOC", "SYS")
    names, wanted, past = [], {}, []
    for line in text.splitlines():
        words = line.split()
        if words and words[0].startswith("GPU") and (len(words) == 1 or words[1].startswith(("GPU", "NIC", "CPU", "mlx"))):
            names, wanted = [w for w in words if w.startswith(("GPU", "NIC", "mlx")) and w != "GPU"], {}
            past = [*past, (names, wanted)]
        elif words and words[0] in names and not {"NS", "OK"} & set(words):
            wanted[words[0]] = words[1:len(names) + 1]
    names, wanted = max(((n, w) for n, w in past if w), key=lambda pair: len(pair[0]))  # a second may be of P2P
    for row, name in enumerate(names):
        got = machine["matrix"][row][:len(wanted.get(name, []))]
        if name in wanted:
            expect(f"{path.name}: row {name}", got, wanted[name])


def sysfs(manifest):
    """A machine of 2011, of which a copy of /sys is all there is."""
    with tempfile.TemporaryDirectory() as folder:
        machine = load(rebuilt(manifest, pathlib.Path(folder)))
    expect(f"{manifest.name}: NICs", [nic["name"] for nic in of_kind(machine, "nic")], ["eth0", "eth1", "eth2", "eth3", "qib0"])
    expect(f"{manifest.name}: places", [len(of_kind(machine, kind)) for kind in ("package", "numa", "gpu")], [4, 4, 0])
    expect(f"{manifest.name}: CPUs", of_kind(machine, "numa")[1]["cpus"], "1,5,9,13,17,21,25,29,33,37")
    expect(f"{manifest.name}: the wire of qib0", of_kind(machine, "nic")[4]["network_gbps"], 5)


def logged_parts():
    for name, gpus, product in LOGGED_PARTS:
        if (FOLDER / name).exists():
            rings = load(FOLDER / name, "--what-if", "gpus=" + ",".join(map(str, gpus)))["rings"]
            expect(f"{name} {list(gpus)}: {rings['count']} x {rings['gbps_each']}",
                   rings["count"] * rings["gbps_each"] >= product - 1e-6, True)


def recorded():
    logged_parts()
    for path in sorted(FOLDER.glob("*.*")):
        name = path.name
        if path.suffix == ".md":
            continue
        done = run("--json", "--file", path)
        if name.startswith(("log-", "sysfs-")) or ".graph." in name:
            expect(f"{name}: refused", done.returncode, 1)
            expect(f"{name}: why", ": line 1: " in done.stderr, True)
            if name.startswith("sysfs-"):
                sysfs(path)
            continue
        expect(f"{name}: status ({done.stderr.strip()})", done.returncode, 0)
        if done.returncode != 0:
            continue
        machine = json.loads(done.stdout)
        gpus, nics, cells = RECORDED.get(name, (None, None, None))
        count = len(of_kind(machine, "gpu"))
        if gpus is not None:
            expect(f"{name}: GPUs", count, gpus)
        if nics is not None:
            expect(f"{name}: NICs", len(of_kind(machine, "nic")), nics)
        if cells is not None:
            seen = {machine["matrix"][a][b] for a in range(count) for b in range(count) if a != b}
            expect(f"{name}: cells", seen, cells)
        rings = machine["rings"]
        if name in LOGGED:
            expect(f"{name}: {rings['count']} x {rings['gbps_each']}", rings["count"] * rings["gbps_each"] >= LOGGED[name] - 1e-6,
                   True)
        if name in SWITCHED:
            rate = max(link["gbps_each"] for link in machine["links"])
            expect(f"{name}: of {SWITCHED[name]} links {rings['count']} x {rings['gbps_each']}",
                   rings["count"] * rings["gbps_each"] >= 0.97 * SWITCHED[name] * rate, True)
        if name in WARNED:
            expect(f"{name}: warns", any(WARNED[name] in line for line in machine["warnings"]), True)
        if name in LINK_RINGS:
            rate = machine["links"][0]["gbps_each"]
            total = rings["count"] * rings["gbps_each"] / rate if rings["kind"] == "NVL" else 0
            expect(f"{name}: rings", total, LINK_RINGS[name])
        if name.startswith("smi-") and "p2p-ok" not in name:
            same_matrix(path, machine)
        check_search(name, machine)


def jobs(folder):
    """A job as text, as a picture and as JSON, which is read again; orders that are none are refused."""
    plan = ["--job", "--hosts", 2, "--ranks-per-host", 8, "--file", OURS / "cube-mesh-double.txt"]
    picture = folder / "job.svg"
    done = run(*plan, "--svg", picture)
    expect("--job: status", done.returncode, 0)
    for line in ("Job: 16 ranks on 2 hosts", "  host1: ranks 8-15", "  4 NUMA nodes: 0-3 | 4-7 | 8-11 | 12-15",
                 "Order: 0 2 3 1 5 6 7 4 8 10 11 9 13 14 15 12", "The ring enters and leaves each of 2 hosts once."):
        expect(f"--job: says {line}", line in done.stdout.splitlines(), True)
    texts = {element.text for element in xml.etree.ElementTree.parse(picture).getroot().iter() if element.text}
    expect("--job --svg: names all", {str(rank) for rank in range(16)} | {"host0", "host1", "GPU7"} <= texts, True)
    by_turns = run(*plan, "--order", "round_robin").stdout
    expect("--order round_robin: places", "  host1: ranks 1,3,5,7,9,11,13,15\n" in by_turns, True)
    expect("--order round_robin: the ring keeps hosts together", "each of 2 hosts once" in by_turns, True)
    to_and_fro = run(*plan, "--order", "round_robin", "--ring", "number").stdout
    expect("--ring number: goes to and fro", "16 times where 2 would do" in to_and_fro, True)
    small = ["--job", "--hosts", 2, "--ranks-per-host", 2, "--file", OURS / "all-to-all-4x1.txt"]
    expect("--order LIST", "  host1: ranks 0-1\n" in run(*small, "--order", "2,3,1,0").stdout, False)
    expect("--order LIST: by the lowest rank", "  host1: ranks 2-3\n" in run(*small, "--order", "2,3,1,0").stdout, True)
    expect("--ring LIST", "Order: 0 2 1 3\n" in run(*small, "--ring", "0,2,1,3").stdout, True)
    expect("one rank for each GPU", "Job: 12 ranks" in run("--job", "--hosts", 3, "--file", OURS / "all-to-all-4x1.txt").stdout, True)
    for option in ("--order", "--ring"):
        for order, why in (("0,1,2", "rank 3 is missing"), ("0,1,2,2", "rank 2 occurs twice"), ("0,1,2,4", "rank 4 is not one of 0"),
                           ("0,1,,2", '"" is not a rank'), ("zigzag", '"zigzag" is not a rank'), ("", '"" is not a rank')):
            if option == "--ring" and not order:
                continue  # as if it were not given
            done = run(*small, option, order)
            expect(f"{option} {order}: status", done.returncode, 1)
            expect(f"{option} {order}: says why: {done.stderr}", why in done.stderr, True)
    for wrong in (["--job", "--hosts", 0], ["--job", "--hosts", 70000], ["--job", "--ranks-per-host", 0], ["--hosts", 2],
                  ["--job", "--hosts", "many"], ["--job", "--measure"], ["--job", "--job-file", "x"],
                  ["--job-file", "x", "--hosts", 2]):
        expect(f"{wrong}: wrong usage", run(*wrong).returncode, 2)
    done = run("--job", "--hosts", 60000, "--ranks-per-host", 2)
    expect("too many ranks", (done.returncode, "at most 65535 ranks" in done.stderr), (1, True))
    expect("--job --svg: a folder that is not there", run(*small, "--svg", folder / "none/x.svg").returncode, 1)
    job_files(folder, run(*plan, "--json").stdout)


def job_files(folder, text):
    path = folder / "job.json"
    path.write_text(text)
    done = run("--job-file", path, "--json", "--svg", folder / "again.svg")
    expect(f"--job-file: status ({done.stderr.strip()})", done.returncode, 0)
    expect("--job-file: read as it was written", done.stdout, text)
    expect("--job-file: as text", "each of 2 hosts once" in run("--job-file", path).stdout, True)
    expect("--job-file: none", run("--job-file", folder / "none.json").returncode, 1)
    good = json.loads(text)
    wrong = {
        "no ranks": (lambda job: job["ranks"].clear(), "ranks: 0 ranks"),
        "host": (lambda job: job["ranks"][3].update(host=2), "ranks[3].host"),
        "idle": (lambda job: [rank.update(host=0) for rank in job["ranks"]], "none is on host 1"),
        "order": (lambda job: job["order"].__setitem__(0, 1), "does not name every rank once"),
        "short": (lambda job: job["order"].pop(), "order: 15 numbers for 16 ranks"),
        "level": (lambda job: job["levels"][0].pop(), "levels[0]: 15 numbers"),
        "group": (lambda job: job["levels"][0].__setitem__(0, 16), "levels[0][0]"),
        "crossed": (lambda job: job["levels"].reverse(), "a level that is not within the one before"),
        "parent": (lambda job: job["machines"][0][0].update(parent=0), "machines[0][0].parent"),
        "kind": (lambda job: job["machines"][0][0].update(kind="fan"), "not package, numa, gpu or nic"),
        "format": (lambda job: job.update(format=1), "format"),
        "missing": (lambda job: job.pop("hosts"), 'has no "hosts"'),
        "name": (lambda job: job["hosts"][0].update(name=7), "hosts[0].name"),
    }
    for name, (change, why) in wrong.items():
        job = json.loads(text)
        change(job)
        path.write_text(json.dumps(job))
        done = run("--job-file", path)
        expect(f"job file, {name}: status", done.returncode, 1)
        expect(f"job file, {name}: says why: {done.stderr}", why in done.stderr, True)
    for part in range(24):  # cut off
        path.write_text(text[:len(text) * part // 24])
        expect(f"job file cut to {part}/24", run("--job-file", path).returncode, 1)
    for at in range(len(good["order"])):  # another number somewhere: a job or a refusal, no end by a signal
        job = json.loads(text)
        job["ranks"][at].update(numa=-1 if at % 2 else 99, package=at, device="GPU9", cache=at // 3)
        path.write_text(json.dumps(job))
        expect(f"job file, seat {at} changed", run("--job-file", path, "--svg", folder / "odd.svg").returncode, 0)


def main():
    our_machines()
    with tempfile.TemporaryDirectory() as folder:
        refusals(pathlib.Path(folder))
        round_trip(pathlib.Path(folder))
        settings(pathlib.Path(folder))
        jobs(pathlib.Path(folder))
    expect("live: status", run("--json").returncode, 0)
    expect("what-if: an unknown GPU", run("--file", OURS / "switched-8.xml", "--what-if", "gpus=9").returncode, 1)
    expect("wrong usage", run("--matrix").returncode, 2)
    expect("--measure of a recorded machine", run("--file", OURS / "switched-8.xml", "--measure").returncode, 1)
    constants = json.loads(run("--json", "--measure").stdout)["constants"]
    for constant in constants:
        expect(f"--measure: {constant['what']}", constant["value"] > 0 and constant["source"] != "", True)
    if FOLDER.is_dir():
        recorded()
    else:
        print(f"{FOLDER} is not there: only machines of our own were looked at")
    print("\n".join(failures[:40]) if failures else f"{checks} checks hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
