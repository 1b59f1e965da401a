"""Plays mutants that sleep in the programs of a built tree, and notes what became of each."""

import collections
import concurrent.futures
import json
import math
import os
import shutil
import subprocess
import tempfile

import running
import switching

KILLED, SURVIVED, INVALID, EQUIVALENT = "killed", "survived", "cannot be built", "equivalent"
# The quick ones of the near tests do not notice it, or none of the near ones; the others were not played yet.
UNDECIDED, UNNOTICED = "undecided", "unnoticed by near tests"

_NEAR = ("//tests/common", "//tests/server", "//tests/worker")
# Of a target that takes longer, it is found out what each suite of cases reaches.
_SLOW = 10
_LONGEST = 900
_CHANCES = 3
# What comes to a mutant in so many seconds is played first, against all mutants.
_QUICK = 10


def limit_of(seconds):
    """How long something may take that took so long without a mutant."""
    return 3 * seconds + 5


def tracked_files(root):
    """The tracked files and the new ones that Git does not ignore."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True).stdout.decode()
    return [path for path in listed.split("\0") if path and os.path.isfile(os.path.join(root, path))]


def refresh(root, scratch, changed):
    """Makes `scratch` a copy of the tree but for the files `changed`. Files that are the same keep their times."""
    if os.path.realpath(scratch) == os.path.realpath(root):
        raise running.BrokenTree(f"the scratch copy would be the checkout itself, {root}; name another place with --scratch")
    wanted = set(tracked_files(root))
    for folder, _, names in os.walk(scratch):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), scratch)
            if path not in wanted:
                os.remove(os.path.join(folder, name))
    for path in wanted:
        source, copy = os.path.join(root, path), os.path.join(scratch, path)
        content = changed[path].encode() if path in changed else bytes_of(source)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        if not os.path.exists(copy) or bytes_of(copy) != content:
            with open(copy, "wb") as file:
                file.write(content)
            shutil.copymode(source, copy)


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


class Lines:
    """A file with a line of JSON for each thing that was found out. A line that was cut off does not count."""

    def __init__(self, path, key):
        self.path = path
        self._key = key
        self.found = {}
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                try:
                    thing = json.loads(line)
                except ValueError:
                    continue
                self.found[thing[key]] = thing

    def note(self, thing):
        """The last line of a thing counts."""
        self.found[thing[self._key]] = thing
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(("" if self._ends_with_a_line() else "\n") + json.dumps(thing) + "\n")

    def _ends_with_a_line(self):
        written = bytes_of(self.path) if os.path.exists(self.path) else b""
        return not written or written.endswith(b"\n")


class State(Lines):
    """What became of the mutants."""

    def __init__(self, path):
        super().__init__(path, "id")

    def verdict(self, mutant):
        return self.found.get(mutant.id, {}).get("verdict")

    def forget(self, *verdicts):
        """The mutants with these verdicts will be played again."""
        self.found = {name: result for name, result in self.found.items() if result["verdict"] not in verdicts}

    def tell(self, mutant, verdict, by):
        self.note({"id": mutant.id, "path": mutant.path, "line": mutant.line, "kind": mutant.kind,
                   "before": mutant.before, "after": mutant.after, "verdict": verdict, "by": by})


def build(root, tree, texts, numbered, state, without, tell):
    """Builds the tests that depend on the mutants' files, with all mutants in them. Returns the tests.

    What does not compile is noted and left out, until the rest does.
    """
    targets = None
    while True:
        live = {number: mutant for number, mutant in numbered.items() if state.verdict(mutant) != INVALID}
        files = switching.switch(texts, live)
        refresh(root, tree.scratch, {path: file.text for path, file in files.items()})
        targets = targets or tree.tests_of(sorted({mutant.path for mutant in numbered.values()}), without)
        tell(f"building {len(targets)} tests with {len(live)} mutants in them")
        built, printed = tree.build([target.label for target in targets])
        if built:
            return targets
        guilty = switching.blamed(files, printed)
        if not guilty:
            raise running.BrokenTree(f"the copy does not build, and no mutant is to blame: {printed[-3000:]}")
        for number in sorted(guilty):
            state.tell(numbered[number], INVALID, "")
            tell(_line(numbered[number], INVALID, ""))


class Tests:
    """Knows which tests, or suites of them, come to which mutant, and plays them. Plays may run in several threads."""

    def __init__(self, runner, targets, numbered, notes):
        self._runner = runner
        self._targets = targets
        self._numbers = {mutant.id: number for number, mutant in numbered.items()}
        self._mutants = numbered
        self._notes = notes  # Lines with the key "test"

    def stop(self):
        self._runner.stop()

    def near(self):
        return [target for target in self._targets if target.label.startswith(_NEAR)]

    def others(self):
        return [target for target in self._targets if not target.label.startswith(_NEAR)]

    def unknown(self, targets):
        """Those that must be played without a mutant before."""
        return [target for target in targets
                if self._notes.found.get(target.label, {}).get("digest") != self._digest_of(target)]

    def explore(self, target):
        """Returns what the target or its suites reach, for Lines; BrokenTree if they fail without a mutant."""
        whole = self._reached(target, [], _LONGEST)
        reached = {"": whole[:2]}
        suites = sorted({case.rsplit(".", 1)[0] + ".*" for case in whole[2]})
        if whole[0] > _SLOW and len(suites) > 1:
            reached = {suite: self._reached(target, [suite], _LONGEST)[:2] for suite in suites}
        return {"test": target.label, "digest": self._digest_of(target), "reached": reached}

    def note(self, explored):
        self._notes.note(explored)

    def killer(self, mutant, targets, least, most):
        """The first test and case that notices a mutant, or an empty text: those of its own folder first, then quick ones.

        Only those are played that take at least `least` and less than `most` seconds.
        """
        chosen = []
        for target in targets:
            suites = self._notes.found[target.label]["reached"]
            reaching = {suite: seconds for suite, (seconds, ids) in suites.items() if mutant.id in ids}
            if reaching and least <= sum(reaching.values()) < most:
                own = "//tests/" + os.path.dirname(mutant.path)
                far = not target.label.startswith((own + ":", own + "/"))
                chosen.append((far, sum(reaching.values()), target.label, target, [suite for suite in reaching if suite]))
        for _, seconds, label, target, suites in sorted(chosen, key=lambda each: each[:3]):
            case = self._noticed(mutant, target, suites, limit_of(seconds))
            if case is not None:
                return f"{label} {case}".strip()
        return ""

    def is_reached(self, mutant):
        return any(mutant.id in ids for note in self._notes.found.values() for _, ids in note["reached"].values())

    def _noticed(self, mutant, target, suites, limit):
        """The case that fails with the mutant, passes without, and fails again with it; None if there is no such."""
        played = {"SLUICE_MUTANT": str(self._numbers[mutant.id])}
        run = self._runner.run(target, suites, limit, played)
        if run.passed:
            return None
        failed = [case for case, (_, passed) in run.cases.items() if not passed]
        again = failed[:1] or suites
        # A busy machine gets more than one chance.
        if not any(self._runner.run(target, again, limit, {}).passed for _ in range(_CHANCES)):
            return None
        if self._runner.run(target, again, limit, played).passed:
            return None
        return failed[0] if failed else ""

    def _reached(self, target, cases, limit):
        """Seconds, the mutants' ids, and the cases that were played."""
        for _ in range(_CHANCES):
            with tempfile.TemporaryDirectory(prefix="mutate-reached-") as folder:
                os.chmod(folder, 0o777)
                run = self._runner.run(target, cases, limit, {"SLUICE_MUTANTS_REACHED": folder})
                if run.passed:
                    ids = sorted(self._mutants[int(name)].id for name in os.listdir(folder))
                    return [round(run.seconds, 2), ids, list(run.cases)]
        raise running.BrokenTree(f"without any mutant {' '.join([target.label, *cases])} fails: {run.output[-2000:]}")

    def _digest_of(self, target):
        return self._runner.digest(target)


