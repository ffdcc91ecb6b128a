#!/usr/bin/env python3
"""Does the digest by which ranks of different builds refuse each other follow the code, and nothing else?"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE = sys.argv.pop(1) if len(sys.argv) > 1 else "cmake"
SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "cmake" / "source_digest.cmake"
HEADER = """// What a message begins with.
struct Head {
  unsigned bytes;  ///< length; without this line; "[odd] \\" characters
};
"""


class SourceDigest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def digest(self, files, place="here"):
        root = self.folder / place
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        (root / "list").write_text("".join(f"{root / name}\n" for name in files), encoding="utf-8")
        made = root / "made.cpp"
        subprocess.run([CMAKE, f"-DROOT={root}", f"-DLIST={root / 'list'}", f"-DOUTPUT={made}", "-P", str(SCRIPT)], check=True)
        return made.read_text(encoding="utf-8")

    def test_the_place_makes_no_difference(self):
        files = {"src/head.h": HEADER, "src/head.cpp": "int x;\n"}
        self.assertEqual(self.digest(files), self.digest(files, "elsewhere"))

    def test_comments_and_indentation_make_no_difference(self):
        same = HEADER.replace("What", "That").replace("  unsigned", "\n    unsigned").replace("///< length", "///< size")
        self.assertEqual(self.digest({"head.h": HEADER}), self.digest({"head.h": same}))

    def test_code_makes_a_difference(self):
        digests = {self.digest({"head.h": text}) for text in
                   (HEADER, HEADER.replace("unsigned", "long"), HEADER.replace("bytes;", "bytes; unsigned kind;"))}
        self.assertEqual(len(digests), 3)

    def test_an_unchanged_digest_is_not_written_again(self):
        self.digest({"head.h": HEADER})
        before = (self.folder / "here/made.cpp").stat().st_mtime_ns
        self.digest({"head.h": "// more\n" + HEADER})
        self.assertEqual((self.folder / "here/made.cpp").stat().st_mtime_ns, before)


if __name__ == "__main__":
    unittest.main()
