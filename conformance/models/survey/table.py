"""Writes types.txt: the rows of people, with what the survey saw of each, and the rows it made."""
import json

import rows as made

SECTIONS = [("composite", "models of several parts: each part and the type its class takes, that of text first"),
            ("rope_half", "rotations of channels half a head apart"), ("rope_interleaved", "rotations of neighbours"),
            ("learned", "learned tables"), ("refused", "positions of kinds that are not read, each with the reason"),
            ("none", "no positions in attention or embeddings")]
MARK = "# ---- seen by the survey"


def merged(hand, known):
    """Members that people wrote go before those of the class that follow from others."""
    own = json.loads("{" + hand + "}")
    if known is None:
        return own
    out = {**own, **{k: v for k, v in known.items() if k not in own or
                     (v is not None and v != "ignored" and own[k] != "ignored")}}
    if "rope_theta" in own and isinstance(out.get("rope_parameters"), dict):
        out["rope_parameters"] = None
        out["rope_theta"] = own["rope_theta"]
    return out


def line(name, row, hand=""):
    flags = row[1] if isinstance(row[1], str) else " ".join(row[1])
    if len(row) == 5:
        members = merged(row[4], row[2])
        flags = " ".join(flags.split() + (["surveyed"] if row[2] is not None else []))
        text = json.dumps(members)[1:-1]
    else:
        text = row[2]
    return f"{name} | {row[0]} | {flags} | {text} | {row[3]}".rstrip(" |")


def write(path, rows, versions):
    old = open(path).read().split(MARK)[0].rstrip("\n").split("\n")
    done, out = set(), []
    for text in old:
        name = text.split("|")[0].strip()
        if not text.startswith("#") and name in rows:
            if rows[name][0] == "composite":
                continue
            done.add(name)
            out.append(line(name, rows[name]))
        else:
            out.append(text)
    out += ["", f"{MARK}, in {versions}"]
    for kind, title in SECTIONS:
        out += ["", f"# ---- {title}", ""]
        for name in sorted(rows):
            row = rows[name]
            section = "refused" if "unsupported" in row[1] else row[0]
            if name not in done and section == kind:
                out.append(line(name, row))
    open(path, "w").write("\n".join(out) + "\n")
