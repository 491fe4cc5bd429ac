#!/usr/bin/python3
"""Runs the workflow examples/fleet/github-matrix.yml without GitHub.  ./run fleet matrix starts it.  Prints TAP.

    matrix.py BUNDLE      BUNDLE: an archive of ./run bundle, which no job builds again

The first tests compare the YAML with the rules of GitHub.  Then its jobs run in order, each combination of a matrix in
a folder of its own.  They hand on artefacts by name.  Checks are quick ones of one kernel; both machines are this one.
"""
import glob
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
bundle = os.path.abspath(sys.argv[1])
workflow = yaml.safe_load(open(os.path.join(ROOT, "examples/fleet/github-matrix.yml"), encoding="utf-8"))
tests = failures = 0


def verdict(right, name, reason=""):
    global tests, failures
    tests += 1
    failures += not right
    print(f"{'ok' if right else 'not ok'} {tests} - {name}")
    if not right:
        print("".join(f"# {line}\n" for line in str(reason).splitlines()[:20]), end="", flush=True)


def combinations(job):
    """Returns each combination of a job's matrix: [{"machine": "ubuntu-24.04", "shard": 0}, ...]."""
    matrix = job.get("strategy", {}).get("matrix", {})
    return [dict(zip(matrix, values)) for values in itertools.product(*matrix.values())]


def fill(text, matrix):
    """Replaces expressions such as ${{ matrix.shard }}, as GitHub does before a shell sees them."""
    known = {f"matrix.{name}": str(value) for name, value in matrix.items()}
    return re.sub(r"\$\{\{ *([a-z_.]+) *\}\}", lambda m: known[m.group(1)], text)


# ---- The rules of GitHub ----

members = {"name", True, "permissions", "env", "jobs"}  # YAML reads the key "on" as true
verdict(set(workflow) == members, "it has a name, triggers, permissions, jobs", list(workflow))
verdict(workflow["permissions"] == {"contents": "read"}, "it may read, and no more")
jobs = workflow["jobs"]
for name, job in jobs.items():
    needs = job.get("needs", [])
    needs = [needs] if isinstance(needs, str) else needs
    verdict(all(n in jobs for n in needs) and "runs-on" in job and "timeout-minutes" in job,
            f"{name}: needs jobs that are there, runs on a machine, ends", job)
    for step in job["steps"]:
        verdict(("run" in step) != ("uses" in step), f"{name}: a step runs or uses", step)
        verdict("uses" not in step or re.fullmatch(r"[a-z-]+/[a-z-]+@v[0-9]+", step["uses"]),
                f"{name}: an action has a version", step)
        for expression in re.findall(r"\$\{\{(.*?)\}\}", str(step)):
            matrix = job.get("strategy", {}).get("matrix", {})
            verdict(re.fullmatch(r" *(matrix\.(\w+)|!cancelled\(\)) *", expression) and
                    all(m in matrix for m in re.findall(r"matrix\.(\w+)", expression)),
                    f"{name}: {expression.strip()} has a value", step)
shards = jobs["verify"]["strategy"]["matrix"]["shard"]
verdict(shards == list(range(workflow["env"]["SHARDS"])), "SHARDS is their number, and they count from 0", shards)

# ---- The jobs: each function runs a step and returns true if it succeeds ----

scratch = tempfile.mkdtemp()
artefacts = os.path.join(scratch, "artefacts")
os.mkdir(artefacts)
summary = os.path.join(scratch, "summary.md")
environment = dict(os.environ, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=summary, CI="true",
                   **{name: str(value) for name, value in workflow["env"].items()})


def upload(step, matrix, folder):
    """Copies files of a job's folder to the folder of an artefact."""
    to = os.path.join(artefacts, fill(step["with"]["name"], matrix))
    os.mkdir(to)  # a name is there once: GitHub rejects a second
    files = glob.glob(os.path.join(folder, fill(step["with"]["path"], matrix)))
    for file in files:
        shutil.copy(file, to)
    return bool(files)


def download(step, matrix, folder):
    """Copies the files of the artefacts that a name or a pattern such as {verify,bench}-* selects."""
    options = step["with"]
    names = [fill(options["name"], matrix)] if "name" in options else [
        n for n in sorted(os.listdir(artefacts))
        if any(n.startswith(p + "-") for p in re.match(r"\{(.*)\}-\*$", options["pattern"]).group(1).split(","))]
    to = os.path.join(folder, options.get("path", "."))
    os.makedirs(to, exist_ok=True)
    for name in names:
        for file in glob.glob(os.path.join(artefacts, name, "*")):
            if os.path.exists(os.path.join(to, os.path.basename(file))):
                return False  # merge-multiple keeps one of two
            shutil.copy(file, to)
    return bool(names)


def shell(step, matrix, folder):
    script = fill(step["run"], matrix)
    if script.startswith("./run bundle "):
        shutil.copy(bundle, os.path.join(folder, script.split()[2]))
        return True
    # One kernel, of one backend where there is nothing to compare.
    script = script.replace("verify --full", "verify --quick --kernel alibi")
    script = script.replace("bench --quick", "bench --quick --kernel alibi --backend scalar")
    done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=folder,
                          env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # The second machine is this one, too: its records get another CPU.
    if matrix.get("machine", "").endswith("-arm"):
        for file in glob.glob(os.path.join(folder, "*.jsonl")):
            text = open(file, encoding="utf-8").read()
            with open(file, "w", encoding="utf-8") as out:
                out.write(re.sub(r'("env_id": ?"|"cpu": ?\{"key": ?")', r"\1other-", text))
    if done.returncode:
        print("".join(f"# {line}\n" for line in done.stdout.splitlines()[-20:]), end="")
    return done.returncode == 0


try:
    for name, job in jobs.items():
        for matrix in combinations(job):
            label = " ".join([name, *map(str, matrix.values())])
            folder = tempfile.mkdtemp(dir=scratch)
            for step in job["steps"]:
                action = step.get("uses", "").split("@")[0]
                what = {"actions/upload-artifact": upload, "actions/download-artifact": download,
                        "actions/checkout": lambda *_: True}.get(action, shell)
                verdict(what(step, matrix, folder), f"{label}: {step.get('name', action)}", step)
    lines = open(summary, encoding="utf-8").read() if os.path.exists(summary) else ""
    verdict("failed" in lines, "the summary has the result", lines)
finally:
    shutil.rmtree(scratch)
print(f"1..{tests}")
sys.exit(failures > 0)
