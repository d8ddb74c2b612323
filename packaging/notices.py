#!/usr/bin/env python3
"""LICENSE-THIRD-PARTY: the crates that are linked into the library, with the licenses that their packages have.

Enters: cargo and the packages of Cargo.lock (cargo's registry, or vendor/ of a source archive). Where a crate may be taken under
the MIT license, that text is given. Leaves: the file, or with --check whether the committed one is what would be written.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "LICENSE-THIRD-PARTY"
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
MIT = "Permission is hereby granted, free of charge"

HEAD = """Parts of libwakefmm that others wrote

The library contains these crates, as they are published on crates.io. Where a crate may be taken under one of several licenses,
one of which is the MIT license, its MIT text follows. The text of the Apache License, Version 2.0, is in LICENSE-APACHE.
Written by `make notices`.

The library also contains the Rust standard library and the crates that this is made of: MIT OR Apache-2.0, copyright The Rust
Project Developers and others, https://github.com/rust-lang/rust/blob/master/COPYRIGHT.
"""


def cargo(*arguments: str) -> str:
    command = [os.environ.get("CARGO", "cargo"), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def linked() -> list[dict]:
    """The packages whose code is in the library: dependencies of the crate without those of builds, tests and macros."""
    names = set()
    for target in TARGETS:
        tree = cargo("tree", "--locked", "-e", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}", "--target", target)
        names |= {tuple(line.split()[:2]) for line in tree.splitlines()}
    packages = json.loads(cargo("metadata", "--locked", "--format-version", "1"))["packages"]
    found = [p for p in packages if (p["name"], "v" + p["version"]) in names and p["name"] != "wakefmm"]
    return sorted(found, key=lambda p: (p["name"], p["version"]))


def texts(package: dict) -> list[str]:
    """The license texts of a package; of several licenses the MIT license."""
    folder = Path(package["manifest_path"]).parent
    names = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)
    files = sorted(f for f in folder.iterdir() if f.is_file() and names.match(f.name))
    found = list(dict.fromkeys(f.read_text(encoding="utf-8").strip() for f in files))
    mit = [text for text in found if MIT in text and "MIT" in package["license"]]
    return mit[:1] or found


def split(text: str) -> tuple[list[str], str]:
    """Lines that name holders of a copyright, and the rest of a license."""
    lines = [line.strip() for line in text.splitlines()]
    holders = [line for line in lines if re.match(r"(copyright|\(c\)|©)", line, re.IGNORECASE) and "notice" not in line]
    title = re.compile(r"#*\s*((the )?mit license( \(mit\))?|.*license \(mit\))[.:]?", re.IGNORECASE)
    rest = [line for line in lines if line not in holders and not title.fullmatch(line)]
    return holders, "\n".join(rest).strip()


def notices() -> str:
    bodies: dict[str, tuple[str, list[str]]] = {}
    for package in linked():
        entry = f"{package['name']} {package['version']} ({package['license']})"
        found = texts(package)
        if not found:
            authors = ", ".join(package["authors"]) or f"the authors of {package['repository']}"
            bodies.setdefault("", ("Their packages have no text of a license.", []))[1].append(f"{entry}\n    {authors}")
        for text in found:
            holders, body = split(text) if MIT in text and len(text) < 3000 else ([], text)
            key = re.sub(r"\W+", " ", body).strip().lower()
            if "Apache License" in body and "Version 2.0" in body and MIT not in body:
                key, body = "apache", "The Apache License, Version 2.0: LICENSE-APACHE."
            bodies.setdefault(key, (body, []))[1].append("\n    ".join([entry, *holders]))
    rule = "\n" + "-" * 100 + "\n\n"
    return HEAD + "".join(rule + "\n".join(who) + "\n\n" + body + "\n" for body, who in bodies.values())


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        current = FILE.exists() and FILE.read_text(encoding="utf-8") == notices()
        if not current:
            print("LICENSE-THIRD-PARTY is stale: run `make notices`")
        return 0 if current else 1
    FILE.write_text(notices(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
