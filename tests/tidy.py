#!/usr/bin/env python3
"""What a compiler does not check: who may include whom, lengths, sizes of classes, unlisted files, words that do not belong, stale links.

Usage: tests/tidy.py [TREE]     exit status 1 and one line per finding, file:line: what is wrong
The rooms are the table of docs/architecture.md.
"""
import pathlib
import re
import shutil
import subprocess
import sys

import tidy_classes

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()

# The rooms and what each may include are a table of this page: | `room` | answers | face | may include |
ROOMS_PAGE = "docs/architecture.md"
ROOM_FILES_MAX = 45
ROOMS_OF_FOLDERS = ("src/comm/transports",)  # a part is a folder of its own there
CROWDED_ROOMS = {"src/algorithms": 65}  # a file for each
# What is built of rooms: the library, and what stands beside it.
HOUSES = ("src", "analysis", "adapters")

FILE_LINES_MAX = 500
SOURCE_LINES_MAX = 400  # of what is built into the library
FUNCTION_LINES_MAX = 70
CODE = {".h", ".cpp", ".c", ".cu", ".cuh", ".inc"}

WORDS_FILE = pathlib.Path(__file__).with_name("tidy_words.txt")
# SIMD, PCIe and NVIDIA's own words, where ours would be wrong.
OLD_NAMES_ARE_RIGHT = re.compile(r"src/exec/\w+-inl\.h|(?:src/topology|analysis/pictures)/|tests/(?:unit/(?:topology|nvml)|fuzz/topology|machines)|tests/tidy")
CLOCK = re.compile(r"\b(?:(?:steady|system|high_resolution)_clock|clock_gettime|gettimeofday)\b")
CLOCK_HOMES = ("src/base/system.cpp",)  # what asks the operating system
# What makes a descriptor, wherever it is not an argument of above_stdio; names that ours have too only with a bare "::".
DESCRIPTOR = re.compile(
    r"(?<![\w>:])::(?:open|openat|creat|socket|accept|dup|pipe)\s*\("
    r"|\b(?:openat2|accept4|socketpair|pipe2|dup[23]|memfd_(?:create|secret)|eventfd|epoll_create1?|timerfd_create|signalfd|inotify_init1?"
    r"|userfaultfd|pidfd_(?:open|getfd)|mko?stemps?|posix_openpt|shm_open|mq_open|perf_event_open|f(?:re|d)?open|tmpfile|popen)\s*\("
    r"|\bF_DUPFD\w*|\bSYS_(?:memfd|pidfd|open|socket|accept|eventfd|epoll_create|userfaultfd|perf_event|dup|pipe)\w*"
    r"|\bstd::(?:basic_)?[io]?fstream\b|\bopendir\s*\(|\bdirectory_iterator\b")
# What brings one some other way: its file must pass it through above_stdio.
BRINGS_DESCRIPTOR = re.compile(r"\brecvmsg\s*\(|\bSO_PEERPIDFD\b|\bmemory_export\s*\(")
DESCRIPTOR_HOMES = ("src/base/descriptors.cpp",)
PRINTS = re.compile(r"\b(?:std(?:err|out)|STD(?:ERR|OUT)_FILENO|std::w?c(?:err|out|log)|perror|v?[fd]?printf|f?puts|putchar|"
                    r"fmt::print(?:ln)?)\b")
PRINT_HOMES = ("src/base/descriptors.cpp", "src/base/log.cpp")
# Rooms to which numbers come from other processes; they become enumerators by base/enumeration.h alone.
FOREIGN_NUMBERS = ("src/bootstrap/", "src/call/", "src/collective/", "src/comm/", "src/init/", "src/launch/", "src/net/",
                   "src/place/", "src/transport/")
ENUMERATION = re.compile(r"\benum(?: class)? (\w+)")
SLEEP = re.compile(r"\b(?:sleep_for|this_thread::sleep_until|usleep|nanosleep|sleep(?=\s*\(\s*\d))\s*\(")

found = []


def report(path, line, what):
    found.append(f"{path.relative_to(ROOT)}:{line}: {what}")


def files():
    """Tracked files and new ones that git does not ignore; without git or a checkout, all but build trees and .git."""
    listed = b""
    if shutil.which("git"):
        git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(git, capture_output=True, check=False).stdout
    if listed:
        paths = [ROOT / name for name in listed.decode().split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if path.relative_to(ROOT).parts[0] not in ("build", ".git")]
    return sorted(path for path in paths if path.is_file())


