// Compares tables with TensorFlow's SparseConditionalAccumulator (rules P), and its dense rules (C)
// for rows. Where Sluice differs on purpose, the test's name says Difference and the test asserts
// what Sluice does; README.md lists what TensorFlow does.
//
// A take(n) is a step of quorum n in bounded mode with max_staleness 0. The optimizer is SGD with
// learning rate 1 and all rows begin with 0, so a step subtracts the reduced gradient.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/wire/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kWidth = 2;

// Rows of a gradient, in the order in which they are sent.
struct Rows {
  std::vector<RowId> ids;
  Values values;
};

Rows RowsOf(const std::map<RowId, Values>& rows) {
  Rows sent;
  for (const auto& [id, row] : rows) {
    sent.ids.push_back(id);
    sent.values.insert(sent.values.end(), row.begin(), row.end());
  }
  return sent;
}

class SparseAccumulatorTest : public ::testing::Test {
 protected:
  // Of take(n), which worker "w" feeds. The vector has one element, for which all gradients are 0.
  void Accumulator(uint32_t take, Reduction reduction = Reduction::kMean,
                   RowDivisor divisor = RowDivisor::kRowContributors) {
    ShardOptions options = Bounded(take, 0);
    options.consistency.reduction = reduction;
    shard_ = std::make_unique<Shard>(options, clock_);
    TableSpec table;
    table.name = "emb";
    table.width = kWidth;
    table.divisor = divisor;
    JoinRequest request;
    request.worker = "w";
    request.process_nonce = ProcessNonce(1);
    request.layout = *Layout::Create(ParametersOnly(1).ranges(), {table});
    request.optimizer.options = PlainSgd();
    session_ = shard_->Join(request, nullptr)->session;
    auto offer = std::move(shard_->store().BeginInitialize(session_)->parameters);
    ASSERT_THAT(offer->Add(ChunkOf(0, {0})), IsOk());
    ASSERT_THAT(FinishOffer(*shard_, std::move(offer)).status(), IsOk());
  }

  absl::StatusOr<PushOutcome> Push(uint64_t local_step, const std::map<RowId, Values>& rows) {
    return PushRows(local_step, RowsOf(rows));
  }

  absl::StatusOr<PushOutcome> PushRows(uint64_t local_step, Rows rows) {
    return PushAs(++sequence_, local_step, std::move(rows));
  }

  absl::StatusOr<PushOutcome> PushAs(uint64_t sequence, uint64_t local_step, Rows rows) {
    PushHeader header;
    header.session = session_;
    header.sequence = Sequence(sequence);
    header.step = Step(local_step);
    header.incarnation = Incarnation(1);
    header.row_bytes = RowBytes(rows.ids.size(), kWidth);
    absl::StatusOr<PushOutcome> outcome = absl::UnknownError("not answered");
    const auto answer = [&](const absl::StatusOr<PushOutcome>& told) { outcome = told; };
    shard_->store().BeginPush(header, [&](absl::StatusOr<PushStart> start) {
      if (!start.ok()) return answer(start.status());
      if (start->push == nullptr) return answer(start->answer);
      const absl::Status sent = Send(rows, *start->push);
      sent.ok() ? (void)shard_->store().FinishPush(std::move(start->push), answer)
                : shard_->store().RefusePush(std::move(start->push), sent, answer);
    });
    return outcome;
  }

  static absl::Status Send(const Rows& rows, PendingPush& push) {
    absl::Status sent = push.Add(ChunkOf(0, {0}));
    if (sent.ok() && !rows.ids.empty()) sent = push.AddIds({0, rows.ids});
    if (sent.ok() && !rows.values.empty()) sent = push.Add(ChunkOf(1, rows.values));
    return sent;
  }

  Values Row(RowId id) const {
    Values row(kWidth);
    shard_->store().stripe().latest()->rows->Read(0, {id}, absl::MakeSpan(row));
    return row;
  }
  uint64_t Stored() const { return shard_->Describe().table_totals()[0].rows; }
  uint64_t step() const { return shard_->Describe().step.value(); }
  uint32_t accumulated() const { return shard_->Describe().current.accumulated; }

