#!/usr/bin/env python3
"""The live page of a real job of two servers, in a real browser, and as the Inspector counts it."""

import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE]
# pylint: disable=wrong-import-position
import page_test  # noqa: E402
import example_job  # noqa: E402
import recorded_tests  # noqa: E402
from ports import free_port  # noqa: E402
from example_job import stubs  # noqa: E402

WORKER = os.path.abspath("tests/testing/process/pushing_worker_program")
ELEMENTS = 1 << 22  # 16 MiB: far more than gRPC sends to somebody who does not read
WHAT_SERVERS_SHOW = """({
  state: sluicePage.state,
  drawn: sluicePage.charts,
  notes: Object.fromEntries([...document.querySelectorAll('.chart')].map((one) => [one.id, one.querySelector('small').innerText])),
  rows: [...document.querySelectorAll('#server-rows tr')].map((row) => [...row.cells].map((one) => one.innerText)),
  pairs: Object.fromEntries([...document.querySelectorAll('.pairs div')].map((row) => [...row.children].map((one) => one.textContent))),
})"""


class SlowWorker:
    """A worker that asks both servers for the parameters, and then takes what one of them sends as slowly as it can."""

    def __init__(self, address):
        stubs()
        import grpc  # pylint: disable=import-outside-toplevel
        from sluice.v1 import parameter_server_pb2, parameter_server_pb2_grpc  # pylint: disable=import-outside-toplevel
        self.messages = parameter_server_pb2
        first = parameter_server_pb2_grpc.ParameterServerStub(grpc.insecure_channel(address))
        weight = {"name": "weight", "shape": [ELEMENTS], "kind": "PARAMETER", "dtype": "FLOAT32", "length": ELEMENTS}
        self.events = first.Join(self.messages.JoinRequest(
            role="WORKER", worker="slow", process_nonce=7, layout={"ranges": [weight]},
            optimizer={"sgd": {"learning_rate": 1}}), wait_for_ready=True)
        self.welcome = next(self.events).welcome
        self.servers = [parameter_server_pb2_grpc.ParameterServerStub(grpc.insecure_channel(one.address))
                        for one in self.welcome.servers]

    def initialize(self):
        calls = [server.InitializeParams.future(self.offer()) for server in self.servers]
        assert calls[0].result().accepted

    def offer(self):
        offer, stripe, chunk = self.messages.InitializeParamsRequest, ELEMENTS // 2, 1 << 18
        yield offer(header={"session": self.welcome.session, "attempt": 1})
        for offset in range(0, stripe, chunk):
            yield offer(chunk={"offset": offset, "payload": bytes(4 * chunk)})

    def pull(self):
        request = self.messages.PullParamsRequest(session=self.welcome.session, number=1)
        first, second = (server.PullParams(request) for server in self.servers)
        for _ in first:
            pass
        next(second)
        return second  # The stream lasts as long as somebody has it.

    def leave(self):
        self.servers[0].Leave(self.messages.LeaveRequest(session=self.welcome.session))


class ServersPageTest(page_test.BrowsedPageTest):
    def serve(self, *flags):  # pylint: disable=arguments-differ
        """The first server, which serves the page, is the last that starts."""
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        self.address = addresses[0]
        for index, own in ((1, []), (0, ["--wait-for-more", "--page=127.0.0.1:0", "--metrics=127.0.0.1:0"])):
            server = example_job.Program(self, example_job.SERVER, f"--servers={','.join(addresses)}", f"--index={index}",
                                         *own, *flags)
        self.server = server
        self.url = self.await_log(r"the live page is at (\S+)")
        self.await_page(lambda state: all(one["connected"] for one in state["servers"]))

    def await_figures(self):
        """A state of the page that has what the Inspector says of both servers; of the other one that is a second old."""
        def same(state):
            truth = self.inspect("ListServers").servers
            return [(one["step"], one["wire_bytes_received"], one["wire_bytes_sent"]) for one in state["servers"]] == [
                (one.step, one.wire_bytes_received, one.wire_bytes_sent) for one in truth]
        return self.await_page(lambda state: state["phase"] == "finished" and same(state))

    def test_the_numbers_of_both_servers_are_the_inspectors(self):
        self.serve("--workers=2")
        for gradient in (1, 3):
            self.workers.append(example_job.Program(
                self, WORKER, f"--server={self.address}", f"--name=w{gradient}", "--steps=12", f"--gradient={gradient}",
                "--elements=100000", "--push-encoding=int8", "--batch-time=0.3"))
        for worker in self.workers:
            code, output = worker.end()
            self.assertEqual(code, 0, output)
        self.await_figures()
        seen = self.browse(until=page_test.NOBODY_LEFT, read=WHAT_SERVERS_SHOW, narrow=True)
        self.assertEqual((seen["said"], seen["wide"]), ([], [0] * 5))
        page, servers, truth = seen["read"], self.inspect("ListServers").servers, self.inspect()
        for shown, one in zip(page["state"]["servers"], servers):
            self.assertEqual((shown["address"], shown["step"], shown["elements"], shown["wire_bytes_received"], shown["wire_bytes_sent"]),
                             (one.address, one.step, one.elements, one.wire_bytes_received, one.wire_bytes_sent))
        self.assertEqual([(row[0], row[2], row[3]) for row in page["rows"]],
                         [(f"{i} at {one.address}", "12", "200 kB") for i, one in enumerate(servers)])
        self.expect_traffic(page, servers)
        self.assertEqual(page["pairs"]["received, as float32"], "10 MB")
        self.assertEqual(truth.bytes_received, 9600000 + 400000)  # and the first parameters
        for chart in ("memory", "tasks", "parts"):
            self.assertRegex(page["notes"][f"chart-{chart}"], "^of server 0")

    def expect_traffic(self, page, servers):
        """The rates that are drawn add up to the bytes of both servers."""
        for line, field in (("received", "wire_bytes_received"), ("sent", "wire_bytes_sent")):
            total = sum(getattr(one, field) for one in servers)
            self.assertEqual(page["state"]["row"][field], total)
            self.assertAlmostEqual(page_test.moved_in(page["drawn"], "traffic", line), total, delta=0.001 * total, msg=line)

    def test_a_pull_of_the_other_server_is_in_the_workers_lane(self):
        self.serve("--workers=1", "--lease=60")
        slow = SlowWorker(self.address)
        slow.initialize()
        stream = slow.pull()
        seen = self.browse(until="state.table.length === 1 && state.table[0].activity === 'u'",
                           read="({ lanes: [...document.querySelectorAll('.lane canvas')].map((one) => one.ariaLabel) })")
        self.assertIn("slow: now pulls", seen["read"]["lanes"])
        stream.cancel()
        self.await_page(lambda state: state["table"][0]["activity"] == "c")
        slow.leave()


if __name__ == "__main__":
    recorded_tests.main()
