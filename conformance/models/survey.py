#!/usr/bin/env python3
"""Compares what posenc reads from model files with what transformers computes, for each of its model types.

    survey.py [--program build/posenc] [--seen FILE] [--types a,b] [--mutations 40] [--seed 1]
              [--published FILE] [--figures FILE]

 1. The model of each type is built by its defaults, without memory for weights, and inspected for positions.
 2. Files are made of each type in types.txt: one with the defaults, and others with random values of members
    that matter. Modules of the model compute frequencies, tables or indices for each of them.
 3. posenc reads each file as it was written and as its class saves it. Numbers and sizes are compared.

A file that is read wrongly is printed with the first difference, for example:

    llama: pair 3 is 0.0562, not 0.0749: {"model_type": "llama", "rope_theta": 500.0}

Exit status: 0 if all agree; 1 if a file is read wrongly, or rejected only as its class saves it.

For a type that types.txt lacks, it prints the modules that encode positions. A person adds its row, with the flags of a
type with similar code. The survey then checks the row.

Modules in survey/: transformers_models.py builds models, and inspection.py finds what encodes positions in them.
Comparers (comparer.py has their interface) are in rotary.py, vision_rotary.py, tables.py and relative_terms.py.
models_page.py writes docs/models.md.
"""
import argparse
import collections
import copy
import csv
import functools
import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.with_suffix("")), str(HERE.parents[2] / "reports")]
from comparer import Comparer
from inspection import inspect_type, sizes_of_config
from relative_terms import RelativeTermsComparer
from rotary import RotaryComparer
from tables import LearnedComparer, SinusoidComparer, T5Comparer, WindowComparer
from transformers_models import (
    HAS_ROPE_PARAMETERS, REQUIRED_MEMBERS, config_classes, model_classes, torch, transformers)
from vision_rotary import FractionComparer, PatchComparer
from posenc.models.calls import frequencies_of
from posenc.models.members import Rejected
from posenc.models.model import read_json
from posenc.models.types import types as read_table

SAVED = "saved: "  # prefix of outcomes of files as their class saves them; models_page.py has it, too
AGREES, DIFFERS, REJECTED, UNASKED = "agrees", "differs", "rejected", "not asked"
# Comparers that need a flag come before others of the same encoding.
COMPARERS = [FractionComparer(), PatchComparer(), RotaryComparer(), WindowComparer(), RelativeTermsComparer(),
             SinusoidComparer(), LearnedComparer(), T5Comparer()]
# Members of a part that comparers use.
MEMBERS = ("length width heads key_heads head_dim rotary_dim layers first rows num_buckets scaled decoder_layers "
           "max_distance window window_class alibi_bias_max sin_cos cos_first shrunk norms column_first origin "
           "both_ways backward of_values halves bare left right side windows").split()


# ---- What posenc reads ----

def read(program, config):
    """Returns {"parts": [...], "notes": text} of a configuration, or {"rejected": reason}."""
    try:
        reading = read_json(json.dumps(config))
    except Rejected as error:
        return {"rejected": str(error)}
    return {"parts": [describe_part(program, part) for part in reading.parts], "notes": ".  ".join(reading.notes)}


def describe_part(program, part):
    """Returns the members of a part that are set, and its frequencies for one token ("omega") and past its length."""
    members = {"name": part.name, "encoding": part.encoding}
    if part.stack:
        members["stack"] = part.stack
    members.update((name, float(getattr(part, name))) for name in MEMBERS if getattr(part, name))
    if not part.rotates and part.encoding != "sinusoidal":
        return members
    own, beyond = (read_frequencies(program, str(frequencies_of(part, length))) for length in (1, 2 * part.length))
    if own:
        members.update(omega=own["omega"], attention=own["attention"])
        if any(own["axes"]):
            members["axes"] = own["axes"]
    if beyond and own and beyond["omega"] != own["omega"]:
        members["beyond"] = beyond["omega"]
    return members