def text_of(path):
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None  # not text


def bare(code):
    """Code of the same lines, without comments, literals and preprocessor lines."""
    token = re.compile(
        r'R"(?P<tag>[^()\s\\]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
        re.S)
    lines = lambda match: "\n" * match.group().count("\n")
    code = token.sub(lambda match: (" " if match.group()[0] == "/" else '""') + lines(match), code)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lines, code, flags=re.M)


def scopes(code):
    """Yields (kind, head, first line, last line, depth of functions around it) of every brace pair; kind is one of
    function, type, namespace, other. `head` is the text before the brace since the last ; { or }."""
    stack, head_start, line, head_line = [], 0, 1, 1
    for at, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == ";" or char == "}":
            if char == "}" and stack:
                kind, head, first, functions = stack.pop()
                yield kind, head, first, line, functions
            head_start, head_line = at + 1, line
        elif char == "{":
            head = code[head_start:at]
            lead = len(head) - len(head.lstrip())
            first = head_line + head[:lead].count("\n")
            functions = sum(1 for scope in stack if scope[0] == "function")
            stack.append((kind_of(head, stack), " ".join(head.split()), first, functions))
            head_start, head_line = at + 1, line


def kind_of(head, stack):
    if re.search(r"\bnamespace\b[^()]*$", head) or re.search(r'\bextern\s*""\s*$', head):
        return "namespace"
    if re.search(r"\b(class|struct|union|enum)\b[^()=]*$", head):
        return "type"
    outside = all(scope[0] in ("namespace", "type") for scope in stack)
    return "function" if outside and "(" in head and not re.search(r"=\s*$|^\s*=", head) else "other"


def check_lengths(path, text):
    lines = text.count("\n")
    most = SOURCE_LINES_MAX if path.relative_to(ROOT).parts[0] in (*HOUSES, "kernels", "include") else FILE_LINES_MAX
    if lines > most:
        report(path, lines, f"{lines} lines; a file here has at most {most}")
    if path.suffix not in CODE:
        return
    for kind, head, first, last, _ in scopes(bare(text)):
        if kind == "function" and last - first + 1 > FUNCTION_LINES_MAX:
            name = (re.findall(r"([\w:~]+)\s*\(", head) or ["?"])[0]
            report(path, first, f"{name} has {last - first + 1} lines; a function has at most {FUNCTION_LINES_MAX}")


def read_rooms():
    """Room → what its #include "..." may begin with, itself first."""
    page = ROOT / ROOMS_PAGE
    if not page.exists():
        page = pathlib.Path(__file__).resolve().parent.parent / ROOMS_PAGE
    rooms = {}
    for line in text_of(page).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        room = re.fullmatch(r"`([\w/]+)`", cells[0])
        if line.startswith("|") and room and len(cells) == 4:
            own = room.group(1).removeprefix("src/")
            named = [name for name in re.split(r",\s*", cells[3].rstrip(" |")) if name not in ("", "–")]
            rooms[room.group(1)] = [own + "/"] + [name if "." in name else name + "/" for name in named]
    return rooms


def check_includes(path, text, rooms):
    name = str(path.relative_to(ROOT))
    homes = [room for room in rooms if name.startswith(room + "/")]
    if not homes or name.startswith(("perf/micro/", "perf/compare/")):
        return
    home = max(homes, key=len)
    ours = {prefix.split("/")[0] for allowed in rooms.values() for prefix in allowed} | {"tests", *HOUSES}
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        target = match.group(1) if match else ""
        neighbour = '"' in line and (path.parent / target).exists()
        if not target or (target.split("/")[0] not in ours and not neighbour):
            continue  # nothing of ours
        if "<" in line and not target.startswith("tutti/"):
            continue  # the system's <net/if.h>
        if neighbour and "/" not in target and not home.startswith((*HOUSES, "kernels")):
            continue
        if not any(target.startswith(prefix) for prefix in rooms[home]):
            report(path, number, f'{home} must not include "{target}" (allowed: {", ".join(rooms[home])})')


