#!/usr/bin/env python3
"""Does perf/plot draw what the perf programs and perf/compare/compare write, the same every time, and say what is wrong?

Exit status 77: no Python here has matplotlib, so what draws was skipped; what it says of bad input was tested.
"""
import csv
import importlib.machinery
import importlib.util
import io
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLOT, DRAW, COMPARE = ROOT / "perf/plot", ROOT / "docs/figures/draw", ROOT / "perf/compare/compare"
SKIPPED = 77
HEADER = "collective,transport,algorithm,ranks,bytes,time_us,algbw_gbps,busbw_gbps,wrong\n"
GOOD = HEADER + """all_reduce,line,one_shot,2,8,0.5000,0.016000,0.016000,0
all_reduce,window,two_shot,2,65536,3.5000,18.724571,18.724571,0
all_reduce,window,two_shot,2,1048576,52.0000,20.164923,20.164923,N/A
"""
COMMENTED = "# command: all_reduce_perf\n# machine: two cores\n\n" + GOOD


def with_matplotlib():
    """A Python that can draw: this one or Debian's."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            continue
    return None


PYTHON = with_matplotlib()
draws = unittest.skipIf(PYTHON is None, "no matplotlib: apt-get install python3-matplotlib")


class InFolder(unittest.TestCase):
    """Runs perf/plot in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def plot(self, *arguments, python=PYTHON or sys.executable, path=None):
        environment = {"PATH": "/usr/bin:/bin", "MPLCONFIGDIR": str(self.folder), "LC_ALL": "C.UTF-8", **({"PYTHONPATH": path} if path else {})}
        return subprocess.run([python, str(PLOT), *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def drawn(self, *arguments, out="a.svg"):
        ran = self.plot(*arguments, "-o", out)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return (self.folder / out).read_bytes()

    def refused(self, *arguments, status=1):
        """What was said, where no picture is made."""
        ran = self.plot(*arguments, "-o", "refused.svg")
        self.assertEqual(ran.returncode, status, ran.stderr)
        self.assertFalse((self.folder / "refused.svg").exists())
        self.assertNotIn("Traceback", ran.stderr)
        return ran.stderr


def curves(svg):
    """Names of the curves, each of which has one path of points in a row."""
    found = []
    for group in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        if group.get("id", "").startswith("curve-"):
            assert len(group.findall("{http://www.w3.org/2000/svg}path")) == 1, group.get("id")
            found.append(group.get("id"))
    return found


def words(svg):
    return "".join(text for text in ElementTree.fromstring(svg).itertext())


@draws
class Draws(InFolder):
    def test_a_curve_with_labels(self):
        svg = self.drawn(self.write("good.csv", COMMENTED), "--title", "Two ranks & more")
        self.assertEqual(curves(svg), ["curve-all_reduce"])
        for label in ("message size", "bus bandwidth (GB/s)", "8 B", "KB", "all_reduce", "Two ranks & more"):
            self.assertIn(label, words(svg))

    def test_the_same_bytes_for_the_same_input(self):
        self.write("good.csv", GOOD)
        self.assertEqual(self.drawn("good.csv"), self.drawn("good.csv", out="b.svg"))
        self.assertNotIn(b"dc:date", self.drawn("good.csv"))
        (self.folder / "matplotlibrc").write_text("axes.grid: False\nsvg.fonttype: path\n", encoding="utf-8")
        self.assertEqual(self.drawn("good.csv"), self.drawn("good.csv", out="b.svg"))

    def test_time_in_place_of_bandwidth(self):
        self.write("good.csv", GOOD)
        svg = self.drawn("good.csv", "--time", "--y", "log")
        self.assertIn("time (µs)", words(svg))
        self.assertNotIn("GB/s", words(svg))
        self.assertNotEqual(svg, self.drawn("good.csv", "--time", "--y", "linear"))

    def test_a_curve_for_each_file_by_its_name(self):
        self.write("a.csv", GOOD)
        self.write("b=1.csv", GOOD.replace("3.5000", "4.5000"))
        svg = self.drawn("before=a.csv", "b=1.csv")
        self.assertEqual(curves(svg), ["curve-all_reduce-before", "curve-all_reduce-b-1"])

    def test_a_panel_for_each_collective_and_a_curve_for_each_transport(self):
        broadcast = GOOD.replace("all_reduce", "broadcast")
        pulled, socket = (broadcast.replace("line", name).replace("window", name) for name in ("pull", "socket"))
        svg = self.drawn(self.write("many.csv", GOOD + pulled + socket))
        self.assertEqual(curves(svg), ["curve-all_reduce", "curve-broadcast-pull", "curve-broadcast-socket"])

    def test_a_curve_for_each_algorithm_measured(self):
        self.write("all.csv", GOOD.replace("one_shot", "ring").replace("two_shot", "ring") + GOOD.replace("one_shot", "two_shot"))
        self.assertEqual(curves(self.drawn("all.csv")), ["curve-all_reduce-ring", "curve-all_reduce-two_shot"])
        self.assertEqual(curves(self.drawn("all.csv", "--only", "algorithm=ring")), ["curve-all_reduce"])
        self.assertEqual(len(curves(self.drawn("all.csv", "--by", "transport,algorithm"))), 4)

    def test_missing_bandwidths_are_computed(self):
        self.write("time.csv", GOOD.replace("0.016000,0.016000", ",").replace("18.724571,18.724571", ",").replace("20.164923,20.164923", ","))
        self.write("good.csv", GOOD)
        self.assertEqual(len(curves(self.drawn("time.csv"))), 1)

    def test_every_suffix_that_matplotlib_knows(self):
        self.write("good.csv", GOOD)
        self.assertTrue(self.drawn("good.csv", out="a.png").startswith(b"\x89PNG"))
        self.assertTrue(self.drawn("good.csv", out="a.pdf").startswith(b"%PDF"))
        self.assertIn("must be one of", self.plot("good.csv", "-o", "a.parsecs").stderr)
        self.assertEqual(self.plot("good.csv", "-o", "a.parsecs").returncode, 2)
        self.assertIn("nowhere/a.svg: No such", self.plot("good.csv", "-o", "nowhere/a.svg").stderr)

    def test_without_an_output_the_name_of_the_first_file(self):
        self.write("good.csv", GOOD)
        self.assertEqual(self.plot("good.csv").stdout, "wrote good.svg\n")
        self.assertEqual(curves((self.folder / "good.svg").read_bytes()), ["curve-all_reduce"])

    def test_says_that_results_were_wrong_and_sizes_repeat(self):
        ran = self.plot(self.write("wrong.csv", GOOD.replace(",0\n", ",7\n") + GOOD.replace("3.5000", "4.5000")))
        self.assertEqual(ran.returncode, 0)
        self.assertIn("wrong.csv:2: 7 wrong values", ran.stderr)
        self.assertIn("medians are drawn", ran.stderr)


class Refuses(InFolder):
    def test_a_missing_file(self):
        self.assertIn("nothing.csv: No such file", self.refused("nothing.csv"))

    def test_a_wrong_header(self):
        self.assertIn("bad.csv:2: a header of no CSV that is known", self.refused(self.write("bad.csv", "# a\nsize,time\n8,1\n")))

    def test_no_rows(self):
        self.assertIn("empty.csv: no rows", self.refused(self.write("empty.csv", "# nothing\n")))
        self.assertIn("empty.csv: no rows", self.refused(self.write("empty.csv", HEADER)))
        self.assertIn("no rows to draw: all sizes", self.refused(self.write("zero.csv", HEADER + "all_reduce,line,ring,2,0,1,0,0,0\n")))
        self.assertIn("with what --only asks for", self.refused(self.write("good.csv", GOOD), "--only", "algorithm=tree"))

    def test_bad_rows(self):
        self.assertIn("a.csv:3: 5 fields, the header has 9", self.refused(self.write("a.csv", HEADER + "\nall_reduce,line,ring,2,8\n")))
        for cell in ("fast", "-1", "nan"):
            said = self.refused(self.write("a.csv", GOOD.replace("3.5000", cell)))
            self.assertIn(f'a.csv:3: time_us is no number: "{cell}"', said)
        self.assertIn("a.csv:3: a row without ranks", self.refused(self.write("a.csv", GOOD.replace("two_shot,2,65536", "two_shot,,65536"))))

    def test_bytes_that_are_no_text(self):
        (self.folder / "a.csv").write_bytes(b"\xff\xfe\0")
        self.assertIn("a.csv: is no text", self.refused("a.csv"))

    def test_a_wrong_command_line(self):
        self.write("good.csv", GOOD)
        for arguments in ([], ["good.csv", "--colour"], ["good.csv", "--y", "cubic"], ["good.csv", "--only", "size=8"], ["a="],
                          ["good.csv", "--by", "ranks"]):
            self.assertIn("usage: ", self.refused(*arguments, status=2))

    def test_no_matplotlib(self):
        (self.folder / "hidden/matplotlib").mkdir(parents=True)
        self.write("hidden/matplotlib/__init__.py", "raise ImportError('hidden')\n")
        ran = self.plot(self.write("good.csv", GOOD), path=str(self.folder / "hidden"))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("apt-get install python3-matplotlib", ran.stderr)
        self.assertEqual(self.plot("--help", path=str(self.folder / "hidden")).returncode, 0)


def loaded(path):
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, loader))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(path.parent))  # as for a script
    try:
        loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


