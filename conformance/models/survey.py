#!/usr/bin/env python3
"""Asks transformers itself how each of its model types encodes positions, and compares that with types.txt.

    survey.py [--program build/posenc] [--seen FILE] [--types a,b] [--mutations 40] [--seed 1]
              [--published FILE] [--figures FILE]

Every configuration class is made with its defaults, its model is built without memory for weights, and
what of it encodes positions is looked at; --seen keeps that in a file, as it takes the most time.  Types
that the table reads are then made with their defaults and with mutations of every member that matters.  Each
such file is read as it was written and as the class saves it, and what was read is compared with the model.
It fails where anything is read wrongly, or rejected only as saved.

For a type that the table lacks it prints a draft of a row, with the members that the class reads.  Its encoding and
its flags are for a person to add: those of a type whose code is alike are a beginning, and the comparison says whether
files are then read rightly.
"""
import argparse
import collections
import copy
import gzip
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "survey"))
import compare
import kinds
import one
import rows
from look import look
from truth import NEEDED, config_classes, model_classes, torch, transformers


def look_at(cls):
    """What the model of a type has, by its defaults."""
    model_classes(cls)  # their modules are imported, whoever kept what was seen
    try:
        config = cls()
        seen = look(cls, config)
        subs = {k: getattr(getattr(config, k, None), "model_type", None) for k in getattr(cls, "sub_configs", {})}
        return {**seen, "subs": {k: v for k, v in subs.items() if v}}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:160]}"}


def see(types, names, path):
    """{type: what was seen}, of a file where it is there, and kept in it."""
    kept = {}
    if path and os.path.exists(path):
        for text in open(path):
            kept.update(json.loads(text))
    seen = {}
    for name in names:
        if name not in kept:
            kept[name] = look_at(types[name])
            print(name, kept[name].get("error", ""), file=sys.stderr, flush=True)
            if path:
                with open(path, "a") as file:
                    print(json.dumps({name: kept[name]}), file=file)
        else:
            model_classes(types[name])
        seen[name] = kept[name]
    return seen


