#!/usr/bin/env python3
"""Draws which collective calls overlap with the backward pass, from traces of ddp.py --trace.

Usage: overlap.py TRACE.json... -o PICTURE.svg      also writes PICTURE.csv: the rows of the picture
       overlap.py FILE.csv -o PICTURE.svg           such a file
"""
from __future__ import annotations

import argparse
import csv
import json
import pathlib
import sys
from typing import Any, Dict, List, Tuple

FIELDS = ("backend", "row", "begin_ms", "end_ms")
ROWS = ("forward", "backward", "communication")
COLORS = {"forward": "#9db7d5", "backward": "#4477aa", "communication": "#ee7733"}
GAP_MS = 0.3  # operations that are closer are drawn as one
Span = Tuple[float, float]


def row_of(event: Dict[str, Any], backend: str) -> str:
    name = str(event["name"])
    if name == f"{backend}:all_reduce":
        return "communication"
    if name == "DistributedDataParallel.forward":
        return "forward"
    return "backward" if name.endswith("Backward0") or "AccumulateGrad" in name else ""


def merged(spans: List[Span]) -> List[Span]:
    """Without gaps too short to be drawn; in order."""
    joined: List[Span] = []
    for begin, end in sorted(spans):
        if joined and begin - joined[-1][1] < GAP_MS:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def of_trace(path: pathlib.Path) -> List[Dict[str, Any]]:
    """The rows of one backend, whose name is the file's. Time begins with the forward pass."""
    backend, trace = path.stem, json.loads(path.read_text(encoding="utf-8"))
    spans: Dict[str, List[Span]] = {row: [] for row in ROWS}
    for event in trace if isinstance(trace, list) else trace["traceEvents"]:
        row = row_of(event, backend) if event.get("ph") == "X" else ""
        if row:
            spans[row].append((event["ts"] / 1e3, (event["ts"] + event["dur"]) / 1e3))
    zero = min(begin for begin, _ in spans["forward"])
    return [dict(zip(FIELDS, (backend, row, f"{begin - zero:.1f}", f"{end - zero:.1f}")))
            for row in ROWS for begin, end in (spans[row] if row == "communication" else merged(spans[row]))]


def draw(rows: List[Dict[str, Any]], out: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "tutti", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    backends = list(dict.fromkeys(row["backend"] for row in rows))
    figure, panels = pyplot.subplots(len(backends), 1, sharex=True, figsize=(8, 1.5 * len(backends) + 0.5), squeeze=False)
    for panel, backend in zip(panels[:, 0], backends):
        for height, name in enumerate(reversed(ROWS)):
            spans = [(float(row["begin_ms"]), float(row["end_ms"])) for row in rows if (row["backend"], row["row"]) == (backend, name)]
            panel.broken_barh([(begin, end - begin) for begin, end in spans], (height - 0.4, 0.8), facecolors=COLORS[name],
                              edgecolors="white", linewidth=0.5)
        panel.set_yticks(range(len(ROWS)), reversed(ROWS))
        panel.set_title(backend, loc="left")
        panel.grid(axis="x", color="#dddddd")
        panel.set_axisbelow(True)
    panels[-1, 0].set_xlabel("ms since the forward pass began")
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None, "Creator": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", dest="out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    if options.files[0].suffix == ".csv":
        with options.files[0].open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    else:
        rows = [row for path in options.files for row in of_trace(path)]
        with options.out.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    draw(rows, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