  FakeClock clock_;
  std::unique_ptr<Shard> shard_;
  SessionId session_;
  uint64_t sequence_ = 0;
};

// ---- The sparse rules ----

TEST_F(SparseAccumulatorTest, P01TakesIdsAndTheirRows) {
  Accumulator(1);
  EXPECT_THAT(Push(0, {{3, {1, 2}}, {7, {3, 4}}}), Applied(1));
  EXPECT_THAT(Row(3), ElementsAre(-1, -2));
  EXPECT_THAT(Row(7), ElementsAre(-3, -4));
  EXPECT_THAT(Row(5), ElementsAre(0, 0));
  EXPECT_EQ(Stored(), 2u);
}

TEST_F(SparseAccumulatorTest, P02RefusesMoreOrFewerValuesThanTheIdsHave) {
  Accumulator(1);
  EXPECT_THAT(PushRows(0, {{3, 7}, {1, 2, 3}}), IsError(Reason::kBadChunk, HasSubstr("missing")));
  EXPECT_THAT(PushRows(0, {{3}, {1, 2, 3}}), IsError(Reason::kBadChunk, HasSubstr("chunk")));
  EXPECT_THAT(PushRows(0, {{3}, {}}), IsError(Reason::kBadChunk, HasSubstr("are missing")));
  EXPECT_THAT(PushRows(0, {{}, {1, 2}}), IsError(Reason::kBadChunk, HasSubstr("no ids of rows")));
  EXPECT_EQ(step(), 0u);
  EXPECT_EQ(Stored(), 0u);
}

TEST_F(SparseAccumulatorTest, P04DifferenceATableHasNoFirstDimension) {
  Accumulator(1);
  const RowId last = std::numeric_limits<RowId>::max();
  EXPECT_THAT(Push(0, {{0, {1, 0}}, {last, {0, 1}}}), Applied(1));
  EXPECT_THAT(Row(last), ElementsAre(0, -1));
}

TEST_F(SparseAccumulatorTest, P06DifferenceRefusesIdsThatAreNotAscending) {
  Accumulator(1);
  const auto refused = IsError(Reason::kBadArgument, HasSubstr("sort them, and send each once"));
  const Layout& layout = *shard_->layout();
  EXPECT_THAT(FromProto(ToProto(RowIds{0, {7, 3}}), layout), refused);
  EXPECT_THAT(FromProto(ToProto(RowIds{0, {3, 3}}), layout), refused);
  StagedRows rows(shard_->layout(), 1000);
  ASSERT_THAT(rows.AddIds({0, {3, 7}}), IsOk());
  EXPECT_THAT(rows.AddIds({0, {7, 9}}), refused);
}

TEST_F(SparseAccumulatorTest, P07MeanDividesARowByTheGradientsThatHaveIt) {
  Accumulator(2);
  ASSERT_THAT(Push(0, {{1, {4, 4}}}), Accepted(0));
  ASSERT_THAT(Push(0, {{1, {2, 0}}, {2, {6, 8}}}), Applied(1));
  EXPECT_THAT(Row(1), ElementsAre(-3, -2));
  EXPECT_THAT(Row(2), ElementsAre(-6, -8));
}

TEST_F(SparseAccumulatorTest, P07DifferenceByDefaultMeanDividesByAllGradientsOfTheStep) {
  Accumulator(2, Reduction::kMean, RowDivisor::kAllContributors);
  ASSERT_THAT(Push(0, {{1, {4, 4}}}), Accepted(0));
  ASSERT_THAT(Push(0, {{2, {6, 8}}}), Applied(1));
  EXPECT_THAT(Row(1), ElementsAre(-2, -2));
  EXPECT_THAT(Row(2), ElementsAre(-3, -4));
}

