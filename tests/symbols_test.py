#!/usr/bin/env python3
"""Does tests/symbols.py see what it is for? Tiny libraries with one fault each are compiled and shown to it."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SYMBOLS = pathlib.Path(__file__).with_name("symbols.py")
CXX = os.environ.get("CXX", "c++")


class Symbols(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def says(self, *arguments):
        run = subprocess.run([sys.executable, str(SYMBOLS), *map(str, arguments)], capture_output=True, text=True, check=False)
        self.assertEqual(run.stderr, "")
        return run.stdout.splitlines() if run.returncode else []

    def build(self, code, *flags):
        (self.folder / "a.cpp").write_text(code, encoding="utf-8")
        built = self.folder / "built.o"
        subprocess.run([CXX, "-fPIC", *flags, "-o", built, self.folder / "a.cpp"], check=True)
        return built

    def exports(self, code, header):
        (self.folder / "t.h").write_text(header, encoding="utf-8")
        return self.says("exports", self.build(code, "-shared"), self.folder / "t.h")

    def state(self, code):
        built = self.build(code, "-c", "-O1")
        archive = self.folder / "liba.a"
        subprocess.run(["ar", "rc", archive, built.rename(self.folder / "a.cpp.o")], check=True)
        return self.says("state", self.folder, archive)

    def test_exports(self):
        header = "TUTTI_API int tuttiA(void);\nTUTTI_API const char* tuttiB(int x,\n   int y);\n"
        a, b = 'extern "C" int tuttiA() { return 1; }', 'extern "C" const char* tuttiB(int, int) { return ""; }'
        self.assertEqual(self.exports(a + b, header), [])
        self.assertIn("exports _Z1gv", self.exports(a + b + "int g() { return 1; }", header)[0])
        self.assertIn("declares tuttiB", self.exports(a, header)[0])
        self.assertIn("no TUTTI_API", self.exports("", "")[0])

    def test_state(self):
        self.assertEqual(self.state("extern const char* const t[] = {\"a\"}; int f() { static const int x = 3; return x; }"), [])
        self.assertEqual(self.state("struct S { ~S(); }; void g(); void f() { S s; g(); }"), [])
        self.assertEqual(self.state("#include <string>\nint f(int i) { static const std::string x(3, 'a'); return x[i]; }"), [])
        self.assertEqual(len(self.state("#include <string>\nint f(int i) { static std::string x(3, 'a'); return x[i]; }")), 2)
        self.assertIn("table", self.state("struct T { int x; }; int f() { static auto* const table = new T; return table->x++; }")[0])
        self.assertEqual(self.state('extern const char* const names[] = {"a"};'), [])
        self.assertIn("last", self.state("const char* last = nullptr;")[0])
        self.assertIn("tutti::calls", self.state("namespace tutti { int calls = 0; }")[0])
        self.assertIn("calls", self.state("int f() { static int calls = 1; return calls++; }")[0])
        self.assertIn(".tbss", self.state("thread_local int depth; int f() { return ++depth; }")[0])


if __name__ == "__main__":
    unittest.main()
