#!/usr/bin/env python3
"""Counts the test cases of one run of `bazel test`, for tools/test.

Usage: count_tests.py EVENTS STATUS [SLOWEST]

EVENTS is what --build_event_json_file wrote, STATUS what bazel exited with. Only the XML that these
events name is read, so results left behind by deleted targets never count. Prints why cases
were skipped, every failure with its log, and every target that passed only when it was tried again,
then the SLOWEST slowest targets (default: none), then the count; exits 0 when at least one case
passed and none failed, otherwise 1.
"""

import collections
import itertools
import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree

BAZEL_OK, BAZEL_TESTS_FAILED, BAZEL_NO_TESTS = 0, 3, 4
DETAIL_LINES = 12
LOG_HEADER_LINES = 3  # Bazel's own, before the test's first word.

Failure = collections.namedtuple("Failure", "name detail log")


class Tally:
    """What became of the cases seen so far."""

    def __init__(self):
        self.passed = 0
        self.skipped = collections.Counter()  # by reason
        self.failures = []
        self.flaky = []

    def fail(self, name, detail, log=None):
        self.failures.append(Failure(name, detail, log))

    def __str__(self):
        skipped = f", {self.skipped.total()} skipped" if self.skipped else ""
        flaky = f", {len(self.flaky)} flaky" if self.flaky else ""
        return f"{self.passed} passed, {len(self.failures)} failed{skipped}{flaky}"


def read_events(path):
    events = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            try:
                events.append(json.loads(line))
            except ValueError:
                break  # Bazel was killed while writing: its exit status tells the rest.
    return events


def of_kind(events, kind):
    """The events of a kind, each with the fields of its id."""
    return [(event["id"][kind], event) for event in events if kind in event["id"]]


def outputs(result):
    """Files of one attempt, by name: test.log, test.xml."""
    return {
        output["name"]: urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
        for output in result.get("testActionOutput", []) if "uri" in output
    }


def last_lines(path):
    if not path or not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as log:
        return "".join(collections.deque(itertools.islice(log, LOG_HEADER_LINES, None), DETAIL_LINES))


def is_generated(case, label):
    """Whether bazel wrote this case for a test that left no XML: a script, or one that crashed."""
    return case.get("classname") is None and case.get("name") == label[2:].replace(":", "/")


def reason_of(skipped):
    """The first line of why a case was skipped, or an empty text."""
    said = "" if skipped is None else skipped.get("message") or skipped.text or ""
    return said.strip().partition("\n")[0]


def count_case(tally, case, label, log):
    name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
    problems = case.findall("failure") + case.findall("error")
    if problems:
        said = "\n".join(problem.get("message") or problem.text or "" for problem in problems)
        if is_generated(case, label):
            tally.fail(label, said + "\n" + last_lines(log), log)
        else:
            tally.fail(f"{name} ({label})", said, log)
    elif case.find("skipped") is not None or case.get("status") == "notrun":
        tally.skipped[reason_of(case.find("skipped"))] += 1
    else:
        tally.passed += 1


def count_attempt(tally, label, result):
    """Counts the cases of a test's last attempt. What did not pass is at least one failure."""
    files = outputs(result)
    log = files.get("test.log")
    status = result.get("status", "NO_STATUS")
    if status == "TIMEOUT":
        tally.fail(label, "timed out\n" + last_lines(log), log)
        return
    failures = len(tally.failures)
    try:
        cases = xml.etree.ElementTree.parse(files.get("test.xml", "")).iter("testcase")
        for case in cases:
            count_case(tally, case, label, log)
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        tally.fail(label, f"left no readable test.xml: {error}", log)
    if status != "PASSED" and len(tally.failures) == failures:
        tally.fail(label, f"{status}, though no case failed\n" + last_lines(log), log)


def count_results(tally, events):
    """Counts what ran or was cached; returns its labels."""
    attempts = collections.defaultdict(dict)
    for key, event in of_kind(events, "testResult"):
        run = (key["label"], str(key.get("configuration")), key.get("run"), key.get("shard"))
        attempts[run][key.get("attempt", 1)] = event.get("testResult", {})
    for (label, *_), results in sorted(attempts.items(), key=lambda item: str(item[0])):
        first, last = results[min(results)], results[max(results)]
        count_attempt(tally, label, last)
        if first is not last and last.get("status") == "PASSED":
            log = outputs(first).get("test.log")
            tally.flaky.append(Failure(label, "passed only when tried again\n" + last_lines(log), log))
    return {label for label, *_ in attempts}


def unbuilt(events):
    """Labels that broke the build, and those of tests that could not be built because of them."""
    tests = {
        key["label"] for key, event in of_kind(events, "targetConfigured")
        if "testSize" in event.get("configured", {})
    }
    broken = {key["label"] for key, _ in of_kind(events, "actionCompleted") if "label" in key}
    for key, event in of_kind(events, "targetCompleted"):
        unknown = event.get("aborted", {}).get("reason") in ("ANALYSIS_FAILURE", "LOADING_FAILURE")
        if unknown or (key["label"] in tests and not event.get("completed", {}).get("success")):
            broken.add(key["label"])
    return broken


def count(events, status):
    tally = Tally()
    ran = count_results(tally, events)
    broken = unbuilt(events) - ran
    for label in sorted(broken):
        tally.fail(label, "could not be built")
    if status not in (BAZEL_OK, BAZEL_TESTS_FAILED, BAZEL_NO_TESTS) and not broken:
        tally.fail("bazel test", f"did not come to its end: exit status {status}")
    return tally


def seconds(events):
    """How long each target's tests ran, over all attempts and shards; those from the cache did not."""
    took = collections.Counter()
    for key, event in of_kind(events, "testResult"):
        result = event.get("testResult", {})
        if not result.get("cachedLocally") and not result.get("executionInfo", {}).get("cachedRemotely"):
            took[key["label"]] += int(result.get("testAttemptDurationMillis", 0)) / 1000
    return took


def report_slowest(took, how_many):
    print(f"The slowest of {len(took)} targets that ran, in seconds:")
    for label, time in took.most_common(how_many):
        print(f"{time:8.1f}  {label}")


def shown(log):
    """The path as a reader would type it: through the link in the workspace, where that leads to it."""
    link = "bazel-testlogs/" + log.partition("/testlogs/")[2]
    return link if os.path.exists(link) and os.path.samefile(link, log) else log


def report_failure(word, failure):
    print(word, failure.name)
    for line in failure.detail.strip().splitlines()[:DETAIL_LINES + 1]:
        print("   ", line)
    if failure.log:
        print("    log:", shown(failure.log))


def report_skipped(tally):
    for reason, cases in sorted(tally.skipped.items()):
        if reason:
            print(f"SKIPPED {cases} cases: {reason}")


def report_failures(tally):
    for failure in tally.flaky:
        report_failure("FLAKY", failure)
    for failure in tally.failures:
        report_failure("FAILED", failure)
    if not tally.failures and not tally.passed:
        print("No test ran.")


def main(arguments):
    path, status, *slowest = arguments
    events = read_events(path)
    tally = count(events, int(status))
    report_skipped(tally)
    report_failures(tally)
    if slowest and int(slowest[0]):
        report_slowest(seconds(events), int(slowest[0]))
    print(tally)
    return 0 if tally.passed and not tally.failures else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