TEST_F(SparseAccumulatorTest, P08AnEmptyGradientCountsAsOne) {
  Accumulator(2, Reduction::kMean, RowDivisor::kAllContributors);
  ASSERT_THAT(Push(0, {}), Accepted(0));
  EXPECT_EQ(accumulated(), 1u);
  ASSERT_THAT(Push(0, {{1, {4, 2}}}), Applied(1));
  EXPECT_THAT(Row(1), ElementsAre(-2, -1));
}

TEST_F(SparseAccumulatorTest, P10MeanOfTheExample) {
  Accumulator(2);
  ASSERT_THAT(Push(0, {{0, {1, 0}}, {1, {0, 2}}}), Accepted(0));
  ASSERT_THAT(Push(0, {{0, {0, 1}}, {2, {3, 0}}}), Applied(1));
  EXPECT_THAT(Row(0), ElementsAre(-0.5, -0.5));
  EXPECT_THAT(Row(1), ElementsAre(0, -2));
  EXPECT_THAT(Row(2), ElementsAre(-3, 0));
}

TEST_F(SparseAccumulatorTest, P10SumOfTheExample) {
  Accumulator(2, Reduction::kSum);
  ASSERT_THAT(Push(0, {{0, {1, 0}}, {1, {0, 2}}}), Accepted(0));
  ASSERT_THAT(Push(0, {{0, {0, 1}}, {2, {3, 0}}}), Applied(1));
  EXPECT_THAT(Row(0), ElementsAre(-1, -1));
  EXPECT_THAT(Row(1), ElementsAre(0, -2));
  EXPECT_THAT(Row(2), ElementsAre(-3, 0));
}

// ---- The dense rules, for rows ----

TEST_F(SparseAccumulatorTest, C03DifferenceTellsThatAnOlderGradientWasDropped) {
  Accumulator(1);
  ASSERT_THAT(Push(0, {{1, {1, 1}}}), Applied(1));
  EXPECT_THAT(Push(0, {{1, {9, 9}}, {2, {9, 9}}}), Stale(1, 1));
  EXPECT_THAT(Row(1), ElementsAre(-1, -1));
  EXPECT_EQ(Stored(), 1u);
}

TEST_F(SparseAccumulatorTest, C04JudgesStalenessBeforeTheRows) {
  Accumulator(1);
  ASSERT_THAT(Push(0, {{1, {1, 1}}}), Applied(1));
  EXPECT_THAT(PushRows(0, {{3}, {}}), Stale(1, 1));
}

TEST_F(SparseAccumulatorTest, C06ARefusedGradientKeepsCounterAndRows) {
  Accumulator(2);
  ASSERT_THAT(Push(0, {{1, {2, 2}}}), Accepted(0));
  EXPECT_THAT(PushRows(0, {{1}, {1}}), IsError(Reason::kBadChunk, HasSubstr("missing")));
  EXPECT_EQ(accumulated(), 1u);
  ASSERT_THAT(Push(0, {{1, {4, 4}}}), Applied(1));
  EXPECT_THAT(Row(1), ElementsAre(-3, -3));
}

TEST_F(SparseAccumulatorTest, C11TheNextGradientOverwritesTheSums) {
  Accumulator(1, Reduction::kSum);
  ASSERT_THAT(Push(0, {{1, {1, 1}}, {2, {1, 1}}}), Applied(1));
  ASSERT_THAT(Push(1, {{2, {1, 1}}}), Applied(2));
  EXPECT_THAT(Row(1), ElementsAre(-1, -1));
  EXPECT_THAT(Row(2), ElementsAre(-2, -2));
}

TEST_F(SparseAccumulatorTest, C18DifferenceCountsARepeatedPushOnce) {
  Accumulator(1);
  ASSERT_THAT(PushAs(1, 0, {{1}, {1, 1}}), Applied(1));
  EXPECT_THAT(PushAs(1, 0, {{1}, {1, 1}}), Repeated(Disposition::kApplied, 1));
  EXPECT_THAT(Row(1), ElementsAre(-1, -1));
}

}  // namespace
}  // namespace sluice
