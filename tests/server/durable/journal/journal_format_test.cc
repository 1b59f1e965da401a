#include "server/durable/journal/journal_format.h"

#include <string>
#include <vector>

#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/format/saved_state.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kPath[] = "d/journal";
constexpr uint64_t kElements = 5;

StepRecord RecordOf(uint64_t step, uint32_t gradients) {
  StepRecord record;
  record.step = Step(step);
  record.incarnation = Incarnation(2);
  record.gradients = gradients;
  record.samples = 96;
  record.terms.consistency.reduction = Reduction::kSum;
  record.terms.learning_rates = {0.1, 0.01};
  record.terms.clip_norm = 0.75;
  record.terms.ordered = OrderedMomentum{true, 1.5};
  record.terms.momentum_divisor = 2.5;
  record.terms.running_means = {{1, 3, 0.5f}};
  record.terms.changed = ShareOptions({{0, SgdOptions{0.1, 0.5}}});
  record.learning_rate = 0.1;
  record.checksum = 0xfedcba9876543210;
  SessionRecord worker;
  worker.worker = "a";
  worker.process_nonce = ProcessNonce(7);
  worker.last_sequence = Sequence(step);
  worker.answers[Sequence(step)] = {PushOutcome(), Step(step - 1)};
  record.contributors = {worker};
  return record;
}

class JournalFormatTest : public ::testing::Test {
 protected:
  void Append(uint64_t step, const Values& sum, uint32_t gradients = 3, char format = '2') {
    JournalFrame frame = FrameOf(EncodeSavedStep(RecordOf(step, gradients)), sum);
    frame.head[7] = format;
    frame.head.replace(24, 8, LittleEndian64(Checksum(frame.head.substr(0, 24))));
    bytes_ += frame.head;
    bytes_.append(reinterpret_cast<const char*>(sum.data()), sum.size() * sizeof(float));
    bytes_ += frame.tail;
    ends_.push_back(bytes_.size());
  }

  // The first record that is read.
  absl::StatusOr<absl::optional<JournaledStep>> First() const {
    FaultyFiles files;
    EXPECT_THAT((*files.Create(kPath))->Append(bytes_), IsOk());
    const auto file = files.Open(kPath);
    return JournalReader(**file, kElements).Next();
  }

  // The steps that are read of these bytes, and −1 if what follows is damaged.
  static std::vector<int64_t> Steps(const std::string& bytes) {
    FaultyFiles files;
    auto writer = files.Create(kPath);
    EXPECT_THAT((*writer)->Append(bytes), IsOk());
    const auto file = files.Open(kPath);
    JournalReader reader(**file, kElements);
    std::vector<int64_t> steps;
    for (;;) {
      const auto next = reader.Next();
      if (!next.ok()) {
        EXPECT_THAT(next, HasCode(absl::StatusCode::kDataLoss, HasSubstr("the record at byte")));
        steps.push_back(-1);
        return steps;
      }
      if (!next->has_value()) return steps;
      steps.push_back(static_cast<int64_t>((*next)->record.step.value()));
    }
  }

  std::string bytes_;
  std::vector<size_t> ends_;  // of records
};

TEST_F(JournalFormatTest, ComesBackWhole) {
  Append(1, {1, 2, 3, 4, 5});
  const auto next = First();
  ASSERT_THAT(next, IsOk());
  const JournaledStep& step = **next;
  EXPECT_THAT(ValuesOf(step.sum.span()), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(step.record.incarnation, Incarnation(2));
  EXPECT_EQ(step.record.gradients, 3u);
  EXPECT_EQ(step.record.samples, 96u);
  EXPECT_TRUE(step.complete);
  EXPECT_EQ(step.record.terms.consistency.reduction, Reduction::kSum);
  EXPECT_THAT(step.record.terms.learning_rates, ElementsAre(0.1, 0.01));
  EXPECT_EQ(step.record.terms.clip_norm, 0.75);
  ASSERT_TRUE(step.record.terms.ordered.has_value());
  EXPECT_TRUE(step.record.terms.ordered->decays);
  EXPECT_EQ(step.record.terms.ordered->lateness, 1.5);
  EXPECT_EQ(step.record.terms.momentum_divisor, 2.5);
  EXPECT_THAT(step.record.terms.running_means, ElementsAre(RunningMean{1, 3, 0.5f}));
  ASSERT_NE(step.record.terms.changed, nullptr);
  EXPECT_EQ(std::get<SgdOptions>(step.record.terms.changed->groups().at(0)).momentum, 0.5);
  EXPECT_EQ(step.record.checksum, 0xfedcba9876543210);
  EXPECT_EQ(step.record.learning_rate, 0.1);
  ASSERT_THAT(step.record.contributors, SizeIs(1));
  EXPECT_EQ(step.record.contributors[0].worker, "a");
  EXPECT_EQ(step.record.contributors[0].last_sequence, Sequence(1));
}

TEST_F(JournalFormatTest, AStepWithoutGradientsHasNoSum) {
  Append(1, {}, 0);
  Append(2, {1, 2, 3, 4, 5});
  EXPECT_THAT(Steps(bytes_), ElementsAre(1, 2));
}

TEST_F(JournalFormatTest, WhereverItIsCutTheRecordsBeforeAreReadAndNoOther) {
  for (uint64_t step : {1, 2, 3}) Append(step, {1, 2, 3, 4, 5});
  for (size_t size = 0; size <= bytes_.size(); ++size) {
    std::vector<int64_t> expected;
    for (size_t i = 0; i < ends_.size() && ends_[i] <= size; ++i) expected.push_back(i + 1);
    const bool at_an_end = size == 0 || (!expected.empty() && ends_[expected.size() - 1] == size);
    if (!at_an_end) expected.push_back(-1);
    EXPECT_EQ(Steps(bytes_.substr(0, size)), expected) << size << " bytes";
  }
}

TEST_F(JournalFormatTest, WhicheverBitFlipsItsRecordIsNotRead) {
  for (uint64_t step : {1, 2}) Append(step, {1, 2, 3, 4, 5});
  for (size_t bit = 0; bit < bytes_.size() * 8; ++bit) {
    std::string flipped = bytes_;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const std::vector<int64_t> first = {-1};
    const std::vector<int64_t> second = {1, -1};
    EXPECT_EQ(Steps(flipped), bit / 8 < ends_[0] ? first : second) << "bit " << bit;
  }
}

TEST_F(JournalFormatTest, ARecordOfFormat1IsReadAndIsNotComplete) {
  Append(1, {1, 2, 3, 4, 5}, 3, '1');
  const auto next = First();
  ASSERT_THAT(next, IsOk());
  EXPECT_EQ((*next)->record.step, Step(1));
  EXPECT_FALSE((*next)->complete);
}

TEST_F(JournalFormatTest, AnUnknownFormatIsNotTakenForDamage) {
  Append(1, {1, 2, 3, 4, 5}, 3, '4');
  EXPECT_THAT(First(),
              HasCode(absl::StatusCode::kFailedPrecondition,
                      AllOf(HasSubstr("byte 0 has the format \"4\""), HasSubstr("1 to 3"))));
}

TEST_F(JournalFormatTest, GradientsWithoutASumAreRefused) {
  Append(1, {});
  EXPECT_THAT(Steps(bytes_), ElementsAre(-1));
}

TEST_F(JournalFormatTest, ASumOfAnotherModelIsRefused) {
  Append(1, {1, 2, 3});
  EXPECT_THAT(Steps(bytes_), ElementsAre(-1));
}

}  // namespace
}  // namespace sluice
