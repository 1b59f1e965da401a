#!/usr/bin/env python3
"""Jobs of sluice_train under mpirun whose flags are drawn at random.

Each trains and ends with 0, or is refused before the first step: exit code 2 and one sentence, which
all ranks that say something say alike. One that shall end if it diverges may do so, with 7.

Usage: drawn_jobs_test.py SLUICE_TRAIN [SEED [JOBS]]

Without SEED it is SLUICE_TEST_SEED, else 1; JOBS are 4 unless SLUICE_JOBS says more. A job that
fails is printed with its command, and its output.
"""

import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]
AS_ROOT = {f"{of}_ALLOW_RUN_AS_ROOT{more}": "1" for of in ("OMPI", "PRTE") for more in ("", "_CONFIRM")}
PATIENCE = 240  # seconds for a job of some hundred batches, on a busy machine
STEPS = re.compile(r"^  steps +(\d+)$", re.MULTILINE)
SAID = re.compile(r"^sluice_train: (.*)$", re.MULTILINE)
MODELS = ["logistic", "logistic", "mlp"]
NO_OTHER_CAUSE = "the job ends for this reason"
DIVERGES = r"training diverges since step \d"
# What the server of a job that ends with 7 has said, by the flag that lets it.
DIVERGED = {"--on-divergence=stop": DIVERGES,
            "--on-divergence=stop-if-flat": DIVERGES + r"|training does not learn since step \d",
            "--on-divergence=restore": DIVERGES}  # after it has gone back in vain


def maybe(dice, share, *flags):
    return list(flags) if dice.random() < share else []


# One job in four is wild: its flags may contradict each other.
def draw_mode(dice, workers, wild):
    mode = dice.choice(["sync", "backup", "bounded", "ssp", "async"])
    flags = [f"--mode={mode}"]
    late = wild or mode in ("bounded", "ssp", "async")
    if wild or mode in ("backup", "bounded", "async"):
        flags += maybe(dice, 0.3, f"--quorum={dice.randint(1, workers + wild)}")
    if wild or mode == "bounded":
        flags += maybe(dice, 0.3, f"--max-staleness={dice.randint(0, 4)}")
    if wild or mode == "ssp":
        flags += maybe(dice, 0.5, f"--slack={dice.randint(0, 3)}")
    if late:
        flags += maybe(dice, 0.2, "--discount-stale")
        flags += maybe(dice, 0.3, "--staleness-rules=" + dice.choice(["none", "gap-aware", "auto"]))
    if wild or mode == "async":
        flags += maybe(dice, 0.2, "--inconsistent-reads")
    if wild or mode == "sync":
        flags += maybe(dice, 0.2, "--reduction-order=" + dice.choice(["rank", "arrival"]))
    flags += maybe(dice, 0.2, "--reduction=" + dice.choice(["mean", "weighted-mean", "sum"]))
    return flags + maybe(dice, 0.2, "--max-step-wait=30",
                         "--on-max-step-wait=" + dice.choice(["wait", "proceed", "evict"]))


def draw_encodings(dice, wild):
    pulls = ["float16", "bfloat16", "int8", "int8:stochastic", "float32/planes/zstd",
             "float16/planes/zstd", "auto"]
    pushes = pulls + ["sign", "sign:momentum", "top-k:0.1", "random-k:0.1", "low-rank:2"]
    flags = maybe(dice, 0.6, "--push-encoding=" + dice.choice(pushes))
    flags += maybe(dice, 0.6, "--pull-encoding=" + dice.choice(pushes if wild else pulls))
    return flags + (maybe(dice, 0.2, "--no-error-feedback") if wild else [])


def draw_optimizer(dice, wild):
    name = dice.choice(["sgd", "sgd", "adam", "adamw", "adagrad", "rmsprop", "lamb"])
    flags = [f"--optimizer={name}", "--learning-rate=0.001"]
    flags += maybe(dice, 0.2, "--weight-decay=0.0001")
    if wild or name in ("sgd", "rmsprop"):
        flags += maybe(dice, 0.5, "--momentum=0.9")
    return flags + (maybe(dice, 0.2, "--nesterov") if wild else [])


def draw_schedule(dice, wild):
    kind = dice.choice(["constant", "constant", "step", "cosine"])
    flags = [f"--lr-schedule={kind}"] + maybe(dice, 0.3, "--lr-warmup-steps=3")
    if kind == "step":
        flags += maybe(dice, 0.5 if wild else 1, "--lr-step-size=5")
    if kind == "cosine":
        flags += maybe(dice, 0.5 if wild else 1, "--lr-total-steps=50")
    return flags