@functools.lru_cache(None)
def read_frequencies(program, problem):
    """Returns {"omega": [...], "axes": [...], "attention": 1.0} of a problem, or None if the program rejects it."""
    words = [program, "table", "frequencies", "--problem", problem, "--out", "csv"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return None
    rows = list(csv.DictReader(done.stdout.splitlines()))
    return {"omega": [float(row["radians"]) for row in rows], "axes": [int(row["axis"]) for row in rows],
            "attention": float(rows[0]["attention_factor"])}


# ---- What transformers computes ----

def find_comparer(row):
    """Returns the comparer of a row of types.txt; None without a row, for rejected types and for other encodings."""
    if not row or row.rejected:
        return None
    return next((c for c in COMPARERS if row.encoding in c.encodings and c.flag in (None, *row.flags)), None)


def text_part(types, table, name):
    """Returns (member, type) of the part that posenc reads of a composite model, or None if it is no known class.

    For "qwen2_vl" it is ("text_config", "qwen2_vl_text").
    """
    member, part = next(iter(table[name].defaults.items()), (None, None))
    row = table.get(part)
    return (member, part) if member and part in types and row and row.encoding != "composite" else None


def compute(types, table, file, inspections):
    """Returns (comparer, expected numbers) of a file, or the reason why transformers cannot compute them.

    `inspections` caches inspect_type() by type.
    """
    name = file.get("model_type")
    row, cls = table.get(name), types.get(name)
    if not row or not cls:
        return f"transformers has no model_type {name}"
    if not HAS_ROPE_PARAMETERS and "rope_parameters" in json.dumps(file):
        return "this release does not read rope_parameters"
    member = None  # with the configuration of the part that posenc reads
    if row.encoding == "composite":
        member = (text_part(types, table, name) or (None,))[0]
        if not member:
            return "its parts are models of several parts"
    try:
        members = {k: v for k, v in copy.deepcopy(file).items() if k != "model_type"}
        config = cls(**{**REQUIRED_MEMBERS.get(name, {}), **members})
        own = getattr(config, member) if member else config
        part = own.model_type
        comparer = find_comparer(table.get(part))
        if not comparer:
            return f"nothing is asked of model_type {part}"
        if part not in inspections:
            part_class = types.get(part, type(own))
            inspections[part] = inspect_type(part_class, part_class())
        if "error" in inspections[part]:
            return f"no model of it can be made: {inspections[part]['error']}"
        model_classes(type(own))  # imports the modules that a cached inspection names
        expected = comparer.compute(type(own), inspections[part], own)
        if not expected:  # a class that rotates only if the file says so
            expected = comparer.compute(type(own), inspect_type(type(own), own), own)
        if isinstance(expected, dict) and expected.get("sizes", 0) is None:
            expected["sizes"] = sizes_of_config(type(own), own)
    except Exception as error:
        return f"transformers: {type(error).__name__}: {str(error)[:160]}"
    return (comparer, expected) if expected else f"nothing is asked of model_type {part}"


# ---- Comparison ----

def compare(comparer, reading, expected):
    """Returns "" if a file was rejected, or its parts are those of the model; else the first difference.

    A vision tower beside the text is another model.
    """
    if "rejected" in reading:
        return ""
    text = [part for part in reading["parts"] if part.get("stack") != "vision"]
    try:
        return comparer.compare({**reading, "parts": text or reading["parts"]}, expected)
    except KeyError as error:
        return f"no {error.args[0]} was read"


def check_file(types, table, program, file, inspections):
    """Returns the outcome of a file (AGREES, DIFFERS, REJECTED or UNASKED) and the reason."""
    reading = read(program, file)
    if "rejected" in reading:
        return REJECTED, reading["rejected"]
    computed = compute(types, table, file, inspections)
    if isinstance(computed, str):
        return UNASKED, computed
    difference = compare(computed[0], reading, computed[1])
    return (DIFFERS, difference) if difference else (AGREES, "")


# ---- All types ----


class File(NamedTuple):
    """A file to compare."""
    type: str
    comparer: Comparer
    members: dict
    saved: dict  # members as the class saves them
    expected: Any  # numbers by transformers; a text if it rejects the file


def inspect_defaults(cls):
    """Returns the inspection of a class with its defaults."""
    try:
        return inspect_type(cls, cls())
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
        row, member, part = table.get(name), None, name  # the part of a composite model that posenc reads
        if row and row.encoding == "composite":
            member, part = text_part(types, table, name) or (None, None)
            row = table.get(part)
        comparer = find_comparer(row)
        if not comparer or "error" in inspections.get(part, {"error": ""}):
            continue
        rng, cls, defaults = random.Random(f"{seed} {name}"), types[name], types[part]().to_dict()
        for k in range(min(count // 8 if member else count, comparer.max_mutations) + 1):
            saved = None
            try:
                members = comparer.mutate(rng, defaults, inspections[part]) if k else {}
                if member and k:
                    members = {member: {"model_type": part, **REQUIRED_MEMBERS.get(part, {}), **members}}
                config = cls(**copy.deepcopy(members))
                saved = json.loads(config.to_json_string())
                own = getattr(config, member) if member else config
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
    """Returns the outcome of a file that transformers reads."""
    return "rejected" if "rejected" in reading else "read wrongly" if difference else "read rightly"


def compare_files(files, types, table, inspections, program):
    """Returns {type: {"counts": {outcome: files}, "wrong": wrongly read files, "why": reasons of rejections,
    "saved": number of files that are wrong only as their class saves them}}."""
    results = {}
    for file in files:
        new = {"counts": collections.Counter(), "wrong": [], "why": []}
        result = results.setdefault(file.type, new)
        reading = read(program, file.members)
        rejected = "rejected" in reading
        if isinstance(file.expected, str):
            result["counts"]["transformers rejects, " + ("rejected" if rejected else "read")] += 1
            continue
        difference = compare(file.comparer, reading, file.expected)
        result["counts"][outcome(reading, difference)] += 1
        if rejected:
            result["why"].append(reading["rejected"])
        if difference:
            result["wrong"].append({"file": file.members, "why": difference})
            print(f"{file.type}: {difference}: {json.dumps(file.members)}", file=sys.stderr)
        reading = read(program, file.saved)
        difference = compare(file.comparer, reading, file.expected)
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
    computed = compute(types, table, file.saved, inspections)
    return isinstance(computed, str) or any(computed[1].get(k) != v for k, v in file.expected.items() if k != "sizes")


def compare_published(types, table, program, path, inspections):
    """Returns {outcome: [model, ...]} of a list of published files, with the reason after the model."""
    found = collections.defaultdict(list)
    with gzip.open(path, "rt") as lines:
        for record in map(json.loads, lines):
            what, reason = check_file(types, table, program, record["config"], inspections)
            found[what].append(f"{record['model']}: {reason}".rstrip(": "))
            if what == DIFFERS:
                print(f"{record['model']}: published: {reason}: {json.dumps(record['config'])}", file=sys.stderr)
    return found


def make_figures(options, inspections, table, results):
    """Returns the object of --figures, from which models_page.py writes docs/models.md."""
    def describe(name):
        row = table.get(name)
        encoding = "unknown" if not row else "rejected" if row.rejected else row.encoding
        parts = {"parts": row.defaults} if encoding == "composite" else {}
        return {"encoding": encoding, "besides": row.note if row else "", **parts, **results.get(name, {})}
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
        rotary = [module["class"] for module in inspections[name].get("rotary", [])]
        modules = sorted({*inspections[name].get("modules", []), *rotary})
        print(f"{name}: types.txt has no row; modules: {', '.join(modules)}", file=sys.stderr)
    print(json.dumps(summarize(figures), indent=1))
    if options.figures:
        with open(options.figures, "w") as file:
            json.dump(figures, file, indent=1)
    wrong = any(result["wrong"] or result.get("saved") for result in results.values())
    return 1 if wrong or figures.get("published", {}).get(DIFFERS) else 0


if __name__ == "__main__":
    sys.exit(main())
