#!/usr/bin/env python3
"""Compares what posenc reads from model files with what transformers computes, for each of its model types.

    survey.py [--program build/posenc] [--seen FILE] [--types a,b] [--mutations 40] [--seed 1]
              [--published FILE] [--figures FILE]

 1. The model of each type is built by its defaults, without memory for weights, and inspected for positions.
 2. Files are made of each type in types.txt: one with the defaults, and others with random values of members
    that matter. Modules of the model compute frequencies, tables or indices for each of them.
 3. posenc reads each file as it was written and as its class saves it. Numbers and sizes are compared.

Exit status: 0 if all agree; 1 if a file is read wrongly, or rejected only as its class saves it.

A type that types.txt lacks gets a draft of its row, with the members that its class reads. A person adds
encoding and flags, such as those of a type with similar code. The survey then checks the row.

Modules in survey/: transformers_models.py builds models, inspection.py finds what encodes positions in them, and
attention_sizes.py counts heads and layers. Comparers (comparer.py has their interface) are in rotary.py,
vision_rotary.py, position_tables.py, bias_tables.py and relative_terms.py. file_check.py compares one file by them.
types_table.py reads types.txt. models_page.py writes docs/models.md.
"""
import argparse
import collections
import copy
import gzip
import json
import os
import random
import sys
from typing import Any, NamedTuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "survey"))
import file_check
from comparer import Comparer
from inspection import inspect_type
from transformers_models import REQUIRED_MEMBERS, config_classes, model_classes, torch, transformers
from types_table import draft_row, read_table

SAVED = "saved: "  # prefix of outcomes of files as their class saves them; models_page.py has it, too


class File(NamedTuple):
    """A file to compare."""
    type: str
    comparer: Comparer
    members: dict
    saved: dict  # members as the class saves them
    expected: Any  # numbers by transformers; a text if it rejects the file


def inspect_defaults(cls):
    """Returns the inspection of a class with its defaults, and the types of its parts as "subs"."""
    try:
        config = cls()
        parts = {k: getattr(getattr(config, k, None), "model_type", None) for k in getattr(cls, "sub_configs", {})}
        return {**inspect_type(cls, config), "subs": {k: v for k, v in parts.items() if v}}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:160]}"}


def inspect_all(types, names, path):
    """Returns {type: inspection}. The file `path`, if there is one, keeps them: a line of JSON for each."""
    kept = {}
    if path and os.path.exists(path):
        with open(path) as lines:
            for line in lines:
                kept.update(json.loads(line))
    for name in names:
        model_classes(types[name])  # imports the modules that a kept inspection names
        if name not in kept:
            kept[name] = inspect_defaults(types[name])
            print(name, kept[name].get("error", ""), file=sys.stderr, flush=True)
            if path:
                with open(path, "a") as file:
                    print(json.dumps({name: kept[name]}), file=file)
    return {name: kept[name] for name in names}


