#include "server/durable/checkpoint/checkpoint_format.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "common/encoding/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/format/saved_state.h"
#include "tests/testing/durable/checkpoints.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kPath[] = "d/checkpoint";

class CheckpointFormatTest : public ::testing::Test {
 protected:
  CheckpointFormatTest() { Write(*TrainedCheckpoint()); }

  void Write(const ShardCheckpoint& checkpoint) {
    auto file = files_.Create(kPath);
    ASSERT_THAT(file, IsOk());
    EXPECT_THAT(WriteCheckpoint(checkpoint, **file), IsOk());
  }

  absl::StatusOr<ShardCheckpoint> Read() { return ReadCheckpoint(**files_.Open(kPath)); }
  std::string& bytes() { return files_.BytesOf(kPath); }

  FaultyFiles files_;
};

TEST_F(CheckpointFormatTest, ComesBackWhole) {
  const auto checkpoint = TrainedCheckpoint();
  const auto read = Read();
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->job_id, checkpoint->job_id);
  EXPECT_EQ(read->step, Step(2));
  EXPECT_EQ(read->parameters->step, Step(2));
  EXPECT_EQ(AllValues(*read), AllValues(*checkpoint));
  EXPECT_EQ(read->optimizer_steps, 2u);
  EXPECT_EQ(read->layout->ranges(), checkpoint->layout->ranges());
  EXPECT_EQ(std::get<AdamOptions>(read->optimizer.options).learning_rate, 0.5);
  EXPECT_TRUE(read->consistency == checkpoint->consistency);
  ASSERT_THAT(read->slots, SizeIs(2));
  EXPECT_EQ(read->slots[0].name, checkpoint->slots[0].name);
  ASSERT_THAT(read->workers, SizeIs(2));
  const SessionRecord& a = read->workers[0];
  EXPECT_EQ(a.worker, "a");
  EXPECT_EQ(a.presence, Presence::kLost);
  EXPECT_EQ(a.process_nonce, checkpoint->workers[0].process_nonce);
  EXPECT_EQ(a.last_sequence, Sequence(2));
  ASSERT_THAT(a.answers, SizeIs(2));
  EXPECT_EQ(a.answers.at(Sequence(2)).outcome.disposition, Disposition::kAccepted);
}

// A new version must write the bytes that an older one wrote, unless it saves something more.
TEST_F(CheckpointFormatTest, WritesTheSameBytesAsEver) {
  ShardCheckpoint checkpoint = CheckpointAt(5);
  for (const std::string name : {"m", "v"}) {
    checkpoint.slots.push_back({name, FloatBuffer(1)});
    checkpoint.slots.back().values.span()[0] = 0.5F;
  }
  Write(checkpoint);
  EXPECT_EQ(Checksum(bytes()), 14910474764632337086u);
}

TEST_F(CheckpointFormatTest, TellsHowMuchItHasRead) {
  std::vector<uint64_t> told;
  EXPECT_THAT(ReadCheckpoint(**files_.Open(kPath), [&](uint64_t bytes) { told.push_back(bytes); }),
              IsOk());
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), bytes().size());
}

TEST_F(CheckpointFormatTest, KeepsEarlierLivesAndTheOperatorsRate) {
  ShardCheckpoint checkpoint = std::move(*Read());
  checkpoint.incarnations = IncarnationHistory(Incarnation(3));
  checkpoint.incarnations.AddAncestor(Incarnation(1), Step(1));
  checkpoint.learning_rate = 0.1;
  checkpoint.forgot_workers = true;
  checkpoint.workers[0].replaced = {ProcessNonce(7), ProcessNonce(~uint64_t{0})};
  checkpoint.ended = true;
  checkpoint.launched_workers = 3;
  checkpoint.earlier_launches = {{7, 0}, {1, 2, 3, 4}};
  checkpoint.workers[0].pushes_in_earlier_launches = 9;
  checkpoint.workers[0].presence = Presence::kLeft;
  Write(checkpoint);
  const auto read = Read();
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->incarnations.current(), Incarnation(3));
  EXPECT_THAT(read->incarnations.ancestors(), ElementsAre(Pair(Incarnation(1), Step(1))));
  EXPECT_EQ(read->learning_rate, 0.1);
  EXPECT_TRUE(read->forgot_workers);
  EXPECT_EQ(read->workers[0].replaced, checkpoint.workers[0].replaced);
  EXPECT_TRUE(read->ended);
  EXPECT_EQ(read->launched_workers, 3u);
  EXPECT_EQ(read->earlier_launches, checkpoint.earlier_launches);
  EXPECT_EQ(read->workers[0].pushes_in_earlier_launches, 9u);
  EXPECT_EQ(read->workers[0].presence, Presence::kLeft);
}