def check_rooms(paths, rooms):
    """Each folder of src is a room of the table, and none is crowded."""
    folders = {}
    for path in paths:
        parent = path.relative_to(ROOT).parent
        if parent.parts[:1] and parent.parts[0] in HOUSES and len(parent.parts) > 1:
            folders.setdefault(str(parent), []).append(path)
    for folder, inside in sorted(folders.items()):
        sources = [path for path in inside if path.suffix in CODE]
        if sources and folder not in rooms and str(pathlib.PurePath(folder).parent) not in ROOMS_OF_FOLDERS:
            report(inside[0], 1, f"{folder} is no room of {ROOMS_PAGE}")
        most = CROWDED_ROOMS.get(folder, ROOM_FILES_MAX)
        if len(sources) > most:
            report(sources[0], 1, f"{folder} has {len(sources)} sources; it may have {most}")


def check_first_line(path, text):
    pair = re.match(r'#include "(?:[^"]*/)?(\w+)\.h"', text)  # that header has said it
    if not (pair and path.stem in (pair.group(1), pair.group(1) + "_test")) and not text.startswith(("//", "/*")):
        report(path, 1, "the first line says in a comment what question the file answers")


def check_waiting(path, text):
    for number, line in enumerate(bare(text).splitlines(), 1):
        if SLEEP.search(line):
            report(path, number, "wait for a condition with a limit, not for a time")


def check_clocks(path, text):
    if str(path.relative_to(ROOT)) in CLOCK_HOMES:
        return
    for number, line in enumerate(bare(text).splitlines(), 1):
        if CLOCK.search(line):
            report(path, number, "ask the System for the time, so that tests can say what it is")


def check_enumerators(texts):
    """texts: by path. Names of types are enough: no enumeration has that of another kind of type."""
    sources = {path: text for path, text in texts.items() if str(path.relative_to(ROOT)).startswith(("src/", "kernels/"))}
    enumerations = {name for text in sources.values() for name in ENUMERATION.findall(bare(text))}
    made = re.compile(rf"\bstatic_cast<(?:\w+::)*({'|'.join(sorted(enumerations)) or '(?!)'})>")
    for path, text in sources.items():
        if not str(path.relative_to(ROOT)).startswith(FOREIGN_NUMBERS):
            continue
        for number, line in enumerate(bare(text).splitlines(), 1):
            for name in made.findall(line):
                report(path, number, f"a number may come from anywhere here: enumerator<{name}>(), of base/enumeration.h")


def is_argument(code, at, function):
    """Whether the place lies between the parentheses of a call of this function."""
    begin = code.rfind(function + "(", 0, at)
    depth = 1 if begin >= 0 else 0
    for char in code[begin + len(function) + 1:at] if begin >= 0 else "":
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0:
            break
    return depth > 0


def check_descriptors(path, text):
    name, code = str(path.relative_to(ROOT)), bare(text)
    if name not in DESCRIPTOR_HOMES:
        made = [match for match in DESCRIPTOR.finditer(code) if not is_argument(code, match.start(), "above_stdio")]
        if "above_stdio(" not in code:
            made += BRINGS_DESCRIPTOR.finditer(code)
        for match in made:
            report(path, code.count("\n", 0, match.start()) + 1,
                   f"{match.group().rstrip(' (')}: pass the descriptor through above_stdio, so that nobody's stderr gets it")
    if name not in PRINT_HOMES:
        for match in PRINTS.finditer(code):
            report(path, code.count("\n", 0, match.start()) + 1, f"{match.group()}: lines go through Log or LineWriter")


def words():
    """(where, pattern, why or the better word) of each line of the file."""
    for line in WORDS_FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            where, pattern, why = line.split("\t")
            yield where, re.compile(pattern), why


WORDS = list(words())


def check_words(path, text):
    if path == WORDS_FILE:
        return
    for where, pattern, why in WORDS:
        if where == "anywhere":
            for match in pattern.finditer(text):
                report(path, text.count("\n", 0, match.start()) + 1, f'"{match.group()}": {why}')


def check_names(path, text):
    name = str(path.relative_to(ROOT))
    if OLD_NAMES_ARE_RIGHT.match(name) or path.suffix not in CODE | {".md"}:
        return
    code = bare(text) if path.suffix in CODE else ""
    for where, pattern, better in WORDS:
        if where == "anywhere":
            continue
        looked_at = text if where == "prose" else code
        for match in pattern.finditer(looked_at):
            report(path, looked_at.count("\n", 0, match.start()) + 1, f'"{match.group()}" is called {better} now')


