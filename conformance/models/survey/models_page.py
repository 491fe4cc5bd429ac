#!/usr/bin/env python3
"""Writes docs/models.md from the figures of survey.py for one release of transformers, and for an older one.

    models_page.py NEWER.json OLDER.json > docs/models.md

survey.py --published FILE --figures FILE writes such files. "types" has for each type its row of types.txt and results
of compare_files().
"published" has for each outcome a list of "model: reason".
"""
import json
import re
import sys
import textwrap
from collections import Counter, defaultdict
from pathlib import Path

import jinja2

TEMPLATE = Path(__file__).with_suffix(".md.j2")
GROUPS = [("rope_half", "rotations, pairs half a head apart"), ("rope_interleaved", "rotations, pairs of neighbours"),
          ("learned", "learned tables"), ("sinusoidal", "sinusoids"), ("alibi", "ALiBi"), ("t5", "T5's buckets"),
          ("deberta", "DeBERTa's terms"), ("transformer_xl", "Transformer-XL's terms"), ("window", "biases in windows"),
          ("shaw", "terms of queries by distance"), ("decomposed", "terms by rows and by columns")]
SAVED = "saved: "  # prefix of outcomes of files as their class saves them, see survey.py


def evidence(result):
    """Returns the evidence for the reading of a type.

    "mutated" files or the one with "defaults" were read rightly, or else "people" wrote its row.
    """
    rightly = result.get("counts", {}).get("read rightly", 0)
    return "mutated" if rightly > 1 else "defaults" if rightly else "people"


def count_outcomes(types, saved=False):
    """Returns {outcome: number of files}, of files as they were written or as their class saves them."""
    counts = sum((Counter(result.get("counts", {})) for result in types), Counter())
    return Counter({name.replace(SAVED, ""): n for name, n in counts.items() if name.startswith(SAVED) == saved})


def group_rows(types):
    """Yields a row of the first table for each group of encodings."""
    for encoding, words in GROUPS:
        results = [result for result in types.values() if result["encoding"] == encoding]
        if results:
            yield {"words": words, "types": len(results), "evidence": Counter(map(evidence, results)),
                   "files": count_outcomes(results)}


def most_first(names_by_reason):
    """Returns [(reason, names)], the reason with the most names first."""
    return sorted(names_by_reason.items(), key=lambda item: (-len(item[1]), item[0]))


def reasons(types, encoding):
    """Returns [(reason, types)] of an encoding, by the last column of their rows."""
    found = defaultdict(list)
    for name, result in types.items():
        if result["encoding"] == encoding:
            found[re.sub(r"\(.*", "", result["besides"]).strip()].append(name)
    return most_first(found)


def rejections_of_mutated(types):
    """Returns the 12 most frequent [(reason, number of files)], with N for numbers and ... for names."""
    found = Counter()
    for reason in (reason for result in types.values() for reason in result.get("why", [])):
        words = re.sub(r"'[^']*'|\"[^\"]*\"", "...", reason)
        words = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "N", words).split(":")[0]
        found[textwrap.shorten(words, 110, placeholder=" ...")] += 1
    return found.most_common(12)


def rejections_of_published(published):
    """Returns [(reason, models)] of published files that are rejected, with reasons that differ in names merged."""
    found = defaultdict(list)
    for line in published["rejected"]:
        model, _, reason = line.partition(": ")
        reason = re.sub(r"model_type '(?!\(none\))[^']*' is unknown.*",
                        "its model_type is unknown: its code comes with its files", reason)
        reason = re.sub(r" among .*|: known of diffusers.*|: there is nothing to check.*", "", reason)
        reason = re.sub(r"(model_type|_class_name) '(?!\(none\))[^']*'", r"its \1", reason)
        found[reason].append(model)
    return most_first(found)


def count_composites(types):
    """Returns the number of types of several parts, and of those whose first part is read."""
    def is_read(name, depth=0):
        result = types.get(name)
        if not result or depth > 4:
            return False
        if result["encoding"] == "composite":
            return is_read(next(iter(result["parts"].values()), None), depth + 1)
        return result["encoding"] not in ("rejected", "none", "unknown")
    composites = [name for name, result in types.items() if result["encoding"] == "composite"]
    return {"all": len(composites), "read": sum(map(is_read, composites))}


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    newer, older = (json.loads(Path(path).read_text()) for path in sys.argv[1:])
    if "published" not in newer:
        raise SystemExit(f"models_page.py: {sys.argv[1]} lacks \"published\": write it by survey.py --published FILE")
    types, old = newer["types"], older["types"]
    with_positions = [t for t in types.values() if t["encoding"] not in ("none", "composite", "unknown")]
    lacking = {t["encoding"] for t in with_positions} - {encoding for encoding, _ in GROUPS} - {"rejected"}
    if lacking:
        raise SystemExit(f"models_page.py: GROUPS lacks {', '.join(sorted(lacking))}")
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    print(environment.from_string(TEMPLATE.read_text()).render(
        newer=newer, older=older, types=types, published=newer["published"], old=old,
        n_types=len(types), n_with=len(with_positions),
        n_read=sum(result["encoding"] != "rejected" for result in with_positions),
        composites=count_composites(types), groups=list(group_rows(types)),
        files=count_outcomes(types.values()), saved=count_outcomes(types.values(), saved=True),
        only_saved=sum(result.get("saved", 0) for result in types.values()), old_files=count_outcomes(old.values()),
        without=reasons(types, "none"), rejected=reasons(types, "rejected"), rejections=rejections_of_mutated(types),
        published_rejected=rejections_of_published(newer["published"]),
        new=sorted(set(types) - set(old)), gone=sorted(set(old) - set(types))).rstrip())


if __name__ == "__main__":
    main()