def draw_guards(dice):
    flags = maybe(dice, 0.2, "--skip-not-finite") + maybe(dice, 0.2, "--clip-norm=1")
    flags += maybe(dice, 0.1, "--max-push-norm=1000000")
    return flags + maybe(dice, 0.2, "--on-divergence=" + dice.choice(
        ["warn", "stop", "stop-if-flat", "restore"]))


def draw_local_steps(dice):
    flags = [f"--local-steps={dice.choice([1, 2, 5])}"]
    flags += maybe(dice, 0.3, "--elasticity=0.5")
    return flags + maybe(dice, 0.3, "--outer-momentum=0.3") + maybe(dice, 0.2, "--outer-nesterov")


def draw_disk(dice, folder):
    if dice.random() < 0.6:
        return []
    flags = [f"--checkpoint-dir={folder}/checkpoints"]
    flags += maybe(dice, 0.5, f"--checkpoint-every={dice.randint(1, 20)}")
    return flags + maybe(dice, 0.5, "--durability=journal")


def draw_job(dice, folder):
    """Returns the number of ranks and the flags."""
    wild = dice.random() < 0.25
    servers = dice.choice([1, 1, 2, 3])
    workers = dice.randint(1, 4)
    tables = dice.random() < 0.3
    flags = ["--model=matrix-factorization"] if tables else ["--model=" + dice.choice(MODELS)]
    if tables or wild:
        flags += maybe(dice, 0.3, "--row-cache=2")
        flags += maybe(dice, 0.3, "--max-table-memory=1", f"--table-dir={folder}")
    flags += draw_mode(dice, workers, wild) + draw_encodings(dice, wild)
    flags += draw_optimizer(dice, wild) + draw_schedule(dice, wild)
    if wild or not tables:
        flags += draw_local_steps(dice) if dice.random() < 0.2 else draw_guards(dice)
        flags += maybe(dice, 0.3, "--overlap")
    flags += maybe(dice, 0.4, "--shared-memory=off") + draw_disk(dice, folder)
    flags += ["--no-test", "--quiet", f"--batch-size={dice.choice([2, 4, 32])}",
              f"--max-steps={dice.choice([1, 20, 60])}", f"--servers={servers}"]
    return servers + workers, flags


def run(command, folder):
    """Returns the exit code, or None after PATIENCE, and what the job said."""
    environment = {**os.environ, **AS_ROOT, "TMPDIR": folder}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          errors="replace", env=environment, start_new_session=True) as job:
        try:
            output = job.communicate(timeout=PATIENCE)[0]
            return job.returncode, output
        except subprocess.TimeoutExpired:
            job.terminate()
            return None, job.communicate()[0]


def has_diverged(flags, output):
    """Whether it has, and shall end then."""
    return any(flag in DIVERGED and re.search(DIVERGED[flag], output) for flag in flags)


def fault_of(flags, code, output):
    """What is wrong with a job that ended so; empty if nothing is."""
    steps = [int(count) for count in STEPS.findall(output)]
    said = {line for line in SAID.findall(output) if not line.startswith(NO_OTHER_CAUSE)}
    if code is None:
        return f"it had not ended after {PATIENCE} s"
    if code == 0:
        return "" if steps and min(steps) > 0 else "it ended with 0, but made no step"
    if code == 7 and has_diverged(flags, output):
        return ""
    if code != 2 or any(steps):
        return f"it ended with exit code {code} after {steps} steps"
    if len(said) != 1:
        return f"it was refused with {len(said)} sentences: {sorted(said)}"
    return ""


def main(program, seed, jobs):
    seed = int(seed)
    failed = refused = 0
    for number in range(int(jobs)):
        dice = random.Random(seed * 1000003 + number)
        with tempfile.TemporaryDirectory(prefix="drawn-") as folder:
            ranks, flags = draw_job(dice, folder)
            command = MPIRUN + ["-n", str(ranks), program] + flags
            code, output = run(command, folder)
        fault = fault_of(flags, code, output)
        refused += code == 2 and not fault
        ends = {0: "trained", 7: "diverged"}
        why = fault or ends.get(code) or "refused: " + SAID.findall(output)[0]
        print(f"job {number} of seed {seed}: {why}\n  {shlex.join(command)}", flush=True)
        if fault:
            failed += 1
            print(output, flush=True)
    print(f"{int(jobs)} jobs of seed {seed}: {refused} refused, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    SEED = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("SLUICE_TEST_SEED", "1")
    JOBS = sys.argv[3] if len(sys.argv) > 3 else os.environ.get("SLUICE_JOBS", "4")
    sys.exit(main(os.path.abspath(sys.argv[1]), SEED, JOBS))
