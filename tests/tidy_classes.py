"""How large classes are: functions and members of each, read from declarations.

What is no class to read but a record (at most RECORD_FUNCTIONS functions) may have any number of members. Classes above
the limits stand in tidy_classes.txt with their numbers, which only become smaller.
"""
import pathlib
import re

FUNCTIONS_MAX = 25
MEMBERS_MAX = 15
RECORD_FUNCTIONS = 5
LIST_FILE = pathlib.Path(__file__).with_name("tidy_classes.txt")

CLASS = re.compile(r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?((?:\w+::)*\w+)(?:\s+final)?\s*(?::[^;{}()]*)?\{")
NOT_MEMBERS = re.compile(r"(?:using|friend|static_assert|typedef|enum|struct|class|union|(?:static|inline|constexpr)\s+"
                         r"(?:static |inline )*constexpr)\b")


def body_at(code, brace):
    depth = 0
    for at in range(brace, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return code[brace + 1:at]
    return ""


def flat(body):
    """The body without what stands in braces; a brace pair ends a declaration."""
    text, depth = [], 0
    for char in body:
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                text.append("{};")
        elif depth == 0:
            text.append(char)
    return "".join(text)


def without_templates(text):
    before = None
    while before != text:
        before = text
        text = re.sub(r"<[^<>()]*(?:\([^()]*\))?[^<>()]*>", "", text)
    return text


def size_of(body):
    """(functions, members) that a class declares; neither constants nor types, nor what is deleted or defaulted."""
    functions = members = 0
    for declaration in re.sub(r"\b(?:public|private|protected)\s*:(?!:)", ";", flat(body)).split(";"):
        text = without_templates(re.sub(r"^template\s*", "", " ".join(declaration.split())))
        if not text or text == "{}" or re.search(r"=\s*(?:delete|default)$", text):
            continue
        head = text if "operator" in text else text.split("{}")[0].split("=")[0]
        head = re.sub(r"\b(?:alignas|decltype|noexcept|explicit)\([^()]*\)|\[\[[^\]]*\]\]", "", head).strip()
        if "(" in head:
            functions += 1
        elif re.search(r"\w[\s*&]+\w+\s*(?:\[.*\]|:\s*\d+)*(?:,.*)?$", head) and not NOT_MEMBERS.match(text):
            members += 1 + head.count(",")
    return functions, members


def classes(code):
    """(name, line, functions, members) of each class that is defined in this code."""
    for match in CLASS.finditer(code):
        if not re.search(r"\benum\s*$", code[:match.start()]):
            yield (match.group(1), code.count("\n", 0, match.start()) + 1, *size_of(body_at(code, match.end() - 1)))


def listed():
    """Class and file → (functions, members)."""
    found = {}
    for line in LIST_FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            path, name, functions, members = line.split()
            found[path, name] = int(functions), int(members)
    return found


def findings(sources, whole):
    """sources: by path relative to the root, code without comments and literals. `whole`: they are all of this project's.
    Yields (path, line, what)."""
    known = listed()
    for path, code in sources.items():
        for name, line, functions, members in classes(code):
            too_large = functions > FUNCTIONS_MAX or (functions > RECORD_FUNCTIONS and members > MEMBERS_MAX)
            most = known.pop((path, name), None)
            if most is None and too_large:
                yield path, line, (f"{name} has {functions} functions and {members} members; a class has at most "
                                   f"{FUNCTIONS_MAX} and {MEMBERS_MAX}: give a part of it a name")
            elif most and (functions > most[0] or members > most[1]):
                yield path, line, f"{name} has grown to {functions} functions and {members} members, from {most[0]} and {most[1]}"
            elif most and (not too_large or (functions, members) != most):
                yield path, line, (f"{name} has {functions} functions and {members} members now: "
                                   f"{'change' if too_large else 'remove'} its line in tests/{LIST_FILE.name}")
    for path, name in known:
        if whole:
            yield path, 1, f"{name} is not here: remove its line in tests/{LIST_FILE.name}"
