// The journals of several servers in one directory: what each can repeat, and what all of them can.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/durable/stripe_directory.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr uint32_t kServers = 3;
constexpr uint64_t kElements = 1000;

class StripedJournalTest : public ::testing::Test {
 protected:
  StripedJournalTest() {
    options_.directory = absl::StrCat(::testing::TempDir(), "journals");
    options_.durability = Durability::kJournal;
    options_.servers = kServers;
  }

  // The journal of server 1, whose sums have that many elements.
  uint64_t StripeSize() const { return Stripes(kElements, kServers).SizeOf(1); }

  std::unique_ptr<StripeDirectory> OpenOther() {
    auto directory =
        StripeDirectory::Open(files_, options_.directory, {1, kServers}, options_.durability);
    EXPECT_THAT(directory, IsOk());
    return *std::move(directory);
  }

  // Server 1 writes these steps as that incarnation, each with a sum of its number.
  void Write(uint64_t incarnation, const std::vector<uint64_t>& steps,
             const std::vector<uint64_t>& segments = {}) {
    const auto directory = OpenOther();
    const auto journal =
        directory->StartJournal(Incarnation(incarnation), [this](const JournalReport& report) {
          absl::MutexLock lock(&mu_);
          durable_ = std::max(durable_, report.durable);
        });
    for (const uint64_t step : steps) {
      StepRecord record;
      record.step = Step(step);
      record.gradients = 1;
      record.checksum = step + 100;
      record.incarnation = Incarnation(step);
      journal->Append(record, std::vector<float>(StripeSize(), static_cast<float>(step)), {});
      for (const uint64_t begun : segments) {
        if (begun == step) journal->BeginSegment();
      }
    }
  }

  // The steps that server 1 can repeat after the checkpoint of incarnation 1 and `step`.
  std::vector<uint64_t> Repeatable(uint64_t step, const IncarnationBegins& begins = {}) {
    LoadCheckpoint load;
    load.source.incarnation = Incarnation(1);
    load.source.step = Step(step);
    load.begins = begins;
    const auto directory = OpenOther();
    const auto last = directory->OpenJournal(load, Layout(ParametersOnly(kElements)));
    EXPECT_THAT(last, IsOk());
    std::vector<uint64_t> steps;
    for (uint64_t next = step + 1; next <= last->value(); ++next) {
      const auto found = directory->NextJournaled();
      EXPECT_THAT(found, IsOk());
      EXPECT_EQ(found->checksum, found->step.value() + 100);
      EXPECT_EQ(found->incarnation, Incarnation(found->step.value()));
      EXPECT_THAT(found->sum.span(), Each(static_cast<float>(found->step.value())));
      EXPECT_EQ(found->sum.size(), StripeSize());
      steps.push_back(found->step.value());
    }
    EXPECT_TRUE(absl::IsDataLoss(directory->NextJournaled().status()));
    return steps;
  }

  std::vector<std::string> Files() { return *files_.List(options_.directory); }

  FaultyFiles files_;
  DurableOptions options_;
  absl::Mutex mu_;
  Step durable_;
};

TEST_F(StripedJournalTest, HasTheStepsAfterACheckpoint) {
  Write(1, {3, 4, 5, 6});
  EXPECT_EQ(durable_, Step(6));
  EXPECT_THAT(Repeatable(4), ElementsAre(5, 6));
  EXPECT_THAT(Repeatable(6), ElementsAre());
}

