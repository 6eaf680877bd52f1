# SPDX-License-Identifier: BSL-1.0
"""The sources as the checks read them: the files of the tree, the headers with their places in the
reading order, and the names that a header declares at namespace scope."""

import collections
import os
import pathlib
import re
import subprocess
import tempfile

TOP_DIRECTORIES = ("include", "tests", "examples", "single_include")
READING_ORDER = pathlib.Path(__file__).with_name("reading_order.txt")

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]+(\S.*?)[ \t]*(?://.*)?$", re.M)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.M | re.S)
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|\w+(?:\'\w+)*|::|->|\[\[|\]\]'
                   r"|[^\w\s]")
TYPES = (["struct"], ["class"], ["union"])
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def git(root, *arguments):
    """The output of a git command in the tree; empty without git."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        answer = subprocess.run(["git", "-C", str(root), *arguments], env=environment,
                                capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.decode()


def git_files(root, *options):
    return [path for path in git(root, "ls-files", "-z", *options).split("\0") if path]


def all_files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in (".git", "__pycache__")
                      and not pathlib.Path(folder, f, "CMakeCache.txt").exists()]
        yield from (pathlib.Path(folder, name).relative_to(root).as_posix() for name in names)


def read_tree(root):
    """The files of the tree as {path: text}, in the order of their names: those that git tracks
    and, in the source directories, those that it does not ignore; without git, all files outside
    build directories."""
    root = pathlib.Path(root)
    tracked = git_files(root)
    new = git_files(root, "--others", "--exclude-standard", "--", *TOP_DIRECTORIES)
    paths = sorted(set(tracked + new if tracked else all_files(root)))
    return {path: (root / path).read_text(encoding="utf-8", errors="replace")
            for path in paths if (root / path).is_file()}


def write_tree(root, tree):
    for path, text in tree.items():
        path = pathlib.Path(root, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def matches(pattern, text):
    """Each match with its line number."""
    for match in pattern.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match


def without_comments(text):
    """The text with the same lines, without comments."""
    return COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)


# ------------------------------------------------------------------------------ the reading order

class ReadingOrder:
    """The entries of reading_order.txt, and where its core and its library end."""

    def __init__(self, text):
        self.entries, self.ends = [], {}
        for line in text.splitlines():
            if line.startswith("end of "):
                self.ends[line.removeprefix("end of ")] = len(self.entries)
            elif line and not line.startswith("#"):
                self.entries += line.split()

    def entry(self, header):
        """The entry of a header: itself, or the closest directory that has one; None without."""
        library, _, name = header.partition("/")
        if library != "ptspec" or not name.endswith(".hpp"):
            return None
        place = name.removesuffix(".hpp")
        while place and place not in self.entries:
            place = place.rstrip("/").rpartition("/")[0]
            place += "/" if place else ""
        return place or None

    def rank(self, header):
        entry = self.entry(header)
        return None if entry is None else self.entries.index(entry)

    def is_in(self, part, header):
        """True for a header before the end of a part, and for one without an entry."""
        rank = self.rank(header)
        return rank is None or rank < self.ends[part]


ORDER = ReadingOrder(READING_ORDER.read_text(encoding="utf-8"))


class Headers:
    """The headers under include/ with their includes."""

    def __init__(self, files):
        self.text = {path.removeprefix("include/"): text for path, text in files.items()
                     if path.startswith("include/") and path.endswith((".hpp", ".h"))}
        self.others = [path for path in files if path.startswith("include/")
                       and path.removeprefix("include/") not in self.text]
        self.includes = {header: [(line, match[1]) for line, match in matches(INCLUDE, text)]
                         for header, text in self.text.items()}

    def own(self, header):
        """The headers of this library that a header includes, as (line, name)."""
        return [(line, name[1:-1]) for line, name in self.includes[header]
                if name.startswith("<ptspec/")]


# ------------------------------------------------------------------------------------------ names

def tokens_of(text):
    return TOKEN.findall(DIRECTIVE.sub("", without_comments(text)))


def declarations(text):
    """The declarations in namespaces and types as (scopes, tokens up to the first `{` or `;`). A
    scope is the name of a namespace, or `struct`."""
    scopes, head, parentheses = [], [], 0  # other braces are the scope None
    for token in tokens_of(text):
        outside = None not in scopes
        parentheses += {"(": 1, ")": -1}.get(token, 0)
        if token == "}":
            if scopes:
                scopes.pop()
            if None not in scopes and parentheses == 0:
                head = []
        elif token in ("{", ";"):
            scope = None
            if outside and parentheses == 0:
                if "namespace" in head[:2]:
                    scope = "".join(head[head.index("namespace") + 1:])
                elif head:
                    yield tuple(scopes), head
                    if without_template(head)[:1] in TYPES:
                        scope = "struct"
                head = []
            if token == "{":
                scopes.append(scope)
        elif outside:
            head.append(token)
            if head[-2:-1] and head[-2] in ("public", "protected", "private") and token == ":":
                head = []


def after_brackets(tokens, opening, closing):
    """The tokens after the brackets that the first token opens."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += {opening: 1, closing: -1}.get(token, 0)
        if depth == 0:
            return tokens[i + 1:]
    return []


def without_attributes(head):
    tokens, depth, skipped = [], 0, 0
    for token in head:
        if token == "PTSPEC_ATTRIBUTE":
            skipped = len("(x)") + 1
        depth += token == "[["
        if depth == 0 and skipped == 0:
            tokens.append(token)
        depth -= token == "]]"
        skipped -= skipped != 0
    return tokens


def without_template(head):
    """The declaration of a type or variable, without attributes, template and requires."""
    tokens = without_attributes(head)
    while tokens[:1] == ["template"]:
        tokens = after_brackets(tokens[1:], "<", ">")
    if tokens[:1] == ["requires"]:
        begin = [i for i, token in enumerate(tokens) if token in ("struct", "class", "using")]
        tokens = tokens[begin[0]:] if begin else []
    return tokens


def declared(head):
    """What a declaration declares as (kind, name): a type, an enum, a concept or a function. None
    for other declarations, specialisations, members outside their class, and operators."""
    tokens = without_attributes(head)
    if "concept" in tokens[:-1]:
        return "concept", tokens[tokens.index("concept") + 1]
    for i, (result, name, after) in enumerate(zip(tokens, tokens[1:], tokens[2:])):
        if (result in ("auto", "void") and after == "(" and name != "operator"
                and IDENTIFIER.fullmatch(name)):
            is_variable = tokens[0] != "template" and "=" in tokens[:i]
            return None if is_variable else ("function", name)
    kind, *rest = without_template(head) or [""]
    if kind == "enum":
        name = next((token for token in rest if token not in ("class", "struct")), "")
        return ("enum", name) if IDENTIFIER.fullmatch(name) else None
    if kind == "using" and rest[1:2] == ["="]:
        return "type", rest[0]
    if [kind] in TYPES and rest and rest[1:2] not in (["<"], ["::"]):
        return "type", rest[0]
    return None


def public_names(texts):
    """{name: {namespace without ptspec: kinds}} of what is declared outside `detail`."""
    table = collections.defaultdict(lambda: collections.defaultdict(set))
    for text in texts:
        for scopes, head in declarations(text):
            found = None if "struct" in scopes else declared(head)
            parts = "::".join(scopes).split("::")
            if found and parts[0] == "ptspec" and "detail" not in parts:
                table[found[1]]["::".join(parts[1:]) or "ptspec"].add(found[0])
    return table


def self_test_cases(small, cases, found_in, rules):
    """Failures of a check's self-test. Each case is a path, old text, new text and the expected
    findings; each of `rules`, the first words of findings, must be in one."""
    failures, fired = [], set()
    for path, old, new, wanted in cases:
        assert old in small[path], f"{path} has no {old!r}"
        with tempfile.TemporaryDirectory() as folder:
            write_tree(folder, small | {path: small[path].replace(old, new, 1)})
            found = found_in(folder)
        fired.update(item.split()[0] for item in wanted if item in found)
        if sorted(found) != sorted(wanted):
            failures.append(f"{path}: {old!r} -> {new!r}\n  wanted {wanted}\n  found  {found}")
    if fired != set(rules):
        failures.append(f"no case breaks {set(rules) - fired}")
    return failures
