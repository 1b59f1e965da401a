// Somebody sets the wall clock while a job trains, by an hour forward and backward: nobody notices.
// Leases, waits and deadlines are times of the monotonic clock.

#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/process/wall_clock.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::IsEmpty;

// Starts a program with this clock.
std::unique_ptr<Process> StartWith(const WallClock& clock, const Words& argv) {
  auto process = Process::Start(argv, clock.environment());
  EXPECT_THAT(process, IsOk());
  return *std::move(process);
}

// What `date` says, in seconds.
int64_t DateOf(const WallClock& clock) {
  const auto date = StartWith(clock, {"date", "+%s"});
  EXPECT_THAT(date->Wait(), IsOkAndHolds(0)) << date->output();
  int64_t seconds = 0;
  EXPECT_TRUE(absl::SimpleAtoi(date->output(), &seconds)) << date->output();
  return seconds;
}

TEST(WallClockTest, ShowsWhatTheTestHasSet) {
  WallClock clock(TestPath("clock"));
  const int64_t before = absl::ToUnixSeconds(absl::Now());
  for (const int64_t ahead : {3600, -3600, 0}) {
    clock.Set(absl::Seconds(ahead));
    const int64_t date = DateOf(clock);
    const int64_t after = absl::ToUnixSeconds(absl::Now());
    EXPECT_GE(date, before + ahead);
    EXPECT_LE(date, after + ahead);
  }
}

// A server and two workers, of which each step waits for both, with a clock of their own. Without
// one of them a step would give other parameters.
class ClockJob {
 public:
  explicit ClockJob(const std::string& name) : clock_(TestPath(name)) {
    server_ = StartWith(clock_, {RunfilePath("server/sluice_server"), "--listen=127.0.0.1:0",
                                 "--workers=2", "--lease=120", "--max-step-wait=120",
                                 "--on-max-step-wait=evict", "--log-step-wait=0.2"});
    address_ = server_->WaitForOutput("listening on ([^ ]+)").value_or("");
    for (int i = 0; i < 2; ++i) {
      workers_.push_back(StartWith(
          clock_, {RunfilePath("tests/testing/process/pushing_worker_program"), "--steps=500",
                   "--batch-time=0.01", absl::StrCat("--gradient=", 1 + 2 * i),
                   absl::StrCat("--name=w", i), absl::StrCat("--server=", address_)}));
    }
  }

  // Sets the clock while the server waits for a worker that is stopped, and the other waits for the
  // server. The server looks at its leases and waits before the worker may go on.
  void SetClock(absl::Duration ahead) {
    ASSERT_THAT(WaitForAccepted(address_, trained_ += 20), IsOk());
    workers_[1]->Signal(SIGSTOP);
    AwaitLinesOfWait(1);
    clock_.Set(ahead);
    AwaitLinesOfWait(2);  // the first may have been written before
    workers_[1]->Signal(SIGCONT);
    ASSERT_THAT(WaitForAccepted(address_, trained_ += 20), IsOk());
  }

  // Waits for the end; returns the rows of the closing table.
  std::map<std::string, std::string> End() {
    for (const auto& worker : workers_) {
      EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(0)) << worker->output();
      EXPECT_THAT(LinesWith(worker->output(), "joins again"), IsEmpty());
    }
    EXPECT_THAT(server_->Wait(kJob), IsOkAndHolds(0)) << server_->output();
    EXPECT_EQ(Counters(server_->output()), "500 steps, 1000 received: 1000 accepted");
    return ClosingRows(server_->output());
  }

 private:
  // Reads so many further lines that say for whom the server waits.
  void AwaitLinesOfWait(size_t count) {
    const auto lines = [this] { return LinesWith(server_->output(), " has waited ").size(); };
    const size_t enough = lines() + count;
    const absl::Time end = absl::Now() + Process::kPatience;
    while (lines() < enough && absl::Now() < end) {
      ASSERT_THAT(server_->Wait(absl::Milliseconds(20)),
                  HasCode(absl::StatusCode::kDeadlineExceeded, _));
    }
    ASSERT_GE(lines(), enough) << server_->output();
  }

  WallClock clock_;
  std::string address_;
  uint64_t trained_ = 0;  // pushes that were waited for
  std::unique_ptr<Process> server_;
  std::vector<std::unique_ptr<Process>> workers_;
};

TEST(SetClockTest, AnHourForwardAndBackwardChangesNothing) {
  ClockJob job("set");
  job.SetClock(absl::Hours(1));
  job.SetClock(-absl::Hours(1));
  job.SetClock(absl::ZeroDuration());
  const std::string crc = job.End()["parameters' CRC-32"];
  EXPECT_FALSE(crc.empty());
  ClockJob undisturbed("true");
  EXPECT_EQ(undisturbed.End()["parameters' CRC-32"], crc);
}

}  // namespace
}  // namespace sluice
