"""Checks that the YAML files of examples/ci agree with compare.sh: they name each input of the script, and their only
shell is a call of it, STEP_COMMAND. Prints a line for each check, of which action.sh makes a test:

    yes action.yml is a composite action

    ci_yaml.py FOLDER STEP_COMMAND
"""
import re
import sys

import yaml

folder, step_command = sys.argv[1:]


def read(name):
    with open(f"{folder}/{name}", encoding="utf-8") as file:
        return file.read()


def check(is_right, name):
    print("yes" if is_right else "no", name)


def are_texts(values):
    return all(isinstance(value, str) for value in values)


# The head of the script lists its inputs.
script = read("compare.sh")
script_inputs = set(re.findall(r"^#     (POSENC_[A-Z0-9_]+)", script, re.M)) | {"POSENC_BUNDLE_SHA256"}


def check_action(action):
    inputs, outputs, (step, upload) = action["inputs"], action["outputs"], action["runs"]["steps"]
    used = set(re.findall(r"inputs\.([a-z0-9-]+)", str(action["runs"])))
    composite = action["runs"]["using"] == "composite"
    check(composite and action["name"] and action["description"], "action.yml is a composite action")
    called = step["run"] == step_command and step["shell"] == "sh"
    check(called and "run" not in upload, "action.yml: its only shell is a call of the script")
    check(used == set(inputs), f"action.yml: each input is used, and no other {used ^ set(inputs)}")
    passed = set(step["env"])
    check(passed == script_inputs, f"action.yml passes the inputs of the script {passed ^ script_inputs}")
    check(all(f"steps.{step['id']}.outputs.{name} " in output["value"] for name, output in outputs.items()),
          "action.yml: outputs are those of the step")
    check(all(f"{name}=%s" in script for name in outputs), "the script writes the outputs of action.yml")
    # YAML reads yes and no as booleans.
    check(are_texts(item["default"] for item in inputs.values() if not item.get("required")),
          "action.yml: defaults are texts")
    check(upload["with"]["path"] == step["env"]["POSENC_OUT"] + "/" and "!cancelled()" in upload["if"],
          "action.yml keeps the results of a failed step")
    return inputs


def check_workflow(workflow, inputs):
    checkout, use = workflow["jobs"]["kernel"]["steps"]
    required = {name for name in inputs if inputs[name].get("required")}
    # PyYAML reads the key on as true.
    check(set(workflow[True]) == {"pull_request"} and workflow["permissions"] == {"contents": "read"},
          "workflow.yml may only read, and runs for pull requests")
    check(required <= set(use["with"]) <= set(inputs), "workflow.yml gives inputs of action.yml, and those required")
    check(are_texts(use["with"].values()), "workflow.yml gives them as texts")
    check(checkout["with"]["fetch-depth"] == 0 and use["uses"].split("@")[0].endswith("/posenc/examples/ci"),
          "workflow.yml makes a full clone, and uses this folder")


def check_gitlab(job):
    variables, artifacts = job["variables"], job["artifacts"]
    given = {name for name in variables if name.startswith("POSENC_")}
    check(given - script_inputs == {"POSENC_URL", "POSENC_TAG"}, "gitlab.yml sets inputs of the script")
    check(job["script"] == ["/tmp/posenc/examples/ci/compare.sh"] and variables["GIT_DEPTH"] == 0,
          "gitlab.yml calls the script in a full clone")
    check(artifacts["paths"] == ["posenc-ci/"] and artifacts["when"] == "always",
          "gitlab.yml keeps the results of a failed job")
    check(all(isinstance(value, (str, int)) and not isinstance(value, bool) for value in variables.values()),
          "gitlab.yml: variables are texts or integers")


def check_scoreboard(workflow):
    steps = workflow["jobs"]["scoreboard"]["steps"]
    clones = [step["with"] for step in steps if "checkout" in step.get("uses", "")]
    check(workflow["permissions"] == {"contents": "read"}
          and [clone["persist-credentials"] for clone in clones] == [False, False],
          "scoreboard.yml may only read")
    check(clones[1]["repository"].endswith("/posenc") and f"./{clones[1]['path']}[numpy]" in str(workflow),
          "scoreboard.yml installs its clone of posenc")


action_inputs = check_action(yaml.safe_load(read("action.yml")))
check_workflow(yaml.safe_load(read("workflow.yml")), action_inputs)
check_gitlab(yaml.safe_load(read("gitlab.yml"))["posenc"])
check_scoreboard(yaml.safe_load(read("scoreboard.yml")))
