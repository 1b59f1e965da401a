#include "server/durable/journal/journal.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/journal/journal_format.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/hooked_files.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

constexpr char kDirectory[] = "d";

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    JournalListener listener;
    listener.durable = [this](Step step) { Hear(absl::StrCat("durable ", step.value())); };
    listener.journal_error = [this](const absl::Status& why) { Hear(why.ok() ? "ok" : "error"); };
    listener.fatal = [this](const absl::Status&) { Hear("fatal"); };
    listener.on_span = [this](ServerSpan span, absl::Duration) { spans_.push_back(span); };
    journal_.emplace(files_, kDirectory, Incarnation(1), std::move(listener));
  }

  void Hear(const std::string& news) {
    absl::MutexLock lock(&mu_);
    heard_.push_back(news);
  }

  // What the journal has told, once it has told that much.
  std::vector<std::string> Heard(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return heard_.size() >= count; };
    mu_.Await(absl::Condition(&enough));
    return heard_;
  }

  // All that the journal has told when it has ended.
  std::vector<std::string> HeardInAll() {
    journal_.reset();
    return Heard(0);
  }

  void Append(uint64_t step) {
    StepRecord record;
    record.step = Step(step);
    record.gradients = 1;
    const Values sum = {1, 2, 3};
    journal_->Append(record, sum, {});
  }

  // The steps that a reader finds on the disk, in the order of the segments. −1: damage.
  std::vector<int64_t> StepsOnDisk() {
    std::vector<int64_t> steps;
    const auto segments = SegmentsIn(disk_, kDirectory);
    for (const SegmentName& segment : *segments) {
      const auto file = disk_.Open(absl::StrCat(kDirectory, "/", segment.FileName()));
      JournalReader reader(**file, 3);
      auto next = reader.Next();
      for (; next.ok() && next->has_value(); next = reader.Next()) {
        steps.push_back(static_cast<int64_t>((*next)->record.step.value()));
      }
      if (!next.ok()) steps.push_back(-1);
    }
    return steps;
  }

  // From now on, this happens before each such operation.
  void Before(FileOperation operation, std::function<absl::Status()> act) {
    absl::MutexLock lock(&mu_);
    operation_ = operation;
    act_ = std::move(act);
  }

  FaultyFiles disk_;
  std::vector<ServerSpan> spans_;  // the journal's thread writes it

 private:
  absl::Status Ask(FileOperation operation) {
    std::function<absl::Status()> act;
    {
      absl::MutexLock lock(&mu_);
      if (operation == operation_) act = act_;
    }
    return act == nullptr ? absl::OkStatus() : act();
  }

  absl::Mutex mu_;
  std::vector<std::string> heard_ ABSL_GUARDED_BY(mu_);
  FileOperation operation_ ABSL_GUARDED_BY(mu_) = FileOperation::kCreate;
  std::function<absl::Status()> act_ ABSL_GUARDED_BY(mu_);
  HookedFiles files_{disk_,
                     [this](FileOperation operation, const auto&) { return Ask(operation); }};

 protected:
  absl::optional<Journal> journal_;  // ends first
};

// Fails once, and counts the calls.
class FailsOnce {
 public:
  absl::Status operator()() {
    return ++*calls_ == 1 ? absl::UnavailableError("Input/output error") : absl::OkStatus();
  }
  int calls() const { return *calls_; }

 private:
  std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);
};

TEST_F(JournalTest, ASyncOfItsDirectoryThatFailedIsFinal) {
  FailsOnce sync;
  Before(FileOperation::kSyncDirectory, sync);
  Append(1);
  Heard(1);
  Append(2);
  EXPECT_THAT(HeardInAll(), ElementsAre("fatal"));
  EXPECT_EQ(sync.calls(), 1);
}

TEST_F(JournalTest, ASyncOfStepsThatFailedIsFinal) {
  FailsOnce sync;
  Before(FileOperation::kSync, sync);
  Append(1);
  Heard(1);
  Append(2);
  EXPECT_THAT(HeardInAll(), ElementsAre("fatal"));
  EXPECT_EQ(sync.calls(), 1);
}

TEST_F(JournalTest, AFailedSyncOfTheSegmentBeforeIsFinal) {
  Append(1);
  Heard(1);
  FailsOnce sync;
  Before(FileOperation::kSync, sync);
  journal_->BeginSegment();
  Append(2);
  Heard(2);
  EXPECT_THAT(HeardInAll(), ElementsAre("durable 1", "fatal"));
  EXPECT_EQ(sync.calls(), 1);
  EXPECT_THAT(StepsOnDisk(), ElementsAre(1));
}

TEST_F(JournalTest, TellsHowLongEachSyncOfStepsTakes) {
  for (uint64_t step = 1; step <= 3; ++step) {
    Append(step);
    Heard(step);  // each is synced alone
  }
  HeardInAll();
  EXPECT_THAT(spans_, ElementsAre(ServerSpan::kJournalSync, ServerSpan::kJournalSync,
                                  ServerSpan::kJournalSync));
}

TEST_F(JournalTest, StepsThatAreWrittenTogetherIntoTwoSegmentsAreAllOnTheDisk) {
  absl::Notification syncs;
  absl::Notification go_on;
  Before(FileOperation::kSync, [&] {
    if (!syncs.HasBeenNotified()) {
      syncs.Notify();
      go_on.WaitForNotification();
    }
    return absl::OkStatus();
  });
  Append(1);
  syncs.WaitForNotification();
  Append(2);
  journal_->BeginSegment();
  Append(3);
  go_on.Notify();
  EXPECT_THAT(Heard(2), ElementsAre("durable 1", "durable 3"));
  disk_.LoseUnsynced();
  EXPECT_THAT(StepsOnDisk(), ElementsAre(1, 2, 3));
}

TEST_F(JournalTest, WhatAFailedWriteLeftIsCutOffBeforeTheNextAttempt) {
  Append(1);
  Heard(1);
  disk_.SetRoom(20);
  Append(2);
  EXPECT_THAT(Heard(2), ElementsAre("durable 1", "error"));
  disk_.SetRoom(absl::nullopt);
  EXPECT_THAT(Heard(4), ElementsAre("durable 1", "error", "ok", "durable 2"));
  Append(3);
  Heard(5);
  disk_.LoseUnsynced();
  EXPECT_THAT(StepsOnDisk(), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace sluice
