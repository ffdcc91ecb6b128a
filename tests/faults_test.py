#!/usr/bin/env python3
"""docs/faults.md lists how a lost rank is found, put into words and met; this compares its tables with the code.

Usage: tests/faults_test.py [TREE]     exit status 1 and one line per difference
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

# Words of losses; whoever else writes them has a second way to tell one.
WORDS = re.compile(r'[}"] ?lost: |killed or exited without|has been stopped for|no sign of life for|nothing was received for|does not answer any more|answers its peers no more|connection was reset|invalid control message')
HOME = "src/comm/loss.cpp"


def rows(page, column):
    """Cells of the rows of the table whose first column is named so."""
    table = re.search(rf"^\| {column} \|.*\n\|[ -|]*\n((?:\|.*\n)+)", page, re.M)
    for line in table.group(1).splitlines() if table else []:
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def code_of(tree):
    return {str(path.relative_to(tree)): re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
            for path in sorted((tree / "src").rglob("*")) if path.suffix in (".h", ".cpp")}


def differences(tree):
    page = (tree / "docs/faults.md").read_text(encoding="utf-8")
    code = code_of(tree)
    declared = re.search(r"enum class LossKind[^{]*\{(.*?)\}", code["src/comm/loss.h"], re.S).group(1)
    kinds = {name for name in re.findall(r"^\s*(\w+),", declared, re.M)}
    listed = {cells[0].strip("`"): set(re.findall(r"`(src/[\w/.]+)`", cells[2])) for cells in rows(page, "kind")}
    if not kinds or not listed:
        yield "no kinds of losses in src/comm/loss.h, or no table of them in docs/faults.md"
    for kind in sorted(kinds ^ listed.keys()):
        yield f"LossKind::{kind} is {'not in docs/faults.md' if kind in kinds else 'in docs/faults.md alone'}"
    for kind in sorted(kinds & listed.keys()):
        said = re.compile(rf"(?<!case )\bLossKind::{kind}\b")
        # A member's initial value says nothing.
        found = {path for path, text in code.items() if path != "src/comm/loss.h" and said.search(text)}
        for path in sorted(found ^ listed[kind]):
            yield f"{path} {'finds' if path in found else 'does not find'} LossKind::{kind}; docs/faults.md says otherwise"
    for path, text in code.items():
        for match in WORDS.finditer(text) if path != HOME else ():
            yield f'{path}:{text.count(chr(10), 0, match.start()) + 1}: "{match.group()}": say a LossKind, whose words are in {HOME}'
    operations = {name for text in code.values()
                  for name, body in re.findall(r"\bclass (\w+)[^;{}]*: public [^{]*\{(.*?)\n\};", text, re.S)
                  if re.search(r"\bpoll_peers\(\) (?:override|final)", body)}
    meeting = {cells[0].strip("`") for cells in rows(page, "operation")}
    for name in sorted(operations ^ meeting):
        yield f"{name} {'looks for lost ranks and is not in' if name in operations else 'is in'} the last table of docs/faults.md"
    for function, path in re.findall(r"^\| `(\w+(?:::\w+)?)` \(`(src/[\w/.]+)`\)", page, re.M):
        if not re.search(rf"\b{function}\(", code.get(path, "")):
            yield f"{path} has no {function}"


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    found = list(differences(tree))
    print("\n".join(found) or "docs/faults.md says what the code does")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
