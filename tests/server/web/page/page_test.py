#!/usr/bin/env python3
"""The live page of a real job, as a real browser shows it, and as the Inspector counts it."""

import concurrent.futures
import itertools
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import unittest.mock
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, *["..", "..", "..", part]) for part in ("worker/examples", "testing")]
# pylint: disable=wrong-import-position
import example_job  # noqa: E402
import recorded_tests  # noqa: E402
import tables_test  # noqa: E402
from example_job import CACHE, PATIENCE, stubs  # noqa: E402

BROWSER = "/usr/bin/chromium"
DRIVER = os.path.join(CACHE, "sluice/page-test/node_modules")  # as tools/setup has it
EVIL = "<img src=x onerror=alert(1)>"
NOBODY_LEFT = "state.phase === 'finished'"
EVERYTHING = """({
  state: sluicePage.state,
  columns: sluicePage.series.columns,
  events: sluicePage.series.events,
  text: document.body.innerText,
  images: document.images.length,
  charts: [...document.querySelectorAll('.plot')].filter((one) => one.querySelector('canvas')).length,
  drawn: sluicePage.charts,
  pairs: Object.fromEntries([...document.querySelectorAll('.pairs div')].map((row) => [...row.children].map((one) => one.textContent))),
  unnamed: [...document.querySelectorAll('[role=img]')].filter((one) => !one.ariaLabel).length,
})"""


class PageTest(example_job.JobTest):
    """The job stays when its workers have left, so that its end can be looked at."""

    def setUp(self):
        super().setUp()
        self.address = "127.0.0.1:0"

    def serve(self, *flags, host="127.0.0.1"):
        super().serve("--wait-for-more", f"--page={host}:0", *flags)
        self.url = self.await_log(r"the live page is at (\S+)")
        self.address = self.await_log(r"listening on ([^ ,\n]+)")

    def await_log(self, pattern):
        deadline = time.monotonic() + PATIENCE
        while True:
            running = self.server.process.poll() is None
            log = os.pread(self.server.output.fileno(), 1 << 20, 0).decode()
            found = re.search(pattern, log)
            if found:
                return found.group(1)
            if not running or time.monotonic() > deadline:
                self.fail(f"no line with {pattern}:\n{log}")
            try:
                self.server.process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass

    def get(self, path, **headers):
        with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers), timeout=PATIENCE) as answer:
            return answer.read().decode()

    def await_page(self, reached):
        """Waits for a state of /api/events, and returns it."""
        with urllib.request.urlopen(self.url + "api/events", timeout=PATIENCE) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    state = json.loads(line[len("data: "):])
                    if reached(state):
                        return state
        return self.fail("the stream of events has ended")

    def inspect(self, method="GetServerState"):
        stubs()
        import grpc  # pylint: disable=import-outside-toplevel
        from sluice.v1 import inspector_pb2, inspector_pb2_grpc  # pylint: disable=import-outside-toplevel
        with grpc.insecure_channel(self.address) as channel:
            inspector = inspector_pb2_grpc.InspectorStub(channel)
            return getattr(inspector, method)(getattr(inspector_pb2, f"{method}Request")())

    def change(self, path, body, key=None, **headers):
        """The status of a POST of the page's own, and what is told."""
        if key is None:
            key = json.loads(self.get("api/operator", **headers))["key"]
        headers = {"Origin": self.url.rstrip("/"), "X-Sluice-Change": key, **headers}
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode(), headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.loads(answer.read())["text"]
        except urllib.error.HTTPError as error:
            told = error.read().decode()
            return error.code, json.loads(told)["text"] if told.startswith("{") else told

    def token_file(self):
        path = f"{self.folder}/token"
        with open(path, "w", opener=lambda name, how: os.open(name, how, 0o600), encoding="ascii") as file:
            file.write("open sesame\n")
        return path

    def train(self, *names, steps=30):
        for name in names:
            self.work(f"--max-steps={steps}", f"--name={name}")
        for worker in self.workers:
            code, output = worker.end()
            self.assertEqual(code, 0, output)


