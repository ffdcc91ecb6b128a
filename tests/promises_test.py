#!/usr/bin/env python3
"""Does each promise of README.md and SECURITY.md stand in docs/promises.md, with tests that exist?

Usage: tests/promises_test.py SOURCES
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1]
PROMISING = ("README.md", "SECURITY.md")  # in these no promise is missing
WORDS = ("never", "always", "at once", "no hangs", "no other", "nothing", "at most", "every other rank", "no value", "no file",
         "same bits")
ABSOLUTE = re.compile(r"\b(" + "|".join(WORDS) + r")\b", re.I)
HEADING = re.compile(r"^#+ ([\w./]+\.(?:md|h))$", re.M)
ROW = re.compile(r'^\| "(.+)" \| (.+) \|$', re.M)
NAMED = re.compile(r"`([^`:]+): ([^`]+)`")
NONE = "none yet"
UNTESTED = 0  # promises without a test; never more of them


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def normalised(text):
    """In one line, without emphasis and the stars that lines of comments begin with."""
    return " ".join(re.sub(r"^\s*/?\*+/?(?=\s)", "", text, flags=re.M).replace("**", "").split())


def promises(page):
    """Of each document, its promises and the cells that name their tests."""
    _, *parts = HEADING.split(page)
    return {name: ROW.findall(text) for name, text in zip(parts[::2], parts[1::2])}


def blocks(text):
    """Paragraphs and items of lists, each in one line; without code and tables."""
    prose = re.sub(r"^```.*?^```$|^\|.*?$", "", text, flags=re.M | re.S)
    return [normalised(block) for block in re.split(r"\n\s*\n|\n(?=\s*- )", prose)]


def absolute_sentences(block):
    """Where in a block a sentence is that promises something absolutely."""
    for sentence in re.finditer(r"\S.*?(?:[.:;](?=\s)|$)", block):
        if ABSOLUTE.search(sentence[0]):
            yield sentence.span()


def unlisted(text, listed):
    """The absolute sentences of a document that share no word with a promise of the list."""
    missing = []
    for block in blocks(text):
        known = [found.span() for promise in listed for found in re.finditer(re.escape(promise), block)]
        for begin, end in absolute_sentences(block):
            if not any(first < end and begin < last for first, last in known):
                missing.append(block[begin:end])
    return missing


def in_ctest(name):
    lists = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").glob("*.cmake")))
    stem = re.escape(name.removesuffix("_mutate_test"))
    made = rf"\btutti_fuzz\({stem}\b" if name.endswith("_mutate_test") else rf"\badd_test\(NAME {stem}\s"
    return re.search(made, lists) is not None


def exists(file, name):
    if not (ROOT / file).is_file():
        return False
    suite, dot, case = name.partition(".")
    if dot:
        return re.search(rf"^TEST(_F|_P)?\({suite},\s*{case}\)", text_of(file), re.M) is not None
    if file.endswith(".py"):
        return re.search(rf"^\s*def {name}\(", text_of(file), re.M) is not None
    return in_ctest(name)


class Promises(unittest.TestCase):
    def setUp(self):
        self.page = promises(text_of("docs/promises.md"))
        self.assertLessEqual(set(PROMISING), set(self.page))

    def test_stand_in_their_documents(self):
        for document, rows in self.page.items():
            self.assertTrue(rows, document)
            text = normalised(text_of(document))
            for promise, _ in rows:
                with self.subTest(document):
                    self.assertIn(promise, text)

    def test_have_tests_that_exist(self):
        cells = [(promise, cell) for rows in self.page.values() for promise, cell in rows]
        self.assertEqual(sum(cell == NONE for _, cell in cells), UNTESTED)
        for promise, cell in cells:
            tests = NAMED.findall(cell)
            with self.subTest(promise):
                self.assertEqual(cell, ", ".join(f"`{file}: {name}`" for file, name in tests) or NONE)
                self.assertEqual([test for test in tests if not exists(*test)], [])

    def test_are_complete(self):
        for document in PROMISING:
            listed = [promise for promise, _ in self.page[document]]
            self.assertEqual(unlisted(text_of(document), listed), [], document)

    def test_a_missing_promise_is_noticed(self):
        text = "It works.\n\n- It never\n  fails: yes. At most once.\n\n```\nalways\n```\n| never | x |\n"
        self.assertEqual(unlisted(text, ["It never fails"]), ["At most once."])


if __name__ == "__main__":
    unittest.main()
