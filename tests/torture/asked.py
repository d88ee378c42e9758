"""What a run of the torture is asked: how much, from which seed, for how long. All by the environment."""

import os

SEED = int(os.environ.get("TORTURE_SEED", "0"))
INPUTS = int(os.environ.get("TORTURE_INPUTS", "20000"))
RUNS = int(os.environ.get("TORTURE_RUNS", "240"))  # mutated programs that are run before and after
MADE = int(os.environ.get("TORTURE_MADE", "60"))  # programs of each kind that are put together, and run
SECONDS = float(os.environ.get("TORTURE_SECONDS", "3000"))  # what has not begun by then is left out
CORPUS = os.environ.get("TORTURE_CORPUS", "")  # a folder of downloaded programs, to be cut off and spliced as well