class PageApiTest(PageTest):
    def test_the_last_row_has_the_inspectors_numbers(self):
        self.serve("--workers=2")
        self.train("a", EVIL)
        state = self.await_page(lambda state: state["phase"] == "finished")
        truth = self.inspect()
        row = state["row"]
        self.assertEqual((state["step"], row["step"]), (truth.step, truth.step))
        self.assertEqual(truth.step, 30)
        for name in ("received", "accepted", "stale", "skipped", "duplicate", "rejected", "aborted", "in_progress"):
            self.assertEqual(state["pushes"][name], getattr(truth.pushes, name), name)
        self.assertEqual(row["accepted"], 60)
        for name in ("bytes_received", "bytes_sent", "wire_bytes_received", "wire_bytes_sent"):
            self.assertEqual(row[name], getattr(truth, name), name)
        self.assertEqual(sum(state["staleness"]["counts"]), 60)
        history = json.loads(self.get("api/history"))
        self.assertEqual(history["columns"]["step"][-1], 30)
        self.assertEqual(history["columns"]["accepted"][-1], 60)
        kinds = [(event["kind"], event["text"]) for event in history["events"] if event["kind"] in ("joined", "left")]
        self.assertEqual(sorted(kinds), [("joined", EVIL), ("joined", "a"), ("left", EVIL), ("left", "a")])

    def test_the_history_survives_a_restart_and_a_damaged_file_is_told(self):
        self.serve("--workers=1")
        self.train("a")
        before = self.await_page(lambda state: state["phase"] == "finished")["row"]["time"]
        self.server.stop(signal.SIGTERM)
        file = f"{self.folder}/checkpoints/page-history"
        self.assertTrue(os.path.exists(file))
        self.address = "127.0.0.1:0"
        self.serve("--workers=1")
        self.await_page(lambda state: True)
        history = json.loads(self.get("api/history"))
        self.assertIn("the server has started again, as number 2", [event["text"] for event in history["events"]])
        self.assertLess(history["columns"]["time"][0], before)
        self.server.stop(signal.SIGTERM)
        with open(file, "r+b") as damaged:
            damaged.seek(100)
            damaged.write(b"damaged")
        self.address = "127.0.0.1:0"
        self.serve("--workers=1")
        self.await_log(r"the page's history begins anew, because (\S+) cannot be read: its checksum is wrong")
        state = self.await_page(lambda state: True)
        self.assertGreater(state["row"]["time"], before)
        self.assertGreater(json.loads(self.get("api/history"))["columns"]["time"][0], before)

    def test_an_operator_changes_the_job_and_others_do_not(self):
        self.serve("--workers=1", f"--token-file={self.token_file()}")
        admin = {"Authorization": "Bearer open sesame"}
        self.assertEqual(json.loads(self.get("api/operator")), {"key": "", "needs_token": True})
        key = json.loads(self.get("api/operator", **admin))["key"]
        self.assertEqual(self.change("api/drain", {}, key), (403, "A change needs the server's token.\n"))
        self.assertEqual(self.change("api/drain", {}, "", **admin)[0], 403)
        self.assertEqual(self.change("api/drain", {}, key, **{**admin, "Origin": "http://evil.example"})[0], 403)
        self.assertEqual(self.change("api/evict", {"worker": "x"}, **admin)[0], 404)
        self.assertEqual(self.change("api/learning-rate", {"learning_rate": -1}, **admin)[0], 400)
        self.assertEqual(self.change("api/drain", {}, **admin), (200, "The job ends at step 0."))
        self.assertEqual(self.server.end()[0], 0)

    def test_an_unsafe_address_is_refused_in_a_sentence_with_code_2(self):
        for flags, words in ((["--page=0.0.0.0:0"], "is beyond loopback, where the network could read all of it"),
                             (["--page=0.0.0.0:0", "--insecure-on-network"], "give --token-file"),
                             (["--page=unix:/tmp/page"], "no browser can open"),
                             (["--page=8080"], '"8080" has no port')):
            example_job.JobTest.serve(self, *flags)
            code, said = self.server.end()
            self.assertEqual(code, 2, said)
            self.assertEqual(said.count("\n"), 1, said)
            self.assertIn(words, said)

    def test_an_address_that_is_in_use_ends_the_server(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            example_job.JobTest.serve(self, f"--page=127.0.0.1:{taken.getsockname()[1]}")
            code, said = self.server.end()
        self.assertEqual(code, 1, said)
        self.assertIn("Address already in use", said)


class TlsPageTest(PageTest):
    """Beyond loopback, with certificates of an authority that the test makes."""

    def setUp(self):
        super().setUp()
        new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self.openssl("req", "-x509", *new, "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem")
        self.issue("server", "DNS:node7,IP:127.0.0.1")
        self.issue("observer", "URI:sluice:observer")
        self.issue("admin", "URI:sluice:admin")
        self.issue("nobody", "URI:other")

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def issue(self, who, names):
        with open(f"{self.folder}/ext", "w", encoding="ascii") as file:
            file.write(f"subjectAltName={names}\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={who}",
                     "-keyout", f"{who}.key", "-out", "request")
        self.openssl("x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-extfile", "ext", "-out", f"{who}.pem")
        os.chmod(f"{self.folder}/{who}.key", 0o600)

    def serve(self, *flags, host="0.0.0.0"):
        super().serve("--workers=1", f"--tls-cert={self.folder}/server.pem", f"--tls-key={self.folder}/server.key",
                      f"--tls-ca={self.folder}/ca.pem", f"--token-file={self.token_file()}", *flags, host=host)
        self.url = self.url.replace("0.0.0.0", "127.0.0.1")

    def ask(self, path, who=None, **headers):
        """The status of an answer."""
        return self.answer(path, who, **headers)[0]

    def answer(self, path, who=None, body=None, **headers):
        context = ssl.create_default_context(cafile=f"{self.folder}/ca.pem")
        if who:
            context.load_cert_chain(f"{self.folder}/{who}.pem", f"{self.folder}/{who}.key")
        request = urllib.request.Request(self.url + path, data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as answer:
                streams = answer.headers["Content-Type"] == "text/event-stream"
                return answer.status, "" if streams else answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def test_a_change_needs_the_role_admin_and_the_token(self):
        self.serve()
        token = {"Authorization": "Bearer open sesame"}
        self.assertEqual(json.loads(self.answer("api/operator", "observer", **token)[1]), {"key": "", "needs_token": False})
        self.assertEqual(json.loads(self.answer("api/operator", "admin")[1]), {"key": "", "needs_token": True})
        key = json.loads(self.answer("api/operator", "admin", **token)[1])["key"]
        own = {"Origin": self.url.rstrip("/"), "X-Sluice-Change": key}
        self.assertEqual(self.answer("api/drain", "observer", b"{}", **own, **token),
                         (403, "A change needs a certificate with the role admin.\n"))
        self.assertEqual(self.answer("api/drain", None, b"{}", **own, **token)[0], 403)
        self.assertEqual(self.answer("api/drain", "admin", b"{}", **own), (403, "A change needs the server's token.\n"))
        self.assertEqual(self.answer("api/drain", "admin", b"{}", **token)[0], 403)
        self.assertEqual(self.answer("api/drain", "admin", b"{}", **own, **token)[0], 200)

    def test_a_role_or_the_token_reads_the_job_and_others_only_the_empty_page(self):
        self.serve()
        self.assertTrue(self.url.startswith("https://"), self.url)
        self.assertEqual(self.ask(""), 200)
        for path in ("api/state", "api/history", "api/events"):
            self.assertEqual(self.ask(path), 401)
            self.assertEqual(self.ask(path, who="nobody"), 401)
            self.assertEqual(self.ask(path, Authorization="Bearer wrong"), 401)
        self.assertEqual(self.ask("api/history", who="observer"), 200)
        self.assertEqual(self.ask("api/history", Authorization="Bearer open sesame"), 200)

    def test_it_is_called_by_the_names_of_its_certificate(self):
        self.serve()
        self.assertEqual(self.ask("", Host="node7:8080"), 200)
        self.assertEqual(self.ask("", Host="node8:8080"), 421)

    def test_the_next_connection_shows_a_certificate_that_was_replaced(self):
        self.serve()
        self.assertEqual(self.ask("", Host="node8"), 421)
        self.issue("server", "DNS:node8,IP:127.0.0.1")
        self.assertEqual(self.ask("", Host="node8"), 200)
        self.assertEqual(self.ask("api/history", who="observer"), 200)


def seen_in(drawn, chart, line):
    """The numbers of a line of a chart."""
    return [value for value in drawn[chart][line] if value is not None]


def moved_in(drawn, chart, line):
    """What the rates of a line add up to."""
    times = drawn[chart]["x"]
    return sum(rate * (now - before) for (before, now), rate in zip(itertools.pairwise(times), drawn[chart][line][1:]) if rate is not None)


class BrowsedPageTest(PageTest):
    """Chromium shows the page."""

    def setUp(self):
        super().setUp()
        if not shutil.which("node") or not os.path.exists(BROWSER) or not os.path.isdir(DRIVER):
            self.skipTest("Chromium, Node or what drives the browser is missing: `tools/setup page` installs them")

    def browse(self, **task):
        ended = subprocess.run(["node", os.path.join(HERE, "browse.js"), json.dumps({"url": f"{self.url}#all", **task})],
                               env={**os.environ, "NODE_PATH": DRIVER, "HOME": self.folder}, timeout=2 * PATIENCE,
                               capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads(ended.stdout)


class BrowserTest(BrowsedPageTest):
    def test_shows_the_inspectors_numbers_and_a_workers_name_as_text(self):
        self.serve("--workers=2")
        self.train("a", EVIL)
        seen = self.browse(until=NOBODY_LEFT, read=EVERYTHING, narrow=True)
        truth = self.inspect()
        page = seen["read"]
        self.assertEqual(seen["said"], [], "no error of the page, and no dialog")
        self.assertEqual(seen["hosts"], [self.url.split("/")[2]])
        self.assertEqual(seen["wide"], [0] * 5, "nothing sticks out at any width")
        self.assertEqual(seen["empty"], [0] * 5)
        self.assertEqual(page["images"], 0)
        self.assertIn(EVIL, page["text"])
        self.assertEqual(page["charts"], 14)
        self.assertEqual(page["unnamed"], 0)
        columns = {name: values[-1] for name, values in page["columns"].items()}
        self.assertEqual(columns["step"], truth.step)
        self.assertEqual(columns["accepted"], truth.pushes.accepted)
        self.assertEqual(columns["stale"], truth.pushes.stale)
        self.assertEqual(columns["samples"], truth.samples)
        self.assertEqual(page["state"]["verdict"], {"kind": "finished", "text": truth.verdict.text, "grave": False})
        self.assertIn(truth.verdict.text, page["text"])
        self.assertEqual(columns["wire_bytes_received"], truth.wire_bytes_received)
        self.assertEqual(page["state"]["learning_rate"], truth.learning_rate)
        self.assertTrue(any(loss for loss in page["columns"]["loss"]), page["columns"]["loss"])

    def test_the_charts_of_a_job_that_waits_have_the_inspectors_numbers(self):
        self.serve("--workers=2", "--lease=60", "--metrics=127.0.0.1:0", "--lr-warmup-steps=100")
        self.work("--max-steps=30", "--name=first", changes=self.held_at(batch=20))
        self.await_page(lambda state: state["workers"] == 1)
        self.work("--max-steps=30", "--name=second")
        page = self.browse(until="state.current.waiting >= 2 && state.pushes.accepted === 39", read=EVERYTHING)["read"]
        drawn, row = page["drawn"], page["state"]["row"]
        truth, now = self.inspect(), time.time()
        self.assertEqual((page["columns"]["step"][-1], truth.step), (19, 19))
        for name in ("accepted", "stale", "skipped", "duplicate", "rejected", "aborted"):
            self.assertAlmostEqual(moved_in(drawn, "dispositions", name), getattr(truth.pushes, name), places=6, msg=name)
        # The server takes a time in which it did not run off what it divides by.
        self.assertAlmostEqual(moved_in(drawn, "speed", "steps/s"), truth.step, delta=5)
        for line, field in (("received", "wire_bytes_received"), ("sent", "wire_bytes_sent")):
            self.assertAlmostEqual(moved_in(drawn, "traffic", line), getattr(truth, field), delta=0.001 * row[field], msg=line)
        self.assertAlmostEqual(seen_in(drawn, "rate", "learning rate")[-1], truth.learning_rate, places=9)
        self.assertEqual(truth.learning_rate, 0.125 * 0.2)
        self.assertEqual(seen_in(drawn, "members", "workers")[-1], truth.workers)
        # The charts may be a second behind the newest row, and memory changes by some pages meanwhile.
        self.assertAlmostEqual(seen_in(drawn, "memory", "memory")[-1], row["memory"], delta=0.01 * row["memory"])
        self.assertAlmostEqual(row["memory"], self.metrics()["process_resident_memory_bytes"], delta=0.1 * row["memory"])
        since = now - truth.current.waiting.ToTimedelta().total_seconds()
        self.assertAlmostEqual(drawn["waiting"]["x"][-1] - seen_in(drawn, "waiting", "seconds")[-1], since, delta=3)
        for worker in self.inspect("ListWorkers").workers:
            self.assertAlmostEqual(seen_in(drawn, "loss", worker.worker)[-1], worker.loss, places=4, msg=worker.worker)
        self.let_go()

    def test_shows_the_inspectors_staleness_and_pushes(self):
        self.serve("--workers=2", "--mode=async")
        self.train("a", "b")
        seen = self.browse(until=NOBODY_LEFT, read="""({
          bars: [...document.querySelectorAll('#staleness li')].map((one) => one.title),
          pairs: [...document.querySelectorAll('#pushes div')].map((row) => row.innerText.split(/\\s*\\n/)),
        })""")["read"]
        truth = self.inspect()
        counts = {one.staleness: one.count for one in truth.staleness.histogram}
        self.assertEqual(sum(counts.values()), 60)
        self.assertEqual(seen["bars"], [f"{counts.get(i, 0)} gradients of staleness {i}" for i in range(len(seen["bars"]))])
        self.assertGreater(len(seen["bars"]), max(counts))
        self.assertEqual(dict(seen["pairs"])["accepted"], str(truth.pushes.accepted))

    def test_an_odd_number_of_charts_leaves_no_place_empty(self):
        self.serve("--workers=1", "--durability=journal")
        self.work("--max-steps=3", "--name=a", changes=self.held_at(batch=3))
        self.await_page(lambda state: state["step"] == 2)
        self.report(1, {"test accuracy": 0.75})
        seen = self.browse(until="Object.keys(sluicePage.charts).length === 16", narrow=True)
        self.assertEqual(seen["empty"], [0] * 5)
        self.let_go()

    def test_a_narrow_axis_of_five_minutes_has_times_within_it(self):
        self.serve("--workers=1")
        first = 1795720933
        times = [(first, first + 263, 120), (first, first + 263, 86400), (first, first + 2 * 86400, 43200)]
        seen = self.browse(until="true", read="import('/charts.js').then(({ placesOf }) => "
                           f"{json.dumps(times)}.map((shown) => placesOf(...shown)))")
        self.assertEqual(seen["read"][:2], [[1795721040, 1795721160], []])
        self.assertEqual(len(seen["read"][2]), 4)

    def test_a_new_learning_rate_is_told_with_the_schedule(self):
        self.serve("--workers=1", "--lr-schedule=step", "--lr-step-size=10", "--lr-gamma=0.5")
        self.train("a", steps=20)
        effect = "From the next step on, the learning rate is 0.5 times the factor of the schedule. Now it is 0.125 times 0.25."
        seen = self.browse(until=NOBODY_LEFT, acts=[
            {"await": "!document.getElementById('menu').hidden"}, {"press": "Tab"}, {"press": "Enter"}, {"press": "Tab"}, {"press": "Tab"},
            {"await": "document.activeElement.id === 'do-rate'"}, {"press": "Enter"}, {"type": "0.5"},
            {"await": f"document.getElementById('effect').textContent === '{effect}'"}, {"press": "Enter"},
            {"await": "document.getElementById('outcome').textContent === 'The learning rate is 0.5 from step 20 on.'"},
            {"await": "sluicePage.state.base_learning_rate === 0.5 && sluicePage.state.learning_rate === 0.125"},
            {"await": "sluicePage.series.events.some((one) => one.text === 'the learning rate is 0.5, before the schedule')"}])
        self.assertEqual(seen["said"], [])

    def metrics(self):
        """What Prometheus would read of the same server: the number of each name with its labels."""
        url = self.await_log(r"metrics at (\S+)")
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            lines = [line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    def expect_in_last_bucket(self, value, metrics, name):
        """The longest time lies in the last bucket of the histogram that has any."""
        counts = {float(re.search(r'le="([^"]+)"', key).group(1)): count
                  for key, count in metrics.items() if key.startswith(f"{name}_bucket")}
        bounds = sorted(counts)
        last = next(i for i, bound in enumerate(bounds) if counts[bound] == counts[bounds[-1]])
        self.assertLessEqual(value, bounds[last])
        if last > 0:
            self.assertGreater(value, bounds[last - 1])

    def test_one_step_takes_as_long_on_the_charts_as_in_the_metrics(self):
        self.serve("--workers=1", "--metrics=127.0.0.1:0", "--durability=journal")
        self.train("a", steps=1)
        page = self.browse(until=NOBODY_LEFT, read=EVERYTHING)["read"]
        metrics = self.metrics()
        self.assertEqual(metrics['sluice_step_seconds_count{server="0"}'], 1)
        step = metrics['sluice_step_seconds_sum{server="0"}']
        for line in ("median", "p99"):
            self.assertEqual(len(seen_in(page["drawn"], "step-time", line)), 1, line)
            self.assertAlmostEqual(seen_in(page["drawn"], "step-time", line)[0], step, msg=line, delta=step * 1e-6)
        for part in ("wait", "accumulate", "apply", "publish", "encode"):
            of_part = f'{{server="0",part="{part}"}}'
            count, total = (metrics[f"sluice_step_part_seconds_{what}{of_part}"] for what in ("count", "sum"))
            means = [mean for mean in page["columns"][f"part_{part}"] if mean is not None]
            self.assertEqual(bool(means), count > 0, part)
            if count > 0:
                self.assertLessEqual(min(means), total / count * (1 + 1e-6), part)
                self.assertGreaterEqual(max(means), total / count * (1 - 1e-6), part)
            self.assertEqual(seen_in(page["drawn"], "parts", part), [mean for mean in means if mean > 0], part)
        self.assertEqual(metrics['sluice_step_part_seconds_count{server="0",part="apply"}'], 1)
        self.expect_in_last_bucket(max(seen_in(page["drawn"], "sync", "p99")), metrics, "sluice_journal_sync_seconds")

    def test_a_gradient_that_waits_is_in_flight_on_the_page_and_in_the_metrics(self):
        self.serve("--workers=2", "--lease=60", "--metrics=127.0.0.1:0")
        self.work("--max-steps=3", "--name=first", changes=self.held_at(batch=2))
        self.await_page(lambda state: state["workers"] == 1)
        self.work("--max-steps=3", "--name=second")
        page = self.browse(until="state.step === 1 && state.in_flight.bytes > 0 && state.current.waiting >= 2",
                           read=EVERYTHING)["read"]
        metrics, truth = self.metrics(), self.inspect()
        drawn, pairs = page["drawn"], page["pairs"]
        vector = 4 * truth.elements
        self.assertEqual(seen_in(drawn, "in-flight", "gradients")[-1], vector)
        self.assertEqual(metrics["sluice_in_flight_bytes"], vector)
        self.assertEqual(page["state"]["in_flight"]["limit"], metrics["sluice_in_flight_limit_bytes"])
        self.assertEqual(seen_in(drawn, "queue", "pushes")[-1], truth.pushes.in_progress)
        self.assertEqual(truth.pushes.in_progress, metrics["sluice_pushes_in_progress"])
        self.assertEqual(pairs["pushes in progress"], str(truth.pushes.in_progress))
        for thread in ("arrive", "step", "encode", "summary", "hook"):
            self.assertEqual(seen_in(drawn, "tasks", thread)[-1],
                             metrics[f'sluice_executor_tasks{{server="0",executor="{thread}"}}'], thread)
        self.assertNotIn("sync", drawn, "there is no journal")
        self.assertEqual(pairs["journal"], "none")
        self.let_go()

    def report(self, step, results):
        """What an observer does that has evaluated a step."""
        stubs()
        import grpc  # pylint: disable=import-outside-toplevel
        from sluice.v1 import parameter_server_pb2 as ps, parameter_server_pb2_grpc  # pylint: disable=import-outside-toplevel
        with grpc.insecure_channel(self.address) as channel:
            server = parameter_server_pb2_grpc.ParameterServerStub(channel)
            size = example_job.SHAPE[0] * example_job.SHAPE[1]
            weight = {"name": "weight", "shape": example_job.SHAPE, "kind": "PARAMETER", "dtype": "FLOAT32", "length": size}
            events = server.Join(ps.JoinRequest(role=ps.OBSERVER, worker="judge", process_nonce=7, layout={"ranges": [weight]}))
            session = next(events).welcome.session
            server.Heartbeat(ps.HeartbeatRequest(session=session, measurement={"step": step, "results": results}))
            server.Leave(ps.LeaveRequest(session=session))

    def test_an_accuracy_that_is_reported_during_training_is_on_the_page(self):
        self.serve("--workers=1")
        self.work("--max-steps=3", "--name=a", changes=self.held_at(batch=3))
        self.await_page(lambda state: state["step"] == 2)
        self.report(1, {"test accuracy": 0.75, EVIL: 2})
        page = self.browse(until="state.measured !== null && sluicePage.series.has('test_accuracy')", read=EVERYTHING)["read"]
        told = self.inspect().measurement
        self.assertEqual((told.step, dict(told.results), told.reports), (1, {"test accuracy": 0.75, EVIL: 2}, 1))
        self.assertEqual(seen_in(page["drawn"], "accuracy", "test accuracy"), [0.75])
        self.assertIn("0.75 at step 1", page["text"])
        self.assertIn(f"{EVIL}, step 1", page["text"])
        self.assertEqual(page["images"], 0)
        self.let_go()

    def test_an_accuracy_against_step_is_at_the_step_that_was_evaluated(self):
        self.serve("--workers=1", "--metrics=127.0.0.1:0")
        self.work("--max-steps=4", "--name=a", changes=self.held_at(batch=4))
        self.await_page(lambda state: state["step"] == 3)
        for reports, (step, accuracy) in enumerate(((2, 0.75), (1, 0.5)), 1):  # the later one is of an older step
            self.report(step, {"test accuracy": accuracy})
            self.await_page(lambda state, reports=reports: state["measured"] and state["measured"]["step"] == 3 - reports
                            and state["row"]["measured_step"] == 3 - reports)
        by_step = [{"await": "!document.getElementById('menu').hidden"}, *[{"press": "Tab"}] * 2,
                   {"await": "document.activeElement.name === 'span'"}, {"press": "Tab"}, {"press": "ArrowRight"},
                   {"await": "document.activeElement.value === 'step'"},
                   {"await": "sluicePage.charts.accuracy.x.length === 2"}]
        drawn = self.browse(until="sluicePage.series.has('test_accuracy')", acts=by_step, read=EVERYTHING)["read"]["drawn"]
        self.assertEqual(drawn["accuracy"], {"x": [1, 2], "test accuracy": [0.5, 0.75]})
        metrics = self.metrics()
        self.assertEqual((metrics["sluice_measured_accuracy"], metrics["sluice_measured_step"]), (0.5, 1))
        self.let_go()

    def test_shows_the_inspectors_tables_of_rows(self):
        tables = [{**tables_test.TABLES[0], "name": EVIL}, *tables_test.TABLES[1:]]
        with unittest.mock.patch.object(tables_test, "TABLES", tables):
            self.serve("--workers=1", "--lease=60")
            stubs()
            worker = tables_test.Worker(self.address)
            hot, last = 7, 2 ** 64 - 1
            worker.push([((0, [hot, last]), tables_test.np.ones((2, tables_test.WIDTH), "<f4"))])
            worker.step += 1
            for other in range(1000):
                worker.pull(0, sorted({hot, 1000 + other}))
        page = self.browse(until="state.row_tables.count === 2 && state.row_tables.first[0].reads >= 2000", narrow=True, read="""({
          tables: sluicePage.state.row_tables.first, images: document.images.length,
          columns: sluicePage.series.columns, drawn: sluicePage.charts,
          notes: Object.fromEntries([...document.querySelectorAll('.chart')].map((one) => [one.id, one.querySelector('small').innerText])),
          cells: [...document.querySelectorAll('#row-table-rows tr')].map((row) => [...row.cells].map((one) => one.innerText)),
        })""")
        self.assertEqual((page["said"], page["wide"], page["read"]["images"]), ([], [0] * 5, 0))
        listed = self.inspect("ListTables").tables
        for shown, truth in zip(page["read"]["tables"], listed):
            self.assertEqual((shown["name"], shown["rows"], shown["bytes"], shown["reads"], shown["hits"], shown["mean_age"]),
                             (truth.table.name, truth.rows, truth.bytes, truth.reads, truth.hits, truth.mean_age))
            self.assertEqual([(int(row["id"]), row["reads"]) for row in shown["hottest"]],
                             [(row.id, row.reads) for row in truth.hottest])
        cells = page["read"]["cells"]
        self.assertEqual([cells[0][0], cells[0][1], cells[0][3]], [EVIL, "2", "50 %"])
        self.assertRegex(cells[1][0], r"^hottest rows, and how often they were read: 7 × \d+")
        self.assertEqual(cells[2:], [["users", "0", cells[2][2], "–", "–"], ["no row is read much more often than others"]])
        columns, drawn = page["read"]["columns"], page["read"]["drawn"]
        self.assertEqual(seen_in(drawn, "rows", "rows")[-1], sum(one.rows for one in listed))
        self.assertEqual(seen_in(drawn, "row-memory", "memory")[-1], sum(one.bytes for one in listed))
        self.assertEqual((columns["row_reads"][-1], columns["row_hits"][-1]), (2000, 1000))
        pairs = itertools.pairwise(zip(columns["row_reads"], columns["row_hits"]))
        shares = [100 * (hits - (hits_before or 0)) / (reads - (reads_before or 0))
                  for (reads_before, hits_before), (reads, hits) in pairs if (reads or 0) > (reads_before or 0)]
        for drawn_share, share in itertools.zip_longest(seen_in(drawn, "hits", "hits"), shares):
            self.assertAlmostEqual(drawn_share, share, places=6)
        self.assertEqual(page["read"]["notes"]["chart-rows"], "2 in 2 tables")
        worker.leave()

    def test_an_operator_acts_with_the_keyboard_after_a_login(self):
        self.serve("--workers=2", f"--token-file={self.token_file()}")
        shows_no_dialog = {"await": "!document.getElementById('dialog').open"}

        def focused(name):
            return {"await": f"document.activeElement.id === '{name}'"}

        def says(name, text):
            return {"await": f"document.getElementById('{name}').textContent.includes({json.dumps(text)})"}

        login = [{"await": "!document.getElementById('unlock').hidden && document.getElementById('menu').hidden"},
                 {"press": "Tab"}, focused("unlock-button"), {"press": "Enter"}, focused("token"),
                 {"type": "wrong"}, {"press": "Enter"}, says("wrong", "The server has another token."),
                 {"type": "open sesame"}, {"press": "Enter"}, focused("do-checkpoint")]
        refused = [{"press": "Tab"}, {"press": "Tab"}, focused("do-evict"), {"press": "Enter"}, focused("value"),
                   {"type": "nobody"}, says("effect", "Worker nobody leaves the job"), {"press": "Enter"},
                   says("outcome", 'no worker "nobody" takes part'), {"press": "Escape"}, shows_no_dialog, focused("do-evict")]
        cancelled = [{"press": "Tab"}, focused("do-drain"), {"press": "Enter"}, focused("cancel"), {"press": "Enter"},
                     shows_no_dialog, focused("do-drain")]
        seen = self.browse(until="true", acts=login + refused + cancelled, read=EVERYTHING)
        self.assertEqual([line for line in seen["said"] if "status of 404" not in line], [])
        self.assertEqual(seen["read"]["state"]["phase"], "waiting for workers")

    def test_an_operator_without_a_token_saves_and_drains(self):
        self.serve("--workers=1", "--wait-for-more")
        self.train("a")
        saved = "/^A checkpoint of step 30 is saved as /.test(document.getElementById('outcome').textContent)"
        ended = "document.getElementById('outcome').textContent === 'The job ends at step 30.'"

        def does(name, outcome):
            press = [{"press": "Tab"}, {"await": f"document.activeElement.id === 'do-{name}'"}]
            return press, [{"press": "Enter"}, {"press": "Tab"}, {"press": "Enter"}, {"await": outcome}, {"press": "Enter"}]

        first, save = does("checkpoint", saved)
        last, drain = does("drain", ended)
        seen = self.browse(until=NOBODY_LEFT, acts=[{"await": "!document.getElementById('menu').hidden"},
                                                    {"press": "Tab"}, {"press": "Enter"}, *first, *save, {"press": "Tab"}, {"press": "Tab"}, *last, *drain])
        self.assertEqual(self.server.end()[0], 0)
        self.assertEqual([line for line in seen["said"] if "ERR_" not in line], [])

    def test_nobody_can_press_a_button_while_the_server_is_away(self):
        self.serve("--workers=1")
        shown = f"{self.folder}/shown"
        buttons = "[...document.querySelectorAll('#actions button')]"
        why = "The server does not answer, so nothing can be changed now."
        can = {"await": f"{buttons}.every((one) => !one.disabled) && document.getElementById('impossible').hidden"}
        cannot = {"await": f"{buttons}.every((one) => one.disabled) && "
                           f"document.getElementById('impossible').innerText === '{why}'"}
        acts = [{"await": "!document.getElementById('menu').hidden"}, can, {"press": "Tab"}, {"press": "Enter"}, {"press": "Tab"},
                {"press": "Enter"},
                {"await": "document.getElementById('dialog').open"}, {"touch": shown}, cannot,
                {"await": f"document.getElementById('effect').textContent === '{why}'"},
                {"await": "document.getElementById('confirm').disabled"}, {"press": "Escape"}, {"touch": shown}, can]
        with concurrent.futures.ThreadPoolExecutor(1) as browser:
            seen = browser.submit(self.browse, until="true", acts=acts)
            for change in (signal.SIGSTOP, signal.SIGCONT):  # a stopped server closes no connection
                self.await_file(shown, seen)
                os.kill(self.server.process.pid, change)
            self.assertEqual([line for line in seen.result()["said"] if "ERR_" not in line], [])

    def await_file(self, path, seen):
        """Waits until the browser has made the file, and removes it."""
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(path):
            if seen.done() or time.monotonic() > deadline:
                self.fail(f"the browser did not come so far: {seen.exception(timeout=0)}")
            time.sleep(0.1)
        os.remove(path)

    def test_other_runs_of_a_directory_are_laid_over_the_loss_and_can_be_switched_off(self):
        self.serve("--workers=1")
        slow = "own, pause = worker.gradient_of, worker.time.sleep\nworker.gradient_of = lambda *given: (pause(0.03), own(*given))[1]"
        self.work("--max-steps=150", "--name=a", changes=slow)
        self.await_page(lambda state: state["phase"] == "finished")
        self.server.stop(signal.SIGTERM)
        os.rename(f"{self.folder}/checkpoints", f"{self.folder}/{EVIL}")
        os.mkdir(f"{self.folder}/broken")
        with open(f"{self.folder}/broken/page-history", "wb") as broken:
            broken.write(b"sluice history 9\n" + bytes(100))
        self.address = "127.0.0.1:0"
        self.serve("--workers=1", f"--page-runs={self.folder}")
        self.work("--max-steps=3", "--name=b", changes=self.held_at(batch=3))
        of_loss = "Object.keys(sluicePage.charts.loss)"
        seen = self.browse(until="state.step === 2 && document.querySelectorAll('#run-rows tr').length === 1", acts=[
            {"await": f"{of_loss}.includes('{EVIL}')"}, {"await": "(document.querySelector('input[value=step]').click(), true)"},
            {"await": "sluicePage.charts.loss.x.at(-1) > 30"}], read=EVERYTHING, narrow=True)
        page = seen["read"]
        self.assertEqual((seen["said"], seen["wide"], page["images"]), ([], [0] * 5, 0))
        run = json.loads(self.get("api/runs"))["runs"][-1]
        self.assertEqual((run["name"], run["rules"], run["verdict"]), (EVIL, "sync", "finished"))
        self.assertEqual(run["learning_rate"], 0.125)
        self.assertEqual(page["drawn"]["loss"]["x"][-1], run["curve"]["step"][-1])
        self.assertEqual(seen_in(page["drawn"], "loss", EVIL), run["curve"]["loss"])
        self.assertTrue(seen_in(page["drawn"], "loss", "mean"), "the job's own loss, of a step of many rows")
        self.assertIn(f"{EVIL}\t", page["text"])
        off = self.browse(until="document.querySelectorAll('#run-rows tr').length === 1", acts=[
            {"await": f"{of_loss}.includes('{EVIL}')"},
            {"await": "(document.querySelector('#run-rows input').focus(), true)"}, {"press": "Space"},
            {"await": f"!{of_loss}.includes('{EVIL}') && document.activeElement.type === 'checkbox'"}])
        self.assertEqual(off["said"], [])
        self.let_go()

    def test_names_the_worker_that_is_awaited(self):
        self.serve("--workers=2", "--lease=60")
        self.work("--max-steps=3", "--name=swift")
        self.work("--max-steps=3", f"--name={EVIL}", changes=self.held_at(batch=2))
        seen = self.browse(until="state.current.waiting >= 1 && state.current.awaited !== ''", read=EVERYTHING)
        self.assertIn(f"for {EVIL} (last seen", seen["read"]["text"])
        self.assertEqual(seen["said"], [])
        self.let_go()


if __name__ == "__main__":
    recorded_tests.main()