TEST_F(CheckpointFormatTest, NumbersOfPushesThatNoWorkerMakesAreRefused) {
  ShardCheckpoint checkpoint = std::move(*Read());
  checkpoint.earlier_launches = {{7, kMostPushes}};
  EXPECT_THAT(DecodeSavedState(EncodeSavedState(checkpoint)), IsOk());
  checkpoint.earlier_launches = {{7}, {kMostPushes + 1}};
  EXPECT_THAT(DecodeSavedState(EncodeSavedState(checkpoint)),
              HasCode(absl::StatusCode::kDataLoss,
                      HasSubstr("earlier_launches has 1099511627777, expected at most")));
  checkpoint.earlier_launches.clear();
  checkpoint.workers[0].stale = ~uint64_t{0};
  EXPECT_THAT(DecodeSavedState(EncodeSavedState(checkpoint)),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("a worker's record has 18446744")));
}

TEST_F(CheckpointFormatTest, KeepsWhatIsKnownOfTheLosses) {
  ShardCheckpoint checkpoint = std::move(*Read());
  EXPECT_EQ(checkpoint.losses.has_value(), false);
  EXPECT_EQ(checkpoint.suspect_since, absl::nullopt);
  checkpoint.losses = LossMemory{50, 2.3, 0.1, 0.25, 0.5, -0.375, true};
  checkpoint.suspect_since = Step(0);
  Write(checkpoint);
  const auto read = Read();
  ASSERT_THAT(read, IsOk());
  ASSERT_TRUE(read->losses.has_value());
  EXPECT_EQ(read->losses->very_first, 50);
  EXPECT_EQ(read->losses->first, 2.3);
  EXPECT_EQ(read->losses->margin, 0.1);
  EXPECT_EQ(read->losses->slack, 0.25);
  EXPECT_EQ(read->losses->smoothed, 0.5);
  EXPECT_EQ(read->losses->best, -0.375);
  EXPECT_TRUE(read->losses->trained);
  EXPECT_EQ(read->suspect_since, Step(0));
}

TEST_F(CheckpointFormatTest, LossesThatNoServerWroteAreRefused) {
  ShardCheckpoint checkpoint = std::move(*Read());
  checkpoint.losses = LossMemory{1, HUGE_VAL, 0, 0, 1, 1};
  EXPECT_THAT(DecodeSavedState(EncodeSavedState(checkpoint)),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("in losses there is inf")));
  checkpoint.losses = LossMemory{1, 1, 0, -1, 1, 1};
  EXPECT_THAT(DecodeSavedState(EncodeSavedState(checkpoint)),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("losses.slack -1")));
}

TEST_F(CheckpointFormatTest, OneThatCouldNotBeReadAgainIsNotWritten) {
  const auto checkpoint = TrainedCheckpoint();
  auto file = files_.Create("d/other");
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(WriteCheckpoint(*checkpoint, **file, /*most_header=*/1000),
              HasCode(absl::StatusCode::kResourceExhausted,
                      HasSubstr("no more than 1000 can be read again; give the model's tensors")));
  EXPECT_EQ(files_.BytesOf("d/other"), "");
}

TEST_F(CheckpointFormatTest, WhicheverBitFlipsIsNoticed) {
  for (size_t bit = 0; bit < bytes().size() * 8; ++bit) {
    char& byte = bytes()[bit / 8];
    byte = static_cast<char>(byte ^ (1 << bit % 8));
    EXPECT_THAT(Read(), HasCode(absl::StatusCode::kDataLoss, ::testing::_)) << "bit " << bit;
    byte = static_cast<char>(byte ^ (1 << bit % 8));
  }
  EXPECT_THAT(Read(), IsOk());
}

TEST_F(CheckpointFormatTest, WhereverItIsCutIsNoticed) {
  const std::string whole = bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    bytes() = whole.substr(0, size);
    EXPECT_THAT(Read(), HasCode(absl::StatusCode::kDataLoss, ::testing::_)) << size << " bytes";
  }
}

TEST_F(CheckpointFormatTest, WhatFollowsItIsNoticed) {
  bytes() += '\0';
  EXPECT_THAT(Read(), HasCode(absl::StatusCode::kDataLoss, HasSubstr("the tensors end at")));
}

TEST_F(CheckpointFormatTest, TensorsOfAnotherModelAreRefused) {
  const size_t name = bytes().find("\"mean\":");
  ASSERT_NE(name, std::string::npos);
  bytes().replace(name, 6, "\"moon\"");
  EXPECT_THAT(Read(), HasCode(absl::StatusCode::kDataLoss, HasSubstr("not those of the layout")));
}

}  // namespace
}  // namespace sluice
