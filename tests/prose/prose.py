# SPDX-License-Identifier: MIT OR Apache-2.0
"""Check the project's English with Vale: documents, comments, messages, help and commit subjects.

  build/venv/bin/python tests/prose/prose.py [--update] [PATH...]

styles/Steady has the rules. findings.tsv says how many findings a file may have; any other file may
have none, and STRICT files are never in it. The numbers only fall: --update writes lower ones. With
PATHs it prints all findings of these files.

Called by scripts/lint, after `scripts/setup lint`. Exit status: 0 no new findings, 1 some.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from steady_lab.cli import build_parser
from subjects import wrong_subjects
from words import Part, parts_of

PROJECT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
ALLOWED = HERE / "findings.tsv"
STRICT = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "help/")
CODE = (".rs", ".c", ".h", ".cpp", ".hpp", ".py", ".sh")
# Whose string literals are messages. In tests they are inputs, mostly.
WITH_MESSAGES = ("device/", "integrations/", "kernel/", "lab/", "scripts/")
# A line of a list in a help text; the text of a long name is on the next line.
ENTRY = re.compile(r" {2,6}(?P<name>-\S.*?|[A-Z_]{2,}|[a-z][a-z0-9-]*)(?:$| {2,})")


@dataclass(frozen=True, order=True)
class Finding:
    """A finding of Vale in a file of the clone, or in help/COMMAND."""

    where: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.text}"


def tracked() -> list[str]:
    """Return the clone's files."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=True)
    return [path for path in done.stdout.split("\0") if path and (PROJECT / path).is_file()]


def is_code(path: str) -> bool:
    """Whether a file has comments that are checked."""
    return path.endswith(CODE) or (path.startswith("scripts/") and "." not in Path(path).name)


def documents(begins: tuple[str, ...]) -> Iterator[tuple[str, list[Part]]]:
    """Yield each checked text whose name has one of these beginnings: name, and paragraphs."""
    for path in tracked():
        if not path.startswith(begins):
            continue
        if path.endswith(".md"):
            yield path, [Part(1, (PROJECT / path).read_text(encoding="utf-8"))]
        elif is_code(path):
            text = (PROJECT / path).read_text(encoding="utf-8")
            yield path, list(parts_of(path, text, messages=path.startswith(WITH_MESSAGES)))
    if any(begin.startswith("help") or not begin for begin in begins):
        helps = (*steady_help(["steady"]), *lab_help(build_parser()))
        yield from (one for one in helps if one[0].startswith(begins))


def steady_help(command: list[str]) -> Iterator[tuple[str, list[Part]]]:
    """Yield the help of a command and of its subcommands."""
    words = [str(PROJECT / "build" / "bin" / command[0]), *command[1:], "--help"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    yield f"help/{' '.join(command)}", list(help_parts(text))
    for name in subcommands(text):
        yield from steady_help([*command, name])


def lab_help(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[Part]]]:
    """The same of steady-lab, whose start takes 0.7 s of CPU: without one for each command."""
    yield f"help/{parser.prog}", list(help_parts(parser.format_help()))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from lab_help(command)


def help_parts(text: str) -> Iterator[Part]:
    """Yield each paragraph and each entry of a list."""
    lines: list[str] = []
    start = 1
    for number, line in enumerate(text.splitlines(), 1):
        if lines and (not line.strip() or ENTRY.match(line)):
            yield Part(start, "\n".join(lines))
            lines = []
        if line.strip():
            start = start if lines else number
            entry = ENTRY.match(line)
            lines.append(line[entry.end() :] if entry else line.strip())
    if lines:
        yield Part(start, "\n".join(lines))


def subcommands(text: str) -> list[str]:
    """Return the commands that clap's help lists."""
    names: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("Commands:"):
            inside = True
        elif line and not line.startswith(" "):
            inside = False
        elif inside and (entry := ENTRY.match(line)):
            names += [entry["name"]] if entry["name"].islower() else []
    return [name for name in names if name != "help"]


def findings_in(texts: Mapping[str, list[Part]]) -> list[Finding]:
    """Run Vale on texts by name."""
    with tempfile.TemporaryDirectory() as name:
        folder, lines = Path(name), dict[str, tuple[str, list[int]]]()
        for number, (where, parts) in enumerate(texts.items()):
            file = folder / f"{number}.md"
            known: list[int] = []
            written: list[str] = []
            for part in parts:
                own = part.text.splitlines()
                written += [*own, ""]
                known += [*range(part.line, part.line + len(own)), part.line + len(own)]
            file.write_text("\n".join(written) + "\n", encoding="utf-8")
            lines[file.name] = (where, known)
        words = [vale(), "--no-exit", "--output=JSON", f"--config={HERE / 'vale.ini'}", str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"prose: Vale failed:\n{done.stderr or done.stdout}")
        found = []
        for file_name, alerts in json.loads(done.stdout).items():
            where, known = lines[Path(file_name).name]
            for alert in alerts:
                line = known[min(alert["Line"], len(known)) - 1]
                found.append(Finding(where, line, f"{alert['Message']} [{alert['Check']}]"))
        return sorted(found)


def vale() -> str:
    """Return the program that `scripts/setup lint` built."""
    program = PROJECT / "build" / "bin" / "vale"
    if not program.exists():
        raise SystemExit(f"prose: {program} is missing: run scripts/setup lint")
    return str(program)


def allowed() -> dict[str, int]:
    """Return how many findings each file may have."""
    lines = ALLOWED.read_text(encoding="utf-8").splitlines()
    return {where: int(count) for count, where in (line.split("\t") for line in lines)}


def compare(found: list[Finding], may: Mapping[str, int]) -> list[str]:
    """Return the errors in the numbers of findings."""
    strict = [where for where in may if where.startswith(STRICT)]
    wrong = [f"{where}: may never be in {ALLOWED.name}" for where in strict]
    counts = Counter(finding.where for finding in found)
    for where, count in sorted(counts.items()):
        if count > may.get(where, 0):
            wrong += [str(finding) for finding in found if finding.where == where]
            wrong.append(f"{where}: {count} findings, {may.get(where, 0)} are allowed")
    lower = [where for where in may if counts[where] < may[where]]
    if lower:
        wrong.append(f"{len(lower)} files have fewer findings: run tests/prose/prose.py --update")
    return wrong


def update(found: list[Finding], may: Mapping[str, int]) -> None:
    """Lower the numbers of findings.tsv to what there is."""
    counts = Counter(finding.where for finding in found)
    lines = [f"{min(may[where], counts[where])}\t{where}" for where in sorted(may) if counts[where]]
    ALLOWED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", metavar="PATH", help="print these files' findings")
    parser.add_argument("--update", action="store_true", help="lower the numbers of findings.tsv")
    arguments = parser.parse_args()
    texts = dict(documents(tuple(arguments.paths) or ("",)))
    if arguments.paths:
        found = findings_in(texts)
        print(*found, sep="\n")
        return 1 if found else 0
    found, may = findings_in(texts), allowed()
    if arguments.update:
        update(found, may)
        may = allowed()
    wrong = compare(found, may) + wrong_subjects(PROJECT)
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