class Compared(InFolder):
    """What compare writes is what plot reads."""

    def results(self):
        compare = loaded(COMPARE)
        results, rows = compare.Results(), []
        for turn in (0, 1):
            for library, us in (("tutti", 2.0), ("ompi", 4.0), ("mpich", 5.0), ("limits", 1.0)):
                for collective in ("all_reduce", "barrier") if library != "limits" else ("exchange",):
                    for size in (8, 1024) if collective == "all_reduce" else (0,):
                        row = [collective, "2", str(size), "sync", "9", str(us + turn + size / 1024), "1", "9", "0"]
                        results.add(library, turn, row)
                        rows.append([library, *row, turn])
        return compare, results, rows

    def test_headers_are_known(self):
        plot, compare = loaded(PLOT), loaded(COMPARE)
        self.assertEqual((plot.TABLE, plot.RUNS), (compare.TABLE, compare.FIELDS))
        self.assertIn(",".join(plot.PERF), (ROOT / "perf/table.cpp").read_text(encoding="utf-8"))
        self.assertEqual(",".join(plot.PERF) + "\n", HEADER)

    def test_the_table_as_csv(self):
        compare, results, _ = self.results()
        compare.write_table(results, types.SimpleNamespace(csv=self.folder / "table.csv", ranks=2, contenders=compare.CONTENDERS),
                            "0.1 us")
        text = (self.folder / "table.csv").read_text(encoding="utf-8")
        comments = [line.split(":")[0] for line in text.splitlines() if line.startswith("#")]
        self.assertEqual(comments, ["# command", "# machine", "# date", "# distance of the cores"])
        first = next(csv.DictReader(io.StringIO("".join(text.splitlines(True)[4:]))))
        self.assertEqual([first[c] for c in ("library", "bytes", "time_us", "time_us_min", "peer", "peer_us", "verdict", "limit_of")],
                         ["tutti", "8", "2.51", "2.01", "ompi", "4.51", "faster", "exchange"])
        if PYTHON:
            self.assertEqual(curves(self.drawn("table.csv", "--only", "collective=all_reduce")),
                             ["curve-all_reduce-tutti", "curve-all_reduce-ompi"])

    def test_times_with_cores_elsewhere_are_left_out(self):
        compare = loaded(COMPARE)
        results = compare.Results()
        for turn, distances in enumerate([("0.1", "0.11", "0.3"), ("0.3", "0.1", "0.1"), ("0.1", "0.1", "0.12"), ("0.1", "0.02")]):
            for i, distance in enumerate(distances):
                results.add("tutti", turn, ["distance", "2", "0", "sync", "11", distance, "0", "0", "0"])
                results.add("tutti", turn, ["all_reduce", "2", str(8 << i), "sync", "9", str(turn + 1), "1", "9", "0"])
        results.add("tutti", 4, ["all_reduce", "2", "8", "sync", "9", "5", "1", "9", "0"])  # this run has measured no distance
        self.assertEqual(results.fewest_rounds(), 2)
        self.assertIn("6 of 11 times", results.keep_one_distance())
        kept = {size: sorted(results.times[("all_reduce", size, "sync")].get("tutti", {})) for size in (8, 16, 32)}
        self.assertEqual(kept, {8: [0, 2, 4], 16: [1, 2], 32: [1, 2]})

    @draws
    def test_all_measurements(self):
        compare, _, rows = self.results()
        with (self.folder / "runs.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([compare.FIELDS, *rows])
        self.assertEqual(curves(self.drawn("runs.csv", "--only", "collective=all_reduce")),
                         [f"curve-all_reduce-{library}" for library in ("tutti", "ompi", "mpich")])


@draws
class Figures(InFolder):
    def test_every_picture_of_the_docs_can_be_drawn(self):
        ran = subprocess.run([PYTHON, str(DRAW), str(self.folder)], capture_output=True, text=True, check=False)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        made, kept = ({path.name for path in folder.glob("*.svg")} for folder in (self.folder, DRAW.parent))
        self.assertTrue(made)
        self.assertEqual(made, kept)
        for name in made:  # other releases of matplotlib may lay them out differently, but the curves are these
            self.assertEqual(curves((self.folder / name).read_bytes()), curves((DRAW.parent / name).read_bytes()), name)


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if program.result.wasSuccessful() and program.result.skipped:
        print("skipped:", program.result.skipped[0][1])
        sys.exit(SKIPPED)
    sys.exit(0 if program.result.wasSuccessful() else 1)
