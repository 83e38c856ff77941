"""Runs the fuzz targets in turn for so many seconds: `scripts/fuzz 60`.

The seed of each input is printed with what it broke; `scripts/fuzz --again TARGET/SEED/NUMBER` runs
that one input alone. Ends with exit code 1 at the first one that breaks a promise.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
import traceback

from .fuzz_targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser("scripts/fuzz", description=__doc__, allow_abbrev=False)
    parser.add_argument("seconds", nargs="?", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="makes the same inputs again; random if not given")
    parser.add_argument("--only", choices=sorted(TARGETS), action="append", help="a target")
    parser.add_argument("--again", metavar="TARGET/SEED/NUMBER", help="one input, as it was named")
    given = parser.parse_args()
    if given.again:
        return 0 if holds(given.again) else 1
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    names = given.only or list(TARGETS)
    print(f"seed {seed}: {', '.join(names)}", flush=True)
    ends = time.monotonic() + given.seconds
    tried = dict.fromkeys(names, 0)
    for number in itertools.count():
        for name in names:
            if time.monotonic() >= ends:
                print(f"nothing found: {tried}")
                return 0
            if not holds(f"{name}/{seed}/{number}"):
                return 1
            tried[name] += 1
    return 0


def holds(input_name: str) -> bool:
    """Whether a target's promises hold for one input; what broke is printed."""
    target = input_name.partition("/")[0]
    try:
        TARGETS[target](random.Random(input_name))
    except Exception:  # noqa: BLE001 - whatever it is, it was found
        traceback.print_exc()
        print(f"\nfound by: scripts/fuzz --again {input_name}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
