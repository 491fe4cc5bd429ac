"""Writes types.txt: the rows of people where they stand, and after the mark those that the survey made."""
import json

from rows import MARK

SECTIONS = [("composite", "models of several parts: each part and the type its class takes, that of text first"),
            ("rope_half", "rotations of channels half a head apart"), ("rope_interleaved", "rotations of neighbours"),
            ("learned", "learned tables"), ("sinusoidal", "sinusoids"), ("t5", "biases by buckets of distances"), ("shaw", "terms of scores by distance"), ("window", "biases in windows of a picture"),
            ("decomposed", "terms of scores by rows and by columns of a picture"),
            ("refused", "positions of kinds that are not read, each with the reason"),
            ("none", "no positions in attention or embeddings")]


def section_of(row):
    return "refused" if row.refused else row.encoding


def line(name, row):
    flags = sorted(row.flags, key=lambda word: word == "surveyed")
    members = json.dumps({**row.members, **row.more})[1:-1].replace("|", " ")
    return f"{name} | {row.encoding} | {' '.join(flags)} | {members} | {row.besides}".rstrip(" |")


def write(path, rows, versions):
    """Writes {type: Row}; a row that people wrote is written where it stood."""
    out = []
    for text in open(path).read().split(MARK)[0].rstrip("\n").split("\n"):
        name = text.split("|")[0].strip()
        out.append(line(name, rows[name]) if not text.startswith("#") and name in rows else text)
    out += ["", f"{MARK}, in {versions}"]
    kinds = [k for k, _ in SECTIONS]
    others = sorted({section_of(r) for r in rows.values()} - set(kinds))
    for kind, title in SECTIONS + [(k, k) for k in others]:
        made = [line(n, r) for n, r in sorted(rows.items()) if not r.by_hand and section_of(r) == kind]
        out += ["", f"# ---- {title}", ""] + made if made else []
    open(path, "w").write("\n".join(out) + "\n")