def run(mutants, tests, state, equivalent, near_only, jobs, tell):
    """Plays those mutants that `state` has no verdict of. `tell` gets a line for each."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        try:
            for before, targets, seconds, after in (
                    (None, tests.near(), (0, _QUICK), UNDECIDED), (UNDECIDED, tests.near(), (_QUICK, math.inf), UNNOTICED),
                    (UNNOTICED, [] if near_only else tests.others(), (0, math.inf), SURVIVED)):
                if targets:
                    _explore(tests, targets, pool, tell)
                    playing = {pool.submit(tests.killer, mutant, targets, *seconds): mutant for mutant in mutants
                               if mutant.id not in equivalent and state.verdict(mutant) == before}
                    _note(playing, after, tests, state, tell)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            tests.stop()
            raise


def _explore(tests, targets, pool, tell):
    unknown = tests.unknown(targets)
    tell(f"running {len(unknown)} tests without a mutant" if unknown else "every test is known")
    for done in concurrent.futures.as_completed([pool.submit(tests.explore, target) for target in unknown]):
        tests.note(done.result())


def _note(playing, otherwise, tests, state, tell):
    """Notes KILLED for each mutant that a test noticed, and `otherwise` for the rest."""
    for count, done in enumerate(concurrent.futures.as_completed(playing), 1):
        mutant, killer = playing[done], done.result()
        verdict = KILLED if killer else otherwise
        by = killer or ("no test reaches it" if verdict == SURVIVED and not tests.is_reached(mutant) else "")
        state.tell(mutant, verdict, by)
        if verdict != UNDECIDED:
            tell(f"{count} of {len(playing)}  {_line(mutant, verdict, by)}")


def _line(mutant, verdict, by):
    return f"{verdict:16}  {mutant.id}  {mutant.path}:{mutant.line}  {mutant.after}  {by}".rstrip()


def summary(mutants, state, equivalent):
    """The lines of the report: the survivors, then the share that was killed."""
    verdicts = collections.Counter()
    lines = []
    for mutant in mutants:
        verdict = EQUIVALENT if mutant.id in equivalent else state.verdict(mutant)
        verdicts[verdict] += 1
        if verdict in (SURVIVED, UNNOTICED):
            by = state.found[mutant.id]["by"]
            lines += [f"{verdict} {mutant.id}  {mutant.path}:{mutant.line}  ({mutant.kind}) {by}".rstrip(),
                      f"  was  {mutant.before}", f"  is   {mutant.after}"]
    killed, survived = verdicts[KILLED], verdicts[SURVIVED] + verdicts[UNNOTICED]
    share = f"{100 * killed / (killed + survived):.1f} %" if killed + survived else "none"
    open_ones = verdicts[None] + verdicts[UNDECIDED]
    if open_ones:
        share += f"; {open_ones} are not decided yet"
    lines.append(f"{killed} killed, {survived} survived, {verdicts[EQUIVALENT]} equivalent, "
                 f"{verdicts[INVALID]} cannot be built; killed of those that could be: {share}")
    return lines
