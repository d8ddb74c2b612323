"""The library's C interface as cffi reads it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INTEGER = re.compile(r"#define WFMM_\w+ -?\d+$")


def declarations() -> str:
    """The declarations of the header, without comments and without what cffi does not parse."""
    text = (ROOT / "include" / "wakefmm.h").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r'#ifdef __cplusplus\n.*?#endif[^\n]*\n', "", text, flags=re.S)
    kept = (line for line in text.splitlines() if line.strip() and (line[0] != "#" or INTEGER.match(line)))
    return "\n".join(kept) + "\n"