def files(types, seen, told, count, seed):
    """(type, type of the part that is read, file, file as the class saves it, what transformers computes of them: a text
    where it refuses the file)."""
    for name in sorted(seen):
        row, key, part = told.get(name), None, name
        if row and row.encoding == "composite":
            key, part = one.text_part(types, told, name) or (None, None)
            row = told.get(part)
        kind = row and not row.rejected and kinds.kind_of(row)
        if not kind or "error" in seen.get(part, {"error": ""}):
            continue
        rng, cls = random.Random(f"{seed} {name}"), types[name]
        plain = types[part]().to_dict()
        for k in range(min(count if not key else count // 8, getattr(kind, "MUTATIONS", count)) + 1):
            saved, answer = None, None
            try:
                members = kind.mutate(rng, plain, seen[part]) if k else {}
                if key and k:
                    members = {key: {"model_type": part, **NEEDED.get(part, {}), **members}}
                config = cls(**copy.deepcopy(members))
                saved = json.loads(config.to_json_string())
                own = getattr(config, key) if key else config
                answer = own is not None and kind.ask(type(own), seen[part], own)
                part = own.model_type if own is not None else part
            except Exception as error:
                answer = f"{type(error).__name__}: {str(error)[:100]}"
            if not answer:
                break
            yield name, part, {"model_type": name, **NEEDED.get(name, {}), **members}, saved, answer


def judge_one(kind, said, answer):
    """What a file is read otherwise in; "" where it is read as the model has it."""
    if "refused" in said:
        return ""
    return one.judge(kind, said, answer)


SAVED = "saved: "


def rereads(types, told, seen, saved, answer):
    """Whether transformers makes the same of a file as its class saves it."""
    again = one.asked(types, told, saved, seen)
    return not isinstance(again, str) and all(again[1].get(k) == v for k, v in answer.items() if k != "sizes")


def judge(jobs, types, told, seen, program):
    """{type: what came of its files}: the counts, what its defaults give, and what is read wrongly."""
    found = {}
    for name, part, file, saved, answer in jobs:
        of = found.setdefault(name, {"defaults": answer, "counts": collections.Counter(), "wrong": [], "why": []})
        said = compare.read(program, file)
        refused = "refused" in said
        if isinstance(answer, str):
            of["counts"]["transformers refuses, " + ("refused" if refused else "read")] += 1
            continue
        kind = kinds.kind_of(told[part])
        why = judge_one(kind, said, answer)
        of["counts"]["refused" if refused else "read wrongly" if why else "read rightly"] += 1
        if refused:
            of["why"].append(said["refused"])
        if why:
            of["wrong"].append({"file": file, "why": why})
            print(f"{name}: {why}: {json.dumps(file)}", file=sys.stderr)
        again = compare.read(program, saved)
        why = judge_one(kind, again, answer)
        only = "refused" in again and not refused
        of["counts"][SAVED + ("refused" if "refused" in again else "read wrongly" if why else "read rightly")] += 1
        if (why or only) and not rereads(types, told, seen, saved, answer):
            of["counts"][SAVED + "transformers itself reads it otherwise"] += 1
        elif why or only:
            why = why or again["refused"]
            of["saved"] = of.get("saved", 0) + 1
            print(f"{name}: saved: {'refused' if only else 'wrong'}: {why}: {json.dumps(saved)}", file=sys.stderr)
    return found


def judge_published(types, told, program, path, seen):
    """{outcome: [model, ...]} of the published files of a list, with the reason where there is one."""
    found = collections.defaultdict(list)
    with gzip.open(path, "rt") as lines:
        for record in map(json.loads, lines):
            file = record["config"]
            what, why = one.check(types, told, program, file, seen)
            found[what].append(f"{record['model']}: {why}".rstrip(": "))
            if what == one.DIFFERS:
                print(f"{record['model']}: published: {why}: {json.dumps(file)}", file=sys.stderr)
    return found


def figures_of(options, seen, told, found):
    """What page.py writes docs/models.md of."""
    def of(name):
        row = told.get(name)
        said = {"encoding": "unknown" if not row else "refused" if row.rejected else row.encoding,
                "besides": row.besides if row else ""}
        if row and row.encoding == "composite":
            said["parts"] = row.members
        return {**said, **found.get(name, {})}
    return {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "seed": options.seed,
            "mutations": options.mutations, "types": {name: of(name) for name in sorted(seen)}}


def summary(figures):
    types = figures["types"].values()
    return {"types": len(types), "encodings": collections.Counter(t["encoding"] for t in types),
            "compared": sum(1 for t in types if "counts" in t),
            "published": {what: len(models) for what, models in figures.get("published", {}).items()},
            "files": sum((t.get("counts", collections.Counter()) for t in types), collections.Counter())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/posenc")
    parser.add_argument("--seen", help="a file that keeps what was seen of each type")
    parser.add_argument("--types", help="these alone")
    parser.add_argument("--mutations", type=int, default=40)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--published", help="published files to read and ask, too (reports/tests/published.jsonl.gz)")
    parser.add_argument("--figures", help="a file for the counts, as JSON")
    options = parser.parse_args()
    types = config_classes()
    names = options.types.split(",") if options.types else sorted(types)
    unknown = [n for n in names if n not in types]
    if unknown:
        parser.error(f"--types: {', '.join(unknown)}: transformers {transformers.__version__} has no such type")
    seen, told = see(types, names, options.seen), rows.written()
    jobs = list(files(types, seen, told, options.mutations, options.seed))
    found = judge(jobs, types, told, seen, options.program)
    figures = figures_of(options, seen, told, found)
    if options.published:
        figures["published"] = judge_published(types, told, options.program, options.published, seen)
    for name in (name for name in seen if name not in told):
        print(f"{name}: types.txt has no row; a draft: {rows.draft(types[name], seen[name]).line(name)}", file=sys.stderr)
    print(json.dumps(summary(figures), indent=1))
    if options.figures:
        with open(options.figures, "w") as file:
            json.dump(figures, file, indent=1)
    otherwise = figures.get("published", {}).get(one.DIFFERS)
    return 1 if otherwise or any(of["wrong"] or of.get("saved") for of in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
