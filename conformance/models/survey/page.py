#!/usr/bin/env python3
"""Writes docs/models.md of what survey.py --figures kept for one release of transformers, and for an older one.

    page.py NEWER.json OLDER.json > docs/models.md
"""
import collections
import json
import os
import re
import sys
import textwrap

import jinja2

KINDS = [("rope_half", "rotations, pairs half a head apart"), ("rope_interleaved", "rotations, pairs of neighbours"),
         ("learned", "learned tables"), ("sinusoidal", "sinusoids"), ("alibi", "ALiBi"), ("t5", "T5's buckets"),
         ("deberta", "DeBERTa's terms"), ("transformer_xl", "Transformer-XL's terms"), ("window", "biases in windows"),
         ("shaw", "terms of queries by distance"), ("decomposed", "terms by rows and by columns")]
FORM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.md.j2")


def evidence(of):
    """What the reading of a type rests on."""
    counts = of.get("counts", {})
    if counts.get("read rightly", 0) > 1:
        return "mutated"
    return "defaults" if counts.get("read rightly") else "people"


SAVED = "saved: "


def total(types, saved=False):
    """What became of files, or of the same as their class saves them."""
    counts = sum((collections.Counter(t.get("counts", {})) for t in types), collections.Counter())
    return collections.Counter({what.replace(SAVED, ""): n for what, n in counts.items() if what.startswith(SAVED) == saved})


def only_saved(types):
    """Files that are rejected as their class saves them, or read otherwise, and not as they were written."""
    return sum(of.get("saved", 0) for of in types.values())


def kinds_of(types):
    """A row for each kind: its types by evidence, and what became of its files."""
    for kind, words in KINDS:
        those = [t for t in types.values() if t["encoding"] == kind]
        if those:
            yield {"words": words, "types": len(those), "evidence": collections.Counter(evidence(t) for t in those),
                   "files": total(those)}


def reasons(types, encoding):
    """[(reason, names)] of rows of an encoding, the reason of most types first."""
    by = collections.defaultdict(list)
    for name, of in types.items():
        if of["encoding"] == encoding:
            by[re.sub(r"\(.*", "", of["besides"]).strip()].append(name)
    return sorted(by.items(), key=lambda item: (-len(item[1]), item[0]))


def refusals(types):
    """[(count, words)] of refusals of mutated files, without the numbers and names in them."""
    by = collections.Counter()
    for of in types.values():
        for why in of.get("why", []):
            words = re.sub(r"'[^']*'|\"[^\"]*\"", "...", why)
            words = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "N", words).split(":")[0]
            by[textwrap.shorten(words, 110, placeholder=" ...")] += 1
    return by.most_common(12)


def composites(types):
    """Of types of several parts: how many have a first part that is read."""
    def read(name, depth=0):
        of = types.get(name)
        if not of or depth > 4:
            return False
        if of["encoding"] == "composite":
            return read(next(iter(of["parts"].values()), None), depth + 1)
        return of["encoding"] not in ("refused", "none", "unknown")
    those = [n for n, of in types.items() if of["encoding"] == "composite"]
    return {"all": len(those), "read": sum(map(read, those))}


def said(answer):
    """What a class's defaults give, in few words."""
    if isinstance(answer, str):
        return "rejected by it"
    if not isinstance(answer, dict):
        return "something else"
    answer = answer.get("turns", answer)
    if not answer:
        return "no frequencies that can be asked for"
    if any(isinstance(v, dict) for v in answer.values()):
        return "sinusoids"
    if all(isinstance(v, list) and len(v) == 2 and isinstance(v[0], int) for v in answer.values()):
        return ", ".join(sorted({f"a table of {v[0]} x {v[1]}" for v in answer.values()}))
    parts = []
    for name, value in answer.items():
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], list) and value[0]:
            base = f"second frequency {value[0][1]:.5g}" if len(value[0]) > 1 else "one frequency"
            parts.append(f"{name + ': ' if name else ''}{len(value[0])} pairs, {base}, factor {value[1]:.4g}")
        else:
            text = json.dumps(value)
            parts.append(f"{name}: {text if len(text) < 60 else text[:57] + '...'}")
    return "; ".join(parts[:3])


def differences(newer, older):
    """Types of both releases whose defaults give something else."""
    for name in sorted(set(newer) & set(older)):
        a, b = newer[name].get("defaults"), older[name].get("defaults")
        if a is not None and b is not None and a != b and said(a) != said(b):
            yield name, said(a), said(b)


def rejected(published):
    """[(reason, [model, ...])] of published files that are rejected, the reason of most first."""
    reasons = collections.defaultdict(list)
    for line in published["rejected"]:
        model, _, why = line.partition(": ")
        why = re.sub(r"model_type '(?!\(none\))[^']*' is unknown.*", "its model_type is unknown: its code comes with its files", why)
        why = re.sub(r" among .*|: known of diffusers.*|: there is nothing to check.*", "", why)
        why = re.sub(r"(model_type|_class_name) '(?!\(none\))[^']*'", r"its \1", why)
        reasons[why].append(model)
    return sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    newer, older = (json.load(open(path)) for path in sys.argv[1:])
    types = newer["types"]
    with_positions = [t for t in types.values() if t["encoding"] not in ("none", "composite", "unknown")]
    refused = [t for t in with_positions if t["encoding"] == "refused"]
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    print(environment.from_string(open(FORM).read()).render(
        newer=newer, older=older, types=types, saved=total(types.values(), True), only_saved=only_saved(types),
        published=newer["published"], kinds=list(kinds_of(types)), files=total(types.values()),
        n_types=len(types), n_with=len(with_positions), n_read=len(with_positions) - len(refused),
        evidence=collections.Counter(evidence(t) for t in with_positions if t["encoding"] != "refused"),
        refused=reasons(types, "refused"), without=reasons(types, "none"), composites=composites(types),
        refusals=refusals(types), old=older["types"], old_files=total(older["types"].values()),
        gone=sorted(set(older["types"]) - set(types)), new=sorted(set(types) - set(older["types"])),
        published_rejected=rejected(newer["published"]), differences=list(differences(types, older["types"]))).rstrip())


if __name__ == "__main__":
    main()
