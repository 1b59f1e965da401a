#!/usr/bin/env python3
"""Tables of rows over real gRPC, from the .proto files alone: against the same training in numpy, and against misuse."""

import os
import signal
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "testing")]
# pylint: disable=wrong-import-position
import example_job  # noqa: E402
import recorded_tests  # noqa: E402

if not example_job.MISSING:
    import grpc
    import numpy as np

WIDTH, RATE, LAST = 6, 0.5, 2 ** 64 - 1
TABLES = [{"name": "items", "width": WIDTH, "initializer": {"kind": "UNIFORM_ROWS", "scale": 0.25, "seed": 7}},
          {"name": "users", "width": 2}]


class Worker:
    """A session of one worker, whose model is a vector of one element and two tables."""

    def __init__(self, address):
        from sluice.v1 import parameter_server_pb2 as messages  # pylint: disable=import-outside-toplevel
        from sluice.v1 import parameter_server_pb2_grpc as services  # pylint: disable=import-outside-toplevel
        self.messages, self.services, self.address = messages, services, address
        self.sequence = 0
        self.join()

    def join(self):
        # A connection of its own: it may not be known yet that the server of the last one was killed.
        channel = grpc.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.server = self.services.ParameterServerStub(channel)
        bias = {"name": "bias", "shape": [1], "kind": "PARAMETER", "dtype": "FLOAT32", "length": 1}
        request = self.messages.JoinRequest(role="WORKER", worker="w", process_nonce=5,
                                            layout={"ranges": [bias], "tables": TABLES},
                                            optimizer={"sgd": {"learning_rate": RATE}})
        self.events = self.server.Join(request, wait_for_ready=True)
        self.welcome = next(self.events).welcome
        self.step, self.incarnation = self.welcome.step, self.welcome.incarnation
        if not self.welcome.initialized:
            offer = self.messages.InitializeParamsRequest
            self.server.InitializeParams(iter([offer(header={"session": self.welcome.session}),
                                               offer(chunk={"payload": bytes(4)})]))

    @staticmethod
    def ids(table, ids):
        return {"table": table, "ids": np.array(ids, "<u8").tobytes()}

    def pull(self, table, ids):
        """The rows, as a matrix."""
        request = self.messages.PullRowsRequest(pull={"session": self.welcome.session}, rows=[self.ids(table, ids)])
        answers = self.server.PullRows(request)
        header = next(answers).header
        values = np.full(len(ids) * TABLES[table]["width"], np.nan, np.float32)
        for answer in answers:
            part = np.frombuffer(answer.chunk.payload, "<f4")
            values[answer.chunk.offset:][:len(part)] = part
        self.step, self.incarnation = header.step, header.incarnation
        return values.reshape(len(ids), -1)

    def messages_of(self, rows, bias=0.0, row_bytes=None, again=False):
        """The messages of a push. `rows` are pairs of (table, ids) and a matrix."""
        push, self.sequence = self.messages.PushGradientsRequest, self.sequence + (not again)
        size = sum(8 * len(ids) + 4 * values.size for (_, ids), values in rows)
        yield push(header={"session": self.welcome.session, "sequence": self.sequence, "step": self.step,
                           "incarnation": self.incarnation, "samples": 1,
                           "row_bytes": size if row_bytes is None else row_bytes})
        for (table, ids), _ in rows:
            yield push(rows=self.ids(table, ids))
        yield push(chunk={"payload": np.float32(bias).tobytes()})
        offset = 1
        for _, values in rows:
            yield push(chunk={"offset": offset, "payload": values.astype("<f4").tobytes()})
            offset += values.size

    def push(self, rows, **how):
        return self.server.PushGradients(self.messages_of(rows, **how))

    def leave(self):
        self.server.Leave(self.messages.LeaveRequest(session=self.welcome.session))


class Twin:
    """What the rows must be: plain SGD in numpy. The rate is a power of 2, so no bit depends on the compiler."""

    def __init__(self, worker, seed=1):
        self.ids = np.unique(np.random.default_rng(seed).integers(0, LAST, 200, np.uint64, endpoint=True))
        self.random = np.random.default_rng(seed + 1)
        self.rows = worker.pull(0, self.ids)

    def train(self, worker, pushes):
        for _ in range(pushes):
            some = np.sort(self.random.choice(len(self.ids), 40, replace=False))
            gradient = self.random.standard_normal((len(some), WIDTH)).astype(np.float32)
            self.rows[some] -= np.float32(RATE) * gradient
            worker.push([((0, self.ids[some]), gradient)])
            worker.step += 1


