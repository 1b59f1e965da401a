// A real server whose disk, a tmpfs of 8 MiB, fills while its workers train. The server answers no
// push that is not on the disk, and tells the workers why. Reads go on. Training continues by
// itself when the disk has free space again.
//
// All gradients are 1 and steps add them up, so that the parameters are minus the pushes that
// counted.

#include <signal.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/server_lives.h"
#include "tests/testing/process/own_namespaces.h"
#include "tests/testing/process/record_sheet.h"
#include "tests/testing/process/tiny_disk.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kDisk = 8 << 20;
constexpr uint32_t kSmall = 1024;   // elements, so that the journal does not fill it
constexpr uint32_t kLarge = 16384;  // … and so that a hundred steps do
constexpr char kStopped[] = "No space left on device; it takes pushes again when";

class TinyDiskServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { entered_ = EnterOwnNamespaces(OwnNamespaces::kMounts); }

  void SetUp() override {
    if (!entered_.ok()) GTEST_SKIP() << entered_.message();
    auto disk = TinyDisk::Mount(::testing::TempDir() + "tiny_disk", kDisk);
    if (!disk.ok()) GTEST_SKIP() << disk.status().message();
    disk_ = *std::move(disk);
  }

  // Two workers train a model of which a step takes so much of the disk.
  void Train(uint32_t elements) {
    elements_ = elements;
    lives_ = std::make_unique<ServerLives>(
        disk_->path() + "/run",
        // Without rules for stale gradients, each push that counts moves the parameters by
        // exactly 1.
        Words{"--workers=2", "--mode=async", "--staleness-rules=none", "--reduction=sum",
              "--durability=journal", "--checkpoint-every=500", "--keep-checkpoints=1"});
    server_ = lives_->StartAndAwait();
    for (const char* name : {"a", "b"}) {
      workers_.push_back(
          lives_->StartWorker(name, {"--gradient=1", "--steps=1000000000", "--leave-on-sigterm",
                                     absl::StrCat("--elements=", elements)}));
    }
    for (const auto& worker : workers_) {
      ASSERT_THAT(worker->WaitForOutput("(joined) at step"), IsOk());
    }
  }

  void WaitForStop() { EXPECT_THAT(server_->WaitForOutput(kStopped), IsOk()); }

  // A worker that joins now takes the parameters, is refused with its push, and leaves.
  void ExpectReadsGoOnAndPushesAreRefused() {
    const auto connection = ConnectTo(lives_->address());
    const auto welcome = connection->Join(WorkerRequest("late", elements_));
    ASSERT_THAT(welcome, IsOk());
    PullRequest request;
    request.session = welcome->session;
    Values parameters(elements_);
    const auto pulled = connection->StartPull(request)->Read(absl::MakeSpan(parameters));
    ASSERT_THAT(pulled, IsOk());
    EXPECT_GT(pulled->step.value(), 0u);
    EXPECT_THAT(parameters, Each(parameters[0]));
    EXPECT_THAT(StepOf(lives_->address()), IsOkAndHolds(Ge(pulled->step.value())));
    PushHeader header;
    header.session = welcome->session;
    header.sequence = Sequence(1);
    header.step = pulled->step;
    header.incarnation = pulled->incarnation;
    header.samples = 1;
    const Values gradient(elements_, 1);
    EXPECT_THAT(PushThrough(*connection, header, Share(gradient)),
                IsError(Reason::kJournalStopped, HasSubstr(kStopped)));
    EXPECT_THAT(connection->Leave(welcome->session, {}), IsOk());
  }

  // All leave, and what they were told is what there is.
  void ExpectExactEnd() {
    uint64_t counted = 0;
    for (const auto& worker : workers_) {
      worker->Signal(SIGTERM);
      EXPECT_THAT(worker->Wait(), IsOkAndHolds(0)) << worker->output();
      const auto told = worker->WaitForOutput("pushes that counted: ([0-9]+)");
      uint64_t more = 0;
      EXPECT_TRUE(told.ok() && absl::SimpleAtoi(*told, &more)) << told.status();
      counted += more;
    }
    EXPECT_THAT(LinesWith(workers_.back()->output(), "parameters at"),
                ElementsAre(HasSubstr(absl::StrCat(": -", counted, " to -", counted))));
    EXPECT_THAT(server_->Wait(), IsOkAndHolds(0)) << server_->output();
    EXPECT_THAT(Counters(server_->output()),
                AllOf(Not(HasSubstr("unbalanced")), Not(HasSubstr("in progress"))));
    RecordSheet sheet(absl::StrCat("tiny_disk.", Name()));
    sheet.Count("pushes_told_to_count", counted);
    sheet.Text("counters", Counters(server_->output()));
    EXPECT_THAT(sheet.Write(), IsOk());
  }

  // Returns after so many steps more.
  void TrainOn(uint64_t steps) {
    const auto step = StepOf(lives_->address());
    ASSERT_THAT(step, IsOk());
    lives_->WaitForStep(*step + steps);
  }

  static std::string Name() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  static absl::Status entered_;
  uint32_t elements_ = 0;
  std::unique_ptr<TinyDisk> disk_;
  std::unique_ptr<ServerLives> lives_;
  std::unique_ptr<Process> server_;
  std::vector<std::unique_ptr<Process>> workers_;
};

absl::Status TinyDiskServerTest::entered_;

TEST_F(TinyDiskServerTest, TrainingGoesOnWhenWhatFilledTheDiskIsRemoved) {
  Train(kSmall);
  lives_->WaitForStep(20);
  ASSERT_THAT(disk_->Fill(), IsOk());
  WaitForStop();
  ExpectReadsGoOnAndPushesAreRefused();
  ASSERT_THAT(disk_->Free(), IsOk());
  TrainOn(100);
  ExpectExactEnd();
}

TEST_F(TinyDiskServerTest, TrainingGoesOnWhenADiskThatTheJournalFilledIsEnlarged) {
  Train(kLarge);
  WaitForStop();
  ExpectReadsGoOnAndPushesAreRefused();
  ASSERT_THAT(disk_->Resize(100 * kDisk), IsOk());
  TrainOn(100);
  ExpectExactEnd();
}

TEST_F(TinyDiskServerTest, AServerThatIsKilledOnAFullDiskHasKeptWhatItAnswered) {
  Train(kLarge);
  WaitForStop();
  server_->Signal(SIGKILL);
  ASSERT_THAT(server_->Wait(), IsOkAndHolds(-SIGKILL));
  // The disk is still full, so a new server cannot start.
  const auto early = lives_->Start();
  EXPECT_THAT(early->Wait(), IsOkAndHolds(1));
  EXPECT_THAT(early->output(), HasSubstr("No space left on device"));
  ASSERT_THAT(disk_->Resize(100 * kDisk), IsOk());
  server_ = lives_->StartAndAwait();
  TrainOn(100);
  ExpectExactEnd();
}

}  // namespace
}  // namespace sluice