// A step that only this server has made durable was not part of the next incarnation.
TEST_F(StripedJournalTest, LeavesOutTheStepsThatTheNextIncarnationDidNotFindEverywhere) {
  Write(1, {3, 4, 5, 6});
  Write(2, {5, 6, 7});
  EXPECT_THAT(Repeatable(2, {{Incarnation(2), Step(4)}}), ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(Files(), Contains("journal-000002-000000000004-1-of-3"));
}

TEST_F(StripedJournalTest, IsNotThatOfAnotherNumberOfServers) {
  Write(1, {3, 4});
  auto other = StripeDirectory::Open(files_, options_.directory, {1, 2}, options_.durability);
  ASSERT_THAT(other, IsOk());
  LoadCheckpoint load;
  load.source.incarnation = Incarnation(1);
  load.source.step = Step(2);
  EXPECT_THAT((*other)->OpenJournal(load, Layout(ParametersOnly(kElements))),
              IsOkAndHolds(Step(2)));
}

TEST_F(StripedJournalTest, LosesItsOldSegmentsWithTheCheckpoints) {
  Write(1, {1, 2, 3, 4, 5, 6}, /*segments=*/{2, 4});
  OpenOther()->Keep({{{Incarnation(1), Step(4)}}});
  EXPECT_THAT(Files(), Contains("journal-000001-000000000004-1-of-3"));
  EXPECT_THAT(Files(), Not(Contains("journal-000001-000000000002-1-of-3")));
  EXPECT_THAT(Repeatable(4), ElementsAre(5, 6));
}

TEST_F(StripedJournalTest, IsNotWrittenWithoutTheFlag) {
  options_.durability = Durability::kMemory;
  EXPECT_EQ(OpenOther()->StartJournal(Incarnation(1), [](const JournalReport&) {}), nullptr);
}

TEST_F(StripedJournalTest, SaysThatTheDiskIsFullAndWhenItIsNot) {
  const auto directory = OpenOther();
  files_.SetRoom(0);
  std::vector<std::string> told;
  {
    const auto journal = directory->StartJournal(Incarnation(1), [&](const JournalReport& report) {
      absl::MutexLock lock(&mu_);
      told.push_back(std::string(report.stopped.message()));
      if (!report.stopped.ok()) files_.SetRoom(absl::nullopt);
      durable_ = report.durable;
    });
    StepRecord record;
    record.step = Step(1);
    journal->Append(record, {}, {});
    absl::MutexLock lock(&mu_);
    const auto written = [this] { return durable_ == Step(1); };
    mu_.Await(absl::Condition(&written));
  }
  EXPECT_THAT(told, ElementsAre(HasSubstr("No space left"), "", ""));
}

// ---- The first server ----

// The first server's directory: its checkpoint is of step 2, and its journal has steps 3 to 6.
class FirstJournalTest : public StripedJournalTest {
 protected:
  FirstJournalTest() {
    const auto directory = Open();
    EXPECT_THAT(directory->BeginIncarnation(Step(2), "job"), IsOk());
    StepJournal* const journal = directory->StartJournal(Listener());
    for (const uint64_t step : {3, 4, 5, 6}) {
      StepRecord record;
      record.step = Step(step);
      record.gradients = 1;
      record.terms.learning_rates = {1};
      journal->Append(record, std::vector<float>(Stripes(kElements, kServers).SizeOf(0), 1), {});
    }
    directory->FlushJournal();
  }

  std::unique_ptr<DurableDirectory> Open(uint32_t servers = kServers) {
    options_.servers = servers;
    auto directory = DurableDirectory::Open(options_, files_);
    EXPECT_THAT(directory, IsOk());
    return *std::move(directory);
  }

  JournalListener Listener() {
    JournalListener listener;
    listener.durable = [this](Step step) {
      absl::MutexLock lock(&mu_);
      told_.push_back(step.value());
    };
    listener.journal_error = [this](const absl::Status& why) {
      absl::MutexLock lock(&mu_);
      errors_.push_back(std::string(why.message()));
    };
    return listener;
  }

  ShardCheckpoint Checkpoint() const {
    return KnownCheckpoint({Incarnation(1), Step(2)},
                           std::make_shared<const Layout>(ParametersOnly(kElements)));
  }

  absl::StatusOr<Step> Replay(DurableDirectory& directory, uint64_t others) {
    return directory.Replay(Checkpoint(), LeastJournaled{Step(others), 2},
                            [](const JournaledStep&) { return absl::OkStatus(); });
  }

  std::vector<uint64_t> told_;
  std::vector<std::string> errors_;
};

TEST_F(FirstJournalTest, RepeatsNoStepThatAnotherServerLacks) {
  const auto directory = Open();
  EXPECT_THAT(Replay(*directory, 4), IsOkAndHolds(Step(4)));
  EXPECT_THAT(Replay(*directory, 6), IsOkAndHolds(Step(6)));
  EXPECT_THAT(Replay(*directory, 9), IsOkAndHolds(Step(6)));
}

TEST_F(FirstJournalTest, IsOfNoUseToAnotherNumberOfServers) {
  const auto directory = Open(2);
  EXPECT_THAT(Replay(*directory, 6),
              HasCode(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("has steps after step 2, which 3 servers have made, and only as "
                                "many can repeat them, not 2")));
}

// They tell which steps of the older incarnation count, if the newest checkpoint is lost.
TEST_F(FirstJournalTest, KnowsTheBeginsOfAllIncarnationsAfterTheOldestCheckpoint) {
  const auto save = [](DurableDirectory& directory, uint64_t incarnation, uint64_t step) {
    absl::Notification saved;
    directory.saver().Save(std::make_shared<const ShardCheckpoint>(KnownCheckpoint(
                               {Incarnation(incarnation), Step(step)},
                               std::make_shared<const Layout>(ParametersOnly(kElements)))),
                           [&saved](const auto&) { saved.Notify(); });
    saved.WaitForNotification();
  };
  const std::string newest = options_.directory + "/checkpoint-000002-000000000004.safetensors";
  {
    const auto directory = Open();
    save(*directory, 1, 2);
    ASSERT_THAT(directory->BeginIncarnation(Step(4), "job"), IsOk());
    ASSERT_EQ(directory->incarnation(), Incarnation(2));
    save(*directory, 2, 4);
  }
  EXPECT_EQ(Open()->restored()->step, Step(4));
  files_.BytesOf(newest).pop_back();
  EXPECT_EQ(Open()->restored()->step, Step(2));
  EXPECT_THAT(Open()->earlier_incarnations(), ElementsAre(Pair(Incarnation(2), Step(4))));
  ASSERT_THAT(files_.Remove(newest), IsOk());
  EXPECT_THAT(Open()->earlier_incarnations(), ElementsAre(Pair(Incarnation(2), Step(4))));
  EXPECT_EQ(Open()->incarnation(), Incarnation(3));
}

TEST_F(FirstJournalTest, TellsAStepWhenItIsDurableOnAllServers) {
  const auto directory = Open();
  ASSERT_THAT(directory->BeginIncarnation(Step(6), "job"), IsOk());
  StepJournal* const journal = directory->StartJournal(Listener());
  StepRecord record;
  record.step = Step(7);
  journal->Append(record, {}, {});
  directory->FlushJournal();
  directory->NoteJournal(1, Step(8), absl::OkStatus());
  EXPECT_THAT(told_, ElementsAre());
  directory->NoteJournal(2, Step(7), absl::OkStatus());
  EXPECT_THAT(told_, ElementsAre());  // without a checkpoint no step is durable
  absl::Notification saved;
  directory->saver().Save(std::make_shared<const ShardCheckpoint>(Checkpoint()),
                          [&saved](const auto&) { saved.Notify(); });
  saved.WaitForNotification();
  EXPECT_THAT(told_, ElementsAre(7));
  directory->NoteJournal(1, Step(9), absl::OkStatus());
  directory->NoteJournal(2, Step(8), absl::OkStatus());
  EXPECT_THAT(told_, ElementsAre(7));  // this server has step 7
}

TEST_F(FirstJournalTest, TellsOfTheFirstServerThatCannotWriteUntilAllCan) {
  const auto directory = Open();
  ASSERT_THAT(directory->BeginIncarnation(Step(6), "job"), IsOk());
  directory->StartJournal(Listener());
  directory->NoteJournal(2, Step(), absl::ResourceExhaustedError("2 is full"));
  directory->NoteJournal(1, Step(), absl::ResourceExhaustedError("1 is full"));
  directory->NoteJournal(1, Step(7), absl::OkStatus());
  directory->NoteJournal(2, Step(7), absl::OkStatus());
  EXPECT_THAT(errors_, ElementsAre("2 is full", "1 is full", "2 is full", ""));
}

}  // namespace
}  // namespace sluice