class TablesTest(example_job.JobTest):
    def serve_and_join(self, *flags):
        self.serve("--workers=1", "--lease=60", *flags)
        example_job.stubs()
        return Worker(self.address)

    def expect_same(self, found, expected):
        self.assertEqual(found.tobytes(), expected.tobytes())

    def test_rows_become_what_numpy_makes_of_them(self):
        worker = self.serve_and_join()
        twin = Twin(worker)
        self.assertTrue(np.all(np.abs(twin.rows) <= 0.25) and len(np.unique(twin.rows)) > 1000)
        twin.train(worker, 30)
        self.expect_same(worker.pull(0, twin.ids), twin.rows)
        self.expect_same(worker.pull(1, [0, LAST]), np.zeros((2, 2), np.float32))
        self.assertEqual(worker.step, 30)
        worker.leave()
        self.end()

    def test_a_killed_server_with_a_journal_loses_no_row(self):
        flags = ("--durability=journal", "--checkpoint-every=7")
        worker = self.serve_and_join(*flags)
        twin = Twin(worker)
        for pushes in (3, 12, 9):
            twin.train(worker, pushes)
            self.server.stop(signal.SIGKILL)
            self.serve("--workers=1", *flags)
            worker.join()
            self.assertTrue(worker.welcome.resumed)
            self.expect_same(worker.pull(0, twin.ids), twin.rows)
        twin.train(worker, 5)
        self.expect_same(worker.pull(0, twin.ids), twin.rows)
        self.assertEqual(worker.step, 29)
        worker.leave()
        self.end()

    def test_a_job_goes_on_from_a_checkpoint_with_its_rows(self):
        worker = self.serve_and_join("--checkpoint-every=4")
        twin = Twin(worker)
        twin.train(worker, 11)
        worker.leave()
        self.end()
        worker = self.serve_and_join("--checkpoint-every=4")
        self.expect_same(worker.pull(0, twin.ids), twin.rows)
        twin.train(worker, 4)
        self.expect_same(worker.pull(0, twin.ids), twin.rows)
        worker.leave()
        self.end()

    def test_a_repeated_push_counts_its_rows_once(self):
        worker = self.serve_and_join()
        rows = [((1, [3]), np.ones((1, 2), np.float32))]
        worker.push(rows)
        answer = worker.push(rows, again=True)
        self.assertEqual(answer.disposition, 4)  # DUPLICATE
        self.expect_same(worker.pull(1, [3]), np.full((1, 2), -RATE, np.float32))

    def refused(self, call, reason, text):
        with self.assertRaises(grpc.RpcError) as raised:
            call()
        sys.path.insert(0, os.path.dirname(example_job.NUMPY_WORKER))
        from worker import reason_of  # pylint: disable=import-outside-toplevel
        self.assertEqual(reason_of(raised.exception), reason, raised.exception.details())
        self.assertIn(text, raised.exception.details())

    def test_refuses_pushes_that_break_the_rules_and_changes_no_row(self):
        worker = self.serve_and_join("--max-push-rows=0.001")
        one = np.ones((1, 2), np.float32)
        two = np.ones((2, 2), np.float32)
        push = worker.messages.PushGradientsRequest

        def send(messages):
            return lambda: worker.server.PushGradients(iter(messages))

        for rows, reason, text in [
                ([((1, [7, 3]), two)], "BAD_ARGUMENT", "sort them"),
                ([((1, [3, 3]), two)], "BAD_ARGUMENT", "send each once"),
                ([((1, [5]), one), ((1, [5]), one)], "BAD_ARGUMENT", "send each once"),
                ([((1, [5]), one), ((0, [5]), np.ones((1, WIDTH)))], "BAD_ARGUMENT", "order of the layout"),
                ([((2, [5]), one)], "BAD_ARGUMENT", "less than 2"),
                ([((1, [5]), two)], "BAD_CHUNK", "chunk"),
                ([((1, [5, 6]), one)], "BAD_CHUNK", "missing"),
                ([((1, range(100)), np.ones((100, 2)))], "BAD_ARGUMENT", "--max-push-rows"),
                ([((1, [5]), one * np.nan)], "NOT_FINITE", "row 5 of users, element 0")]:
            size = 1000 if len(rows[0][0][1]) < 100 else 1600
            self.refused(send(list(worker.messages_of(rows, row_bytes=size))), reason, text)
        header, ids, bias, values = worker.messages_of([((1, [5]), one)])
        for messages, reason, text in [
                ([header, bias, values, ids], "BAD_CHUNK", "no ids of rows"),
                ([header, ids, bias, values, ids], "BAD_ARGUMENT", "send all ids first"),
                ([header, ids, values], "BAD_CHUNK", "missing"),
                ([header, ids, bias], "BAD_CHUNK", "rows of the push are missing"),
                ([header, ids, push(chunk={"payload": bytes(12)})], "BAD_CHUNK", "outside"),
                ([header, push(rows={"table": 1, "ids": bytes(7)}), bias, values], "BAD_ARGUMENT", "a multiple of 8"),
                ([next(worker.messages_of([], row_bytes=8)), ids], "BAD_ARGUMENT", "announced 8")]:
            self.refused(send(messages), reason, text)
        self.expect_same(worker.pull(1, [5]), np.zeros((1, 2), np.float32))
        self.assertEqual(worker.step, 0)
        worker.push([((1, [5]), one)])
        self.expect_same(worker.pull(1, [5]), np.full((1, 2), -RATE, np.float32))

    def test_refuses_pulls_that_break_the_rules(self):
        worker = self.serve_and_join()

        def asks(*rows):
            pull = {"session": worker.welcome.session}
            return lambda: list(worker.server.PullRows(worker.messages.PullRowsRequest(pull=pull, rows=rows)))

        for rows, text in [([worker.ids(1, [7, 3])], "sort them"), ([worker.ids(1, [3, 3])], "send each once"),
                           ([worker.ids(2, [3])], "less than 2"), ([{"table": 1, "ids": bytes(9)}], "a multiple of 8"),
                           ([worker.ids(1, [3]), worker.ids(0, [3])], "in the order of the layout"),
                           ([worker.ids(1, [3]), worker.ids(1, [4])], "each once"),
                           ([worker.ids(1, range(400001))], "400000")]:
            self.refused(asks(*rows), "BAD_ARGUMENT", text)
        self.refused(lambda: list(worker.server.PullRows(worker.messages.PullRowsRequest(
            pull={"session": 99}, rows=[worker.ids(1, [3])]))), "UNKNOWN_SESSION", "")
        self.assertEqual(worker.pull(0, range(400000)).shape, (400000, WIDTH))

    def test_a_pull_that_is_not_read_or_cancelled_holds_up_nobody(self):
        worker = self.serve_and_join()
        twin = Twin(worker)
        many = 100000
        request = worker.messages.PullRowsRequest(pull={"session": worker.welcome.session},
                                                  rows=[worker.ids(0, range(many))])
        slow = [worker.server.PullRows(request) for _ in range(8)]
        twin.train(worker, 20)
        self.expect_same(worker.pull(0, twin.ids), twin.rows)
        for pull in slow[:4]:
            pull.cancel()
        twin.train(worker, 20)
        for pull in slow[4:]:
            self.assertEqual(sum(len(answer.chunk.payload) for answer in pull), many * WIDTH * 4)
        self.expect_same(worker.pull(0, twin.ids), twin.rows)

    def test_the_inspector_shows_tables_and_rows(self):
        worker = self.serve_and_join()
        worker.push([((1, [3, LAST]), np.array([[2, 4], [6, 8]], np.float32))])
        from sluice.v1 import inspector_pb2 as messages  # pylint: disable=import-outside-toplevel
        from sluice.v1 import inspector_pb2_grpc as services  # pylint: disable=import-outside-toplevel
        inspector = services.InspectorStub(grpc.insecure_channel(self.address))
        tables = inspector.ListTables(messages.ListTablesRequest()).tables
        self.assertEqual([(one.table.name, one.rows, one.optimizer) for one in tables],
                         [("items", 0, "sgd"), ("users", 2, "sgd")])
        worker.pull(1, [3, 4, LAST])
        users = inspector.ListTables(messages.ListTablesRequest()).tables[1]
        self.assertEqual((users.reads, users.hits, users.mean_age), (3, 2, 0))
        row = inspector.GetRow(messages.GetRowRequest(table="users", id=LAST))
        self.assertEqual((row.step, row.exists, row.touched, list(row.elements)), (1, True, 1, [-3, -4]))
        absent = inspector.GetRow(messages.GetRowRequest(table="items", id=5))
        self.assertFalse(absent.exists)
        self.assertEqual(np.array(absent.elements, np.float32).tobytes(), worker.pull(0, [5]).tobytes())
        self.refused(lambda: inspector.GetRow(messages.GetRowRequest(table="x", id=5)), "NOT_FOUND", "no table")


if __name__ == "__main__":
    recorded_tests.main()
