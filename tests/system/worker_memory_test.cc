// How much memory a worker needs: its parameters, its gradient, and at most a tenth of both for
// what is on its way.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/net/private_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

constexpr int64_t kElements = 16 << 20;
constexpr int64_t kVector = kElements * static_cast<int64_t>(sizeof(float));

// The most memory, in bytes, of a worker that makes some steps with such a model. The tensors go
// through the socket.
int64_t PeakOfWorker(const std::string& listen, int64_t elements) {
  const auto server = Start({RunfilePath("server/sluice_server"), absl::StrCat("--listen=", listen),
                             "--workers=1", "--shared-memory=off"});
  const auto address = server->WaitForOutput("listening on ([^ ]+)");
  EXPECT_THAT(address, IsOk());
  const auto worker = Start({RunfilePath("tests/testing/process/pushing_worker_program"),
                             "--gradient=1", "--steps=12", absl::StrCat("--elements=", elements),
                             absl::StrCat("--server=", address.value_or(""))});
  const auto peak = worker->WaitForOutput("peak memory: ([0-9]+)");
  EXPECT_THAT(peak, IsOk());
  EXPECT_THAT(worker->Wait(), IsOkAndHolds(0));
  EXPECT_THAT(server->Wait(), IsOkAndHolds(0)) << server->output();
  int64_t bytes = 0;
  EXPECT_TRUE(absl::SimpleAtoi(peak.value_or(""), &bytes));
  return bytes;
}

// Beside other busy programs a worker has once held 6 % of a vector more, and never alone. So one
// of four workers must keep to it.
void ExpectTwoVectorsAndATenth(const std::string& listen) {
  if (getenv("SLUICE_SANITIZED") != nullptr) GTEST_SKIP() << "sanitizers need memory, too";
  const int64_t program = PeakOfWorker(listen, 1);
  int64_t peak = PeakOfWorker(listen, kElements);
  for (int again = 0; again < 3 && peak - program > 2 * kVector + kVector / 5; ++again) {
    peak = PeakOfWorker(listen, kElements);
  }
  EXPECT_GE(peak - program, 2 * kVector);
  EXPECT_LE(peak - program, 2 * kVector + kVector / 5)
      << "the worker took " << peak << " bytes, and " << program << " with a model of one element";
}

TEST(WorkerMemoryTest, IsParametersGradientAndATenthOverTcp) {
  ExpectTwoVectorsAndATenth("127.0.0.1:0");
}

TEST(WorkerMemoryTest, IsParametersGradientAndATenthOverAUnixSocket) {
  const auto directory = PrivateDirectory::Create();
  ASSERT_THAT(directory, IsOk());
  ExpectTwoVectorsAndATenth(absl::StrCat("unix:", (*directory)->path(), "/server.sock"));
}

}  // namespace
}  // namespace sluice
