"""Asks parts_of what it reads of configurations."""
import json
import subprocess


def read_all(program, configs):
    """What parts_of says of each configuration."""
    lines = "".join(json.dumps(c) + "\n" for c in configs)
    done = subprocess.run([program], input=lines, capture_output=True, text=True)
    answers = [json.loads(l) for l in done.stdout.splitlines()]
    if len(answers) != len(configs):
        raise SystemExit(f"{program} ended after {len(answers)} of {len(configs)}: {lines.splitlines()[len(answers)][:3000]}")
    return answers