def check_links(path, text):
    for match in re.finditer(r"\]\(([^)#\s]+)[^)\s]*\)", text):
        target = match.group(1)
        if "://" in target or target.startswith("mailto:"):
            continue
        if not (path.parent / target).exists():
            report(path, text.count("\n", 0, match.start()) + 1, f"link to {target}, which does not exist")


def listed_sources(paths):
    """Patterns of all sources named in build files, relative to the root."""
    patterns = set()
    for path in paths:
        if path.name == "list.inc":  # each ALGORITHM(x) is x.cpp beside it, each TRANSPORT(x) the folder x
            names = re.findall(r"(?m)^[A-Z]+\((\w+)\)", text_of(path))
            patterns.update(re.escape(str(path.parent / name)) + r"(/[^/]+)?\.cpp" for name in names)
        if path.name != "CMakeLists.txt" and path.suffix != ".cmake":
            continue
        text = re.sub(r"#[^\n]*", "", text_of(path))
        text = re.sub(r"\$\{(PROJECT_SOURCE_DIR|tutti_SOURCE_DIR)\}/", "//", text)
        text = re.sub(r"\$\{CMAKE_CURRENT_(SOURCE|LIST)_DIR\}/", "", text)
        for name in re.findall(r"[\w./${}+-]+\.(?:cpp|c|cc)\b", text):
            base = ROOT if name.startswith("//") else path.parent
            full = (base / name.lstrip("/")).resolve()
            # ${...} stands for any word of a foreach.
            patterns.add(re.sub(r"\\\$\\\{\w+\\\}", r"[^/]+", re.escape(str(full))))
    return re.compile("|".join(sorted(patterns)) or "(?!)")


def check_classes(texts):
    sources = {str(path.relative_to(ROOT)): bare(text) for path, text in texts.items()
               if path.relative_to(ROOT).parts[0] in (*HOUSES, "kernels")}
    for path, line, what in tidy_classes.findings(sources, (ROOT / "tests/tidy_classes.txt").exists()):
        report(ROOT / path, line, what)


def check_listed(paths):
    listed = listed_sources(paths)
    for path in paths:
        top = path.relative_to(ROOT).parts[0]
        if top in (*HOUSES, "tests", "tools", "perf", "examples", "kernels") and path.suffix in (".cpp", ".c", ".cc"):
            if "compare" not in path.parts and not listed.fullmatch(str(path)):
                report(path, 1, "is in no CMakeLists.txt: nobody builds it")


def check_readme():
    """The README's first program is the one that is built and run, and its settings are those of the docs."""
    readme, first = ROOT / "README.md", ROOT / "examples/first.c"
    if not readme.exists() or not first.exists():
        report(readme, 1, "README.md and examples/first.c are a pair; one is missing")
        return
    blocks = re.findall(r"```c\n(.*?)```", text_of(readme), re.S)
    if blocks[:1] != [text_of(first)]:
        report(readme, 1, "its first ```c block is not the text of examples/first.c")
    settings = ROOT / "docs/settings.md"
    known = text_of(settings).splitlines() if settings.exists() else []
    for number, line in enumerate(text_of(readme).splitlines(), 1):
        if line.startswith("| `TUTTI_") and line not in known:
            report(readme, number, "this row is not one of docs/settings.md")


def main():
    paths = files()
    rooms = read_rooms()
    for path in paths:
        text = text_of(path)
        if text is None:
            continue
        relative = path.relative_to(ROOT)
        if path.suffix in CODE | {".py", ".cmake"}:
            check_lengths(path, text)
        check_names(path, text)
        if path.suffix in CODE:
            check_includes(path, text, rooms)
            check_first_line(path, text)
            if relative.parts[0] in (*HOUSES, "tests", "perf"):
                check_waiting(path, text)
            if relative.parts[0] in HOUSES:
                check_clocks(path, text)
                check_descriptors(path, text)
        if path.suffix == ".md":
            check_links(path, text)
        check_words(path, text)
    code = {path: text_of(path) for path in paths if path.suffix in CODE}
    check_enumerators(code)
    check_classes(code)
    check_listed(paths)
    check_rooms(paths, rooms)
    check_readme()
    print("\n".join(found) if found else f"{len(paths)} files, nothing to tidy up")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
