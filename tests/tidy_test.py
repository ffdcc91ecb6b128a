#!/usr/bin/env python3
"""Does tests/tidy.py find what it is for? Each rule is broken once in a small tree, and nothing else is said."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TIDY = pathlib.Path(__file__).with_name("tidy.py")
PROGRAM = "/* The first program. */\nint main(void) { return 0; }\n"
CLEAN = {
    "README.md": f"```c\n{PROGRAM}```\n[docs](docs/a.md)\n",
    "docs/a.md": "Words.\n",
    "examples/first.c": PROGRAM,
    "examples/CMakeLists.txt": "add_executable(first first.c)\n",
    "src/CMakeLists.txt": "add_library(a plan/a.cpp)\nforeach(x b)\n  add_library(${x} plan/${x}_of.cpp)\nendforeach()\n",
    "src/base/e.h": "// Errors.\n#include <vector>\n",
    "src/plan/a.h": '// A.\n#include "base/e.h"\n',
    "src/plan/a.cpp": '#include "plan/a.h"\n',
    "src/plan/list.inc": "// The list.\nPLAN(d)\n",
    "src/plan/d.cpp": "// D.\n",
    "src/plan/b_of.cpp": "// B.\nnamespace t {\nint f() { return '{' + 1'000 /* } */; }\n}\n",
}
LONG = "  ++x;\n" * 75


def tidy(changes):
    """The lines that tidy.py prints for the clean tree with `changes` applied."""
    with tempfile.TemporaryDirectory() as tree:
        for name, text in {**CLEAN, **changes}.items():
            path = pathlib.Path(tree, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, str(TIDY), tree], capture_output=True, text=True, check=False)
        lines = run.stdout.splitlines() if run.returncode else []
        return lines + run.stderr.splitlines()


class Tidy(unittest.TestCase):
    def one(self, name, text, expected):
        lines = tidy({name: text})
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(f"{name}:"), lines)
        self.assertIn(expected, lines[0])

    def test_says_nothing_about_a_clean_tree(self):
        self.assertEqual(tidy({}), [])

    def test_refuses_a_class_that_fits_no_head(self):
        functions = "".join(f"  void f{i}(int at = 0) const {{ (void)at; }}\n" for i in range(26))
        self.one("src/plan/a.h", f"// A.\nclass Much final : public Base {{\n{functions}}};\n", "Much has 26 functions and 0 members")
        members = "".join(f"  std::map<int, std::vector<int>> m{i}_ = {{}};\n" for i in range(16))
        few = "".join(f"  int f{i}();\n" for i in range(6))
        self.one("src/plan/a.h", f"// A.\nclass Wide {{\n public:\n{few}\n private:\n{members}}};\n", "Wide has 6 functions and 16 members")
        self.assertEqual(tidy({"src/plan/a.h": f"// A.\nstruct Record {{\n{members}}};\n"}), [])
        other = "  Much(const Much&) = delete;\n  static constexpr int most = 3;\n  using Base::f;\n  struct Part { int a; };\n"
        fits = functions.replace("  void f25(int at = 0) const { (void)at; }\n", "")
        self.assertEqual(tidy({"src/plan/a.h": f"// A.\nclass Much {{\n{fits}{other}}};\n"}), [])

    def test_refuses_an_arrow_upwards(self):
        self.one("src/base/e.h", '// E.\n#include "plan/a.h"\n', ':2: src/base must not include "plan/a.h"')

    def test_knows_each_room_by_its_own_row(self):
        above = '// A.\n#include "gpu/gpu_context.h"\n'
        self.one("src/comm/a.h", above, ':2: src/comm must not include "gpu/gpu_context.h"')
        self.assertEqual(tidy({"src/init/a.h": above}), [])
        self.one("src/topology/graph/a.h", '// A.\n#include "topology/search/rings.h"\n', "must not include")
        self.assertEqual(tidy({"src/net/a.h": "// A.\n#include <net/if.h>\n"}), [])

    def test_wants_numbers_from_outside_checked(self):
        kind = "src/base/kind.h", "// K.\nenum class Kind : int { a, last = a };\n"
        cast = "// A.\nauto f(int x) { return static_cast<Kind>(x); }\n"
        lines = tidy(dict([kind, ("src/net/a.h", cast)]))
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("src/net/a.h:2: a number may come from anywhere here: enumerator<Kind>()", lines[0])
        self.assertEqual(tidy(dict([kind, ("src/plan/c.h", cast)])), [])

    def test_asks_for_a_row_for_each_room(self):
        self.one("src/attic/a.h", "// A.\n", "src/attic is no room")

    def test_counts_the_files_of_a_room(self):
        crowd = {f"src/net/a{i}.h": "// A.\n" for i in range(46)}
        lines = tidy(crowd)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("src/net has 46 sources", lines[0])

    def test_keeps_the_public_header_at_the_boundary(self):
        self.one("src/plan/a.h", "// A.\n#include <tutti/tutti.h>\n", "must not include")

    def test_keeps_examples_outside(self):
        lines = tidy({"examples/b.h": '// B.\n#include "base/e.h"\n'})
        self.assertEqual(len(lines), 1, lines)

    def test_keeps_clocks_where_they_are_handed_in_from(self):
        read = "// E.\nauto now() { return std::chrono::steady_clock::now(); }\n"
        self.one("src/base/e.h", read, ":2: ask the System for the time")
        self.one("src/base/e.h", read.replace("std::chrono::steady_clock::now()", "clock_gettime(0, 0)"), ":2: ask the System")
        self.assertEqual(tidy({"src/base/system.cpp": "// S.\nint now() { return clock_gettime(0, 0); }\n",
                               "src/base/CMakeLists.txt": "add_library(e system.cpp)\n"}), [])
        self.assertEqual(tidy({"examples/first.h": read}), [])

    def test_finds_descriptors_that_may_get_the_number_of_a_standard_stream(self):
        makes = ["::open(n, 0)", "::socket(1, 2, 3)", "::accept4(f, 0, 0, 0)", "eventfd(0, 0)", "::fcntl(f, F_DUPFD_CLOEXEC, 0)",
                 "::syscall(SYS_pidfd_open, p, 0)", "::mkostemp(n, 0)", "std::fopen(n, m)"]
        code = "".join(f"int f{i}() {{ return {make}; }}\n" for i, make in enumerate(makes))
        beside = "".join(f"int g{i}() {{ return g(above_stdio(h)) + {make}; }}\n" for i, make in enumerate(makes))
        inside = "".join(f"int h{i}() {{ return above_stdio(static_cast<int>({make})); }}\n" for i, make in enumerate(makes))
        lines = tidy({"src/base/e.h": "// E.\n" + code + beside + inside, "examples/e.h": "// E.\n" + code})
        self.assertEqual(len(lines), 2 * len(makes), lines)
        for i, line in enumerate(lines):
            self.assertTrue(line.startswith(f"src/base/e.h:{i + 2}: ") and "above_stdio" in line, line)
        self.one("src/base/e.h", "// E.\nvoid f() { std::ofstream file(n); }\n", "above_stdio")
        self.one("src/base/e.h", "// E.\nint f() { return ::recvmsg(s, m, 0); }\n", "above_stdio")
        self.assertEqual(tidy({"src/base/e.h": "// E. Not ::open(n).\nauto f() { return Wire::open(s) + w.socket(); }\n"}), [])

    def test_finds_what_prints_past_the_log(self):
        prints = ["fprintf(f, n)", "std::cerr << n", "perror(n)", "::write(STDERR_FILENO, n, 1)", "std::puts(n)"]
        lines = tidy({"src/base/e.h": "// E.\n" + "".join(f"void f{i}() {{ {one}; }}\n" for i, one in enumerate(prints))})
        self.assertEqual(len(lines), len(prints), lines)
        for i, line in enumerate(lines):
            self.assertTrue(line.startswith(f"src/base/e.h:{i + 2}: ") and "Log or LineWriter" in line, line)

    def test_counts_the_lines_of_a_file(self):
        self.one("src/base/e.h", "// E.\n" * 401, "401 lines")
        self.one("docs/a.py", "# E.\n" * 501, "501 lines")

    def test_counts_the_lines_of_a_function(self):
        body = "// B.\nnamespace t {\nstruct S {\n  int g(int x) const {\n" + LONG + "    return x;\n  }\n};\n}\n"
        self.one("src/plan/b_of.cpp", body, ":4: g has 78 lines")

    def test_does_not_take_a_type_or_a_table_for_a_function(self):
        self.assertEqual(tidy({"src/plan/b_of.cpp": "// B.\nstruct S {\n" + "  int f = 0;\n" * 75 + "};\n"}), [])
        self.assertEqual(tidy({"src/plan/b_of.cpp": "// B.\nconst int t[] = {\n" + "  f(1),\n" * 75 + "};\n"}), [])

    def test_asks_what_a_file_is_for(self):
        self.one("src/base/e.h", "#pragma once\n", ":1: the first line")

    def test_finds_sources_that_nobody_builds(self):
        self.one("src/plan/c.cpp", "// C.\n", "nobody builds it")

    def test_finds_waiting_for_a_time(self):
        self.one("src/plan/b_of.cpp", "// B.\nvoid f() { std::this_thread::sleep" + "_for(1s); }\n", ":2: wait for")
        self.assertEqual(tidy({"src/plan/b_of.cpp": "// B. No sleep" + "(1).\n"}), [])

    def test_finds_words_that_do_not_belong(self):
        self.one("src/base/e.h", "// E.\n// TO" + "DO later\n", ":2: ")
        self.one("docs/a.md", "See /wo" + "rk/x.\n", "one machine")

    def test_finds_names_that_the_field_has_better_ones_for(self):
        self.one("src/base/e.h", "// E.\nint la" + "ne = 1;\n", ":2: ")
        self.one("src/base/e.h", "// E.\nenum class Sta" + "ge { a };\n", "is called State now")
        self.one("docs/a.md", "A call li" + "ne is read.\n", "call descriptor")
        self.assertEqual(tidy({"src/base/e.h": "// E. PCIe la" + "nes.\nauto n = hn::La" + "nes(d);\n"}), [])

    def test_finds_links_to_nowhere(self):
        self.one("docs/a.md", "[b](b.md)\n", "b.md")

    def test_compares_the_settings_of_the_readme(self):
        settings = {"docs/settings.md": "| `TUTTI_A` | 1 |\n"}
        self.assertEqual(tidy({**settings, "README.md": CLEAN["README.md"] + "| `TUTTI_A` | 1 |\n"}), [])
        lines = tidy({**settings, "README.md": CLEAN["README.md"] + "| `TUTTI_A` | 2 |\n"})
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("not one of docs/settings.md", lines[0])

    def test_compares_the_readme_with_the_first_program(self):
        self.one("README.md", "```c\nint x;\n```\n", "not the text of examples/first.c")


if __name__ == "__main__":
    unittest.main()
