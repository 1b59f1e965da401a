// Jobs with several servers under mpirun: they account for each push, and end when a server is
// lost.

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/easy_data.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kWorkers = 3;
// The log line of a server at its start. It begins with the number of the main thread, which is
// that of the process.
constexpr char kFirstStarts[] = " ([0-9]+) server.cc:[0-9]+] job [0-9a-f]+: listening on";
constexpr char kSecondStarts[] = " ([0-9]+) replica_server.cc:[0-9]+] server 1 of 3: listening on";

// Ranks without LibTorch, which takes a second to load: three servers, and workers that push until
// `steps`.
std::unique_ptr<Process> LaunchPushing(int steps, const Words& flags) {
  return Mpirun({{3 + kWorkers,
                  With({RunfilePath("tests/testing/process/pushing_worker_program"), "--servers=3",
                        "--gradient=1", "--elements=1000", absl::StrCat("--steps=", steps)},
                       flags)}});
}

std::string OutputOfPushing(const Words& flags) {
  const auto job = LaunchPushing(12, flags);
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  return job->output();
}

class SeveralServersTest : public ::testing::Test {
 protected:
  Words Train(const Words& flags) const {
    return With(
        {RunfilePath("worker/sluice_train"), "--model=mlp", "--epochs=1000000", "--batch-size=16",
         "--seed=7", "--progress=off", "--no-test", "--data-dir=" + data_},
        flags);
  }

  // Of a job that ends in good order after 12 steps.
  std::string Checksum(int servers, const Words& flags) const {
    const Words steps = {"--max-steps=12", absl::StrCat("--servers=", servers)};
    const auto job = Mpirun({{servers + kWorkers, Train(With(steps, flags))}});
    EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
    return ClosingRows(job->output())["parameters' CRC-32"];
  }

  const std::string data_ = WriteEasyData(TestPath("data"), 640, 100);
};

TEST_F(SeveralServersTest, AccountForEachPushInOtherModes) {
  for (const char* mode : {"--mode=async", "--mode=ssp"}) {
    const std::string output = OutputOfPushing({mode});
    EXPECT_THAT(Counters(output), AllOf(HasSubstr(" received: "), Not(HasSubstr("unbalanced")),
                                        Not(HasSubstr("rejected")), Not(HasSubstr("in progress"))))
        << mode << ": " << output;
  }
}

TEST_F(SeveralServersTest, TellTheChecksumOfAllParametersAsOneServerDoes) {
  const std::string alone = Checksum(1, {"--momentum=0.9"});
  EXPECT_THAT(alone, SizeIs(8));
  EXPECT_EQ(Checksum(3, {"--momentum=0.9"}), alone);
}

// Units of 256, which are the blocks of int8.
TEST_F(SeveralServersTest, TrainWithFewerBytesToTheBitsOfOneServer) {
  const Words encoded = {"--push-encoding=int8", "--pull-encoding=bfloat16"};
  const std::string alone = Checksum(1, encoded);
  EXPECT_THAT(alone, SizeIs(8));
  EXPECT_NE(Checksum(1, {}), alone);
  EXPECT_EQ(Checksum(3, With(encoded, {"--overlap"})), alone);
}

TEST_F(SeveralServersTest, AverageParametersAfterLocalStepsAsOneServerDoes) {
  const Words local = {"--local-steps=2", "--push-encoding=float16"};
  const std::string alone = Checksum(1, local);
  EXPECT_THAT(alone, SizeIs(8));
  EXPECT_EQ(Checksum(3, local), alone);
}

TEST_F(SeveralServersTest, MeetOnTcpWithTheLaunchsCertificates) {
  const std::string output = OutputOfPushing({"--listen=127.0.0.1:0"});
  EXPECT_EQ(Counters(output), "12 steps, 36 received: 36 accepted") << output;
  EXPECT_THAT(LinesWith(output, "listening on 127.0.0.1:"), SizeIs(3)) << output;
  EXPECT_THAT(LinesWith(output, ", with mutual TLS"), SizeIs(3)) << output;
}

TEST_F(SeveralServersTest, MayBeAProgramOfTheirOwn) {
  const auto job =
      Mpirun({{2, ServerProgram({"--servers=2"})}, {kWorkers, Train({"--max-steps=12"})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  EXPECT_EQ(Counters(job->output()), "12 steps, 36 received: 36 accepted") << job->output();
}

TEST_F(SeveralServersTest, EndTheirLaunchWhenOneIsKilled) {
  for (const char* starts : {kFirstStarts, kSecondStarts}) {
    const auto job = LaunchPushing(1000000000, {});
    pid_t server = 0;
    const auto pid = job->WaitForOutput(starts);
    ASSERT_THAT(pid, IsOk());
    ASSERT_TRUE(absl::SimpleAtoi(*pid, &server));
    const auto address = job->WaitForOutput("job [0-9a-f]+: listening on (unix:[^ ]+)");
    ASSERT_THAT(address, IsOk());
    ASSERT_THAT(WaitForAccepted(*address, 10), IsOk());
    ASSERT_EQ(kill(server, SIGKILL), 0);
    EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(Ne(0))) << job->output();
  }
}

}  // namespace
}  // namespace sluice
