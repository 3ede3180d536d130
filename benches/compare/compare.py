#!/usr/bin/env python3
"""Compares tine with other graph engines: the CPU time of a node, side by side.

    benches/compare/compare.py              builds and installs what it needs, then measures and prints a table
    benches/compare/compare.py --rounds 9   more rounds, for a busy machine

Needs cargo, python3 with venv, and the registries of both. An engine that can not be built is left out, and said to be.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
LANGGRAPH = "langgraph==1.2.24"

# The engines, and the package of each in the registry; tine has none.
ENGINES = {
    "tine": None,
    "LangGraph": "langgraph",
    "graph-flow": "graph-flow",
    "adk-graph": "adk-graph",
    "juncture": "juncture-core",
}
WORKLOADS = [
    ("chain", 10),
    ("chain", 100),
    ("chain", 1_000),
    ("chain-checkpoints", 100),
    ("fan-out", 10),
    ("fan-out", 100),
    ("fan-out", 1_000),
]


def say(text):
    print(text, file=sys.stderr, flush=True)


def target_directory():
    cargo = ["cargo", "metadata", "--format-version=1", "--no-deps", "--locked"]
    said = subprocess.run(cargo, cwd=HERE, check=True, capture_output=True, text=True).stdout
    return Path(json.loads(said)["target_directory"])


def runners():
    """The command of each engine that could be built."""
    found = {}
    target = target_directory()
    for engine in ENGINES:
        if engine == "LangGraph":
            python = VENV / "bin" / "python"
            if not python.exists():
                say("making a virtual environment")
                venv.create(VENV, with_pip=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", LANGGRAPH]
            installed = subprocess.run(pip)
            command = [python, HERE / "langgraph_runner.py"]
        else:
            package = f"compare-{engine}"
            say(f"building {package}")
            installed = subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", "-p", package], cwd=HERE)
            command = [target / "release" / package]
        if installed.returncode == 0:
            found[engine] = command
        else:
            say(f"{engine}: could not be built, and is left out")
    return found


def version(engine):
    package = ENGINES[engine]
    if engine == "LangGraph":
        return LANGGRAPH.split("==")[1]
    if package is None:
        return "this tree"
    with open(HERE / "Cargo.lock", "rb") as lock:
        packages = tomllib.load(lock)["package"]
    return next(found["version"] for found in packages if found["name"] == package)


def measure(command, workload, size, milliseconds):
    """Nanoseconds of CPU a node; else why there are none."""
    # Whatever traces LangChain's runs elsewhere is not to be measured.
    environment = {**os.environ, "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
    environment.pop("RUST_LOG", None)
    arguments = [*map(str, command), workload, str(size), str(milliseconds)]
    ended = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    if ended.returncode != 0:
        say(f"{' '.join(arguments)} failed:\n{ended.stderr}")
        return "failed"
    said = ended.stdout.strip()
    if said == "none":
        return "no dispatch" if workload == "fan-out" else "stores none"
    return float(said)


def table(engines, medians):
    rows = [["workload", *(f"{engine} {version(engine)}" for engine in engines)]]
    for workload, size in WORKLOADS:
        own = medians["tine", workload, size]
        if isinstance(own, str):
            sys.exit(f"compare: tine's own {workload} {size} {own}")
        row = [f"{workload.replace('-checkpoints', ', checkpoints,')} {size:,}"]
        for engine in engines:
            median = medians[engine, workload, size]
            if isinstance(median, str):
                row.append(median)
            elif engine == "tine":
                row.append(f"{median / 1000:.2f} µs")
            else:
                row.append(f"{median / 1000:.2f} µs ({median / own:.3g}×)")
        rows.append(row)
    rows.insert(1, ["---", *("---:" for _ in engines)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured; the median counts")
    parser.add_argument("--milliseconds", type=int, default=300, help="how long each measurement takes at least")
    options = parser.parse_args()
    commands = runners()
    if "tine" not in commands:
        sys.exit("compare: tine could not be built")
    taken = {}
    for number in range(options.rounds):
        say(f"round {number + 1} of {options.rounds}")
        # One after the other within each workload, so that a busy moment of the machine meets them all.
        for workload, size in WORKLOADS:
            for engine, command in commands.items():
                nanoseconds = measure(command, workload, size, options.milliseconds)
                taken.setdefault((engine, workload, size), []).append(nanoseconds)
    medians = {}
    for key, values in taken.items():
        why = next((value for value in values if isinstance(value, str)), None)
        medians[key] = why or statistics.median(values)
    print(table(list(commands), medians))


main()
