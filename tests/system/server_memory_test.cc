// The peak memory of a server process is what server/README.md adds up.
//
// A vector is 32 MiB, so that a vector too many is far more than all that is not a vector.

#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

constexpr uint64_t kElements = 8 << 20;
constexpr double kVector = kElements * sizeof(float) / 1e6;  // MB
constexpr double kProcess = 20;                              // MB
constexpr double kAhead = 4.2 + 0.1;                         // MB of each connection
constexpr double kNoise = 10;                                // MB: the heap's gaps
constexpr uint64_t kPushes = 4;                              // of each worker, until the peak

// The most memory that the process has had, in MB; 0 if it has ended.
double PeakOf(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024 / 1e6;
  }
  return 0;
}

// The peak of a server for so many workers, which push through sockets until some steps are made.
double PeakWith(int workers, const Words& server_flags, const Words& worker_flags = {}) {
  Words words = {RunfilePath("server/sluice_server"), "--listen=127.0.0.1:0", "--shared-memory=off",
                 "--lease=60", absl::StrCat("--workers=", workers)};
  words.insert(words.end(), server_flags.begin(), server_flags.end());
  const auto server = Start(words);
  const auto port = server->WaitForOutput("listening on 127.0.0.1:([0-9]+)");
  EXPECT_THAT(port, IsOk());
  const std::string address = absl::StrCat("127.0.0.1:", port.value_or("0"));
  Words worker = {RunfilePath("tests/testing/process/pushing_worker_program"),
                  absl::StrCat("--server=", address),
                  absl::StrCat("--elements=", kElements),
                  "--steps=1000000",
                  "--gradient=1",
                  "--leave-on-sigterm"};
  worker.insert(worker.end(), worker_flags.begin(), worker_flags.end());
  std::vector<std::unique_ptr<Process>> all;
  for (int i = 0; i < workers; ++i) all.push_back(Start(worker));
  EXPECT_THAT(WaitForAccepted(address, kPushes * workers), IsOk());
  const double peak = PeakOf(server->pid());
  for (const auto& each : all) each->Signal(SIGTERM);
  for (const auto& each : all) EXPECT_THAT(each->Wait(), IsOkAndHolds(0)) << each->output();
  EXPECT_THAT(server->Wait(), IsOkAndHolds(0)) << server->output();
  return peak;
}

double Account(int workers, int vectors) {
  return vectors * kVector + workers * kAhead + kProcess + kNoise;
}

// A sanitizer has memory of its own.
class ServerMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (getenv("SLUICE_SANITIZED") != nullptr) GTEST_SKIP() << "memory does not count here";
  }
};

TEST_F(ServerMemoryTest, InSyncHoldsOneVectorAndOneOfEachWorker) {
  EXPECT_LT(PeakWith(4, {}), Account(4, 1 + 4));
}

TEST_F(ServerMemoryTest, HoldsNoMoreGradientsThanTheInFlightLimit) {
  EXPECT_LT(PeakWith(17, {"--max-in-flight=0"}), Account(17, 2 + 3));
}

TEST_F(ServerMemoryTest, HoldsAVectorForMomentum) {
  EXPECT_LT(PeakWith(2, {}, {"--momentum=0.9"}), Account(2, 1 + 1 + 2));
}

TEST_F(ServerMemoryTest, InAsyncHoldsFourOlderSnapshotsAtMost) {
  EXPECT_LT(PeakWith(3, {"--mode=async", "--staleness-rules=none"}), Account(3, 2 + 3 + 4));
}

}  // namespace
}  // namespace sluice
