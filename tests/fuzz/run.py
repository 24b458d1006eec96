"""``make fuzz``: many mutated inputs, with counts by kind; goes on where it stopped.

    python tests/fuzz/run.py --cases 10000 --state .fuzz.jsonl

A case is known by its number: ``--only 1234`` runs it alone and says more.
"""

import argparse
import json
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cases import Worker, kind_of


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--state", type=Path, default=Path(".fuzz.jsonl"))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int)
    parser.add_argument("--light", action="store_true", help="without torch")
    asked = parser.parse_args()
    if asked.only is not None:
        worker = Worker()
        print(json.dumps(worker.run(asked.only, not asked.light), indent=1))
        worker.close()
        return 0
    done = {}
    if asked.state.exists():
        known = map(json.loads, asked.state.open())
        heavy = not asked.light  # a new kind moves the numbers of the others
        done = {r["case"]: r for r in known if r["kind"] == kind_of(r["case"], heavy)}
    # What was wrong is tried again: perhaps it is mended.
    fine = {number for number, result in done.items() if not result["wrong"]}
    left = [number for number in range(asked.cases) if number not in fine]
    started = time.monotonic()

    def work(mine):
        worker = Worker()
        for number in mine:
            yield worker.run(number, not asked.light)
        worker.close()

    with asked.state.open("a") as state, ThreadPoolExecutor(asked.workers) as pool:
        lock = threading.Lock()

        def note(mine):
            for result in work(mine):
                with lock:
                    done[result["case"]] = result
                    state.write(json.dumps(result) + "\n")
                    state.flush()
                    if len(done) % 500 == 0:
                        seconds = time.monotonic() - started
                        print(f"{len(done):,} cases, {seconds:.0f} s", flush=True)

        parts = [left[i :: asked.workers] for i in range(asked.workers)]
        list(pool.map(note, parts))
    return report([done[number] for number in range(asked.cases)])


def report(results):
    """Print counts by kind, and every case in which something was wrong."""
    cases, refused, wrong = Counter(), Counter(), Counter()
    for result in results:
        cases[result["kind"]] += 1
        refused[result["kind"]] += result["refused"]
        wrong[result["kind"]] += bool(result["wrong"])
    for kind in [*cases, "all"]:
        numbers = [
            c.total() if kind == "all" else c[kind] for c in (cases, refused, wrong)
        ]
        print("{:20} {:6,} cases {:6,} refused {:4,} wrong".format(kind, *numbers))
    for result in results:
        if result["wrong"]:
            print(f"case {result['case']} ({result['kind']}): {result['wrong']}")
    return 1 if wrong.total() else 0


if __name__ == "__main__":
    raise SystemExit(main())
