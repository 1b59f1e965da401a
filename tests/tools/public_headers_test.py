#!/usr/bin/env python3
"""What programs with LibTorch outside of this tree get: the headers, and the library."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.path += [os.path.join(TREE, "tests/testing"), os.path.join(TREE, "tools/packaging")]
# pylint: disable=wrong-import-position
import install_headers  # noqa: E402
import recorded_tests  # noqa: E402

LIBRARY = os.path.realpath("worker/torch/libsluice-torch.so.0")
# A header that is added here is a promise to every program outside of the tree.
HEADERS = {
    "common/base/ids.h",
    "common/protocol/attachment.h",
    "common/protocol/disposition.h",
    "common/protocol/optimizer_option.h",
    "common/protocol/optimizer_table.h",
    "common/protocol/results.h",
    "common/tensor/table_spec.h",
    "worker/client/round_report.h",
    "worker/job.h",
    "worker/torch/remote_error.h",
    "worker/torch/remote_optimizer.h",
    "worker/torch/remote_step.h",
    "worker/torch/run_worker.h",
    "worker/torch/tables/remote_embedding.h",
    "worker/torch/tables/row_puller.h",
    "worker/torch/torch.h",
    "worker/training/local_steps.h",
}
FOREIGN = re.compile(r"#include <(?!torch/torch\.h)([^>]*/[^>]*)>|#include \"(?!absl/|common/|worker/)([^\"]*)\"")


class PublicHeadersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.chdir(TREE)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def test_the_headers_are_few_and_include_only_abseil_and_libtorch(self):
        headers = install_headers.closure("worker/torch/torch.h")
        self.assertEqual(headers, HEADERS)
        for path in headers:
            with open(path, encoding="utf-8") as file:
                self.assertIsNone(FOREIGN.search(file.read()), path)

    def test_a_program_outside_of_the_tree_compiles_without_warnings_and_trains(self):
        install_headers.install("worker/torch/torch.h", self.folder + "/include/sluice")
        program = self.folder + "/line"
        subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I" + self.folder + "/include",
                        "-isystem", "/usr/include/torch/csrc/api/include", "tests/tools/package/torch/line.cc", LIBRARY,
                        "-Wl,-rpath," + os.path.dirname(LIBRARY), "-ltorch", "-ltorch_cpu", "-lc10", "-labsl_status",
                        "-labsl_bad_optional_access", "-labsl_strings", "-o", program], check=True)
        ended = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3", program], check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertIn("y = 2.000 x + 1.000", ended.stdout)
        self.assertRegex(ended.stdout, r"accepted +400\n")

    def test_the_library_shows_nothing_but_what_the_headers_declare(self):
        shown = subprocess.run(["nm", "-DC", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
        names = {re.sub(r"\(.*|@.*|\[abi.*", "", line.split(" ", 2)[2]) for line in shown.stdout.splitlines()}
        names = {re.sub(r"^(typeinfo name|typeinfo|vtable) for ", "", name) for name in names} - {"SLUICE_TORCH_0"}
        classes = {"::".join(name.split("::")[:2]) for name in names}
        self.assertEqual(classes, {"sluice::DispositionName", "sluice::EmbeddingsOf", "sluice::Job",
                                   "sluice::PendingStep", "sluice::RemoteEmbeddingBagImpl",
                                   "sluice::RemoteEmbeddingImpl", "sluice::RemoteError", "sluice::RemoteOptimizer",
                                   "sluice::RunWorker"})


if __name__ == "__main__":
    recorded_tests.main()
