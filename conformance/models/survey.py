#!/usr/bin/env python3
"""Asks transformers itself how each of its model types encodes positions, and writes types.txt.

    survey.py [--program build/conformance/models/parts_of] [--mutations 72] [--types a,b] [--check] [--figures FILE]

Every configuration class is made with its defaults, its model is built without memory for weights, and
the modules that encode positions are built again on the CPU and run.  Rotations are then made for
mutations of every member that matters, read by parts_of too, and compared.  What differs is not read:
a type, or an object of its own for a type of layers, or one for all, is refused by flag.  parts_of has
to be built again with the table (ninja) between two runs; --check writes nothing and fails where
anything is read wrongly.
"""
import argparse
import collections
import copy
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "survey"))
import compare
import rows
import table
from truth import config_classes, look, model_classes, torch, transformers

TABLE = os.path.join(rows.HERE, "types.txt")


def see(types, names):
    """What the model of each type has, by its defaults."""
    seen = {}
    for name in names:
        cls = types[name]
        model_classes(cls)
        try:
            config = cls()
            seen[name] = look(cls, config)
            subs = {k: getattr(getattr(config, k, None), "model_type", None) for k in getattr(cls, "sub_configs", {})}
            seen[name]["subs"] = {k: v for k, v in subs.items() if v}
        except Exception as error:
            seen[name] = {"error": f"{type(error).__name__}: {str(error)[:160]}"}
        print(name, seen[name].get("error", ""), file=sys.stderr, flush=True)
    return seen


def mutations(types, seen, told, count):
    """(type, file, truth) of each file, truth a text where transformers itself refuses it."""
    rng = random.Random(1)
    for name in sorted(seen):
        if not told.get(name, [""])[0].startswith("rope") or "error" in seen[name] or not seen[name].get("rotary"):
            continue
        cls, modules = types[name], rows.rotary_classes(seen[name])
        plain = cls().to_dict()
        pairs = len(next(iter(seen[name]["rotary"][0]["freqs"].values()))[0])
        for k in range(count + 1):
            members = compare.mutate(rng, plain, pairs) if k else {}
            try:
                truth = compare.rotary_truth(modules, cls(**copy.deepcopy(members)))
            except Exception as error:
                truth = f"{type(error).__name__}: {str(error)[:100]}"
            yield name, {"model_type": name, **members}, truth


def flags_of(wrong):
    """What is to be refused of a type for files to be read rightly."""
    flags = set()
    for file in wrong:
        rope = file.get("rope_scaling") or file.get("rope_parameters")
        nested = rope and any(isinstance(v, dict) for v in rope.values())
        flags.add("one_object" if nested else "layered" if rope else "unsupported")
    return flags


def judge(jobs, program):
    """Counts, and by type what is read wrongly and how many files are read rightly."""
    counts, wrong, right = collections.Counter(), collections.defaultdict(list), collections.Counter()
    for (name, file, truth), said in zip(jobs, compare.read_all(program, [j[1] for j in jobs])):
        refused = "refused" in said
        if isinstance(truth, str):
            counts["transformers refuses, " + ("refused" if refused else "read")] += 1
        elif refused:
            counts["refused"] += 1
        else:
            why = compare.judge_rotary(said, truth)
            counts["read wrongly" if why else "read rightly"] += 1
            right[name] += not why
            if why:
                wrong[name].append(file)
                print(f"{name}: {why}: {json.dumps(file)}", file=sys.stderr)
    return counts, wrong, right


def add_flags(made, wrong, names, right):
    for name in names:
        flags = flags_of(wrong[name]) if name in wrong else set()
        have = set(made[name][1] if isinstance(made[name][1], list) else made[name][1].split())
        if "unsupported" in flags or (flags and flags <= have) or not right[name]:
            made[name] = ["none", "unsupported", "", "its classes read their members in a way of their own"]
        else:
            made[name][1] = sorted(have | flags)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/conformance/models/parts_of")
    parser.add_argument("--mutations", type=int, default=72)
    parser.add_argument("--types", help="these alone, for a look; nothing is written")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--figures", help="a file for the counts, as JSON")
    options = parser.parse_args()
    types = config_classes()
    names = options.types.split(",") if options.types else sorted(types)
    seen = see(types, [n for n in names if n in types])
    versions = f"transformers {transformers.__version__} with torch {torch.__version__.split('+')[0]}"
    jobs = list(mutations(types, seen, rows.by_hand(whole=True), options.mutations))
    counts, wrong, right = judge(jobs, options.program)
    kinds = collections.Counter("refused" if "unsupported" in r[1].split() else r[0] for n, r in rows.by_hand(whole=True).items() if n in seen)
    figures = {"versions": versions, "types": len(seen), "kinds": kinds, "files": len(jobs), "counts": counts,
               "rotating": len({j[0] for j in jobs}), "read": sum(1 for n in right if right[n] and n not in wrong)}
    print(json.dumps(figures, indent=1))
    if options.figures:
        json.dump(figures, open(options.figures, "w"), indent=1)
    if not options.check and not options.types:
        told = rows.by_hand(whole=True)
        made, _ = rows.make(types, seen)
        for name, row in told.items():  # what an earlier run found to be read wrongly stays refused
            if name in made and len(made[name]) == 5:
                flags = made[name][1] if isinstance(made[name][1], list) else made[name][1].split()
                made[name][1] = flags + [w for w in ("layered", "one_object") if w in row[1].split() and w not in flags]
                if row[3] == "its classes read their members in a way of their own":
                    made[name] = row
        add_flags(made, wrong, sorted({j[0] for j in jobs} & set(made)), right)
        table.write(TABLE, made, versions)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