def make_files(types, inspections, table, count, seed):
    """Yields the files of each type that can be compared: the defaults, and at most `count` mutations of them."""
    for name in sorted(inspections):
        row, key, part = table.get(name), None, name  # the part of a composite model that posenc reads
        if row and row.encoding == "composite":
            key, part = file_check.text_part(types, table, name) or (None, None)
            row = table.get(part)
        comparer = file_check.find_comparer(row)
        if not comparer or "error" in inspections.get(part, {"error": ""}):
            continue
        rng, cls, defaults = random.Random(f"{seed} {name}"), types[name], types[part]().to_dict()
        for k in range(min(count // 8 if key else count, comparer.max_mutations) + 1):
            saved = None
            try:
                members = comparer.mutate(rng, defaults, inspections[part]) if k else {}
                if key and k:
                    members = {key: {"model_type": part, **REQUIRED_MEMBERS.get(part, {}), **members}}
                config = cls(**copy.deepcopy(members))
                saved = json.loads(config.to_json_string())
                own = getattr(config, key) if key else config
                if own is None:
                    break
                expected = comparer.compute(type(own), inspections[part], own)
                part = own.model_type
            except Exception as error:
                expected = f"{type(error).__name__}: {str(error)[:100]}"
            if not expected:
                break
            members = {"model_type": name, **REQUIRED_MEMBERS.get(name, {}), **members}
            yield File(name, comparer, members, saved, expected)


def outcome(reading, difference):
    return "rejected" if "rejected" in reading else "read wrongly" if difference else "read rightly"


def compare_files(files, types, table, inspections, program):
    """Returns {type: {"defaults": numbers by transformers, "counts": {outcome: files}, "wrong": wrongly read files,
    "why": reasons of rejections, "saved": number of files that are wrong only as their class saves them}}."""
    results = {}
    for file in files:
        new = {"defaults": file.expected, "counts": collections.Counter(), "wrong": [], "why": []}
        result = results.setdefault(file.type, new)
        reading = file_check.read(program, file.members)
        rejected = "rejected" in reading
        if isinstance(file.expected, str):
            result["counts"]["transformers rejects, " + ("rejected" if rejected else "read")] += 1
            continue
        difference = file_check.compare(file.comparer, reading, file.expected)
        result["counts"][outcome(reading, difference)] += 1
        if rejected:
            result["why"].append(reading["rejected"])
        if difference:
            result["wrong"].append({"file": file.members, "why": difference})
            print(f"{file.type}: {difference}: {json.dumps(file.members)}", file=sys.stderr)
        reading = file_check.read(program, file.saved)
        difference = file_check.compare(file.comparer, reading, file.expected)
        result["counts"][SAVED + outcome(reading, difference)] += 1
        if not difference and (rejected or "rejected" not in reading):
            continue
        if computes_otherwise(types, table, inspections, file):
            result["counts"][SAVED + "transformers itself reads it otherwise"] += 1
        else:
            result["saved"] = result.get("saved", 0) + 1
            what = f"wrong: {difference}" if difference else f"rejected: {reading['rejected']}"
            print(f"{file.type}: saved: {what}: {json.dumps(file.saved)}", file=sys.stderr)
    return results


def computes_otherwise(types, table, inspections, file):
    """Returns true if transformers computes other numbers from a file as its class saves it."""
    computed = file_check.compute(types, table, file.saved, inspections)
    return isinstance(computed, str) or any(computed[1].get(k) != v for k, v in file.expected.items() if k != "sizes")


def compare_published(types, table, program, path, inspections):
    """Returns {outcome: [model, ...]} of a list of published files, with the reason after the model."""
    found = collections.defaultdict(list)
    with gzip.open(path, "rt") as lines:
        for record in map(json.loads, lines):
            what, reason = file_check.check_file(types, table, program, record["config"], inspections)
            found[what].append(f"{record['model']}: {reason}".rstrip(": "))
            if what == file_check.DIFFERS:
                print(f"{record['model']}: published: {reason}: {json.dumps(record['config'])}", file=sys.stderr)
    return found


def make_figures(options, inspections, table, results):
    """Returns the object of --figures, from which models_page.py writes docs/models.md."""
    def describe(name):
        row = table.get(name)
        encoding = "unknown" if not row else "rejected" if row.rejected else row.encoding
        parts = {"parts": row.members} if encoding == "composite" else {}
        return {"encoding": encoding, "besides": row.remark if row else "", **parts, **results.get(name, {})}
    return {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "seed": options.seed,
            "mutations": options.mutations, "types": {name: describe(name) for name in sorted(inspections)}}


def summarize(figures):
    """Returns the counts that are printed at the end."""
    types = figures["types"].values()
    return {"types": len(types), "encodings": collections.Counter(t["encoding"] for t in types),
            "compared": sum(1 for t in types if "counts" in t),
            "published": {what: len(models) for what, models in figures.get("published", {}).items()},
            "files": sum((t.get("counts", collections.Counter()) for t in types), collections.Counter())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/posenc", help="the program posenc (default: build/posenc)")
    parser.add_argument("--seen", metavar="FILE", help="keep inspections of types in FILE, and take them from it")
    parser.add_argument("--types", metavar="A,B", help="compare these types alone")
    parser.add_argument("--mutations", metavar="N", type=int, default=40, help="mutated files of a type (default: 40)")
    parser.add_argument("--seed", default="1", help="seed for random members (default: 1)")
    parser.add_argument("--published", metavar="FILE", help="also compare files of reports/tests/published.jsonl.gz")
    parser.add_argument("--figures", metavar="FILE", help="write counts to FILE, as JSON for models_page.py")
    options = parser.parse_args()
    types = config_classes()
    names = options.types.split(",") if options.types else sorted(types)
    unknown = [n for n in names if n not in types]
    if unknown:
        parser.error(f"--types: {', '.join(unknown)}: transformers {transformers.__version__} has no such type")
    inspections, table = inspect_all(types, names, options.seen), read_table()
    files = list(make_files(types, inspections, table, options.mutations, options.seed))
    results = compare_files(files, types, table, inspections, options.program)
    figures = make_figures(options, inspections, table, results)
    if options.published:
        figures["published"] = compare_published(types, table, options.program, options.published, inspections)
    for name in (name for name in inspections if name not in table):
        draft = draft_row(types[name], inspections[name]).line(name)
        print(f"{name}: types.txt has no row; a draft: {draft}", file=sys.stderr)
    print(json.dumps(summarize(figures), indent=1))
    if options.figures:
        with open(options.figures, "w") as file:
            json.dump(figures, file, indent=1)
    wrong = any(result["wrong"] or result.get("saved") for result in results.values())
    return 1 if wrong or figures.get("published", {}).get(file_check.DIFFERS) else 0


if __name__ == "__main__":
    sys.exit(main())
