// A replica that holds the whole vector of two parameters, and streams that come before and after
// the command that concerns them.

#include "server/replica/replica.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/base/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/replica/stripes_in_memory.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr PushName kPush = {SessionId(1), Sequence(1), 0};

PushName Attempt(uint32_t attempt) { return {kPush.session, kPush.sequence, attempt}; }

PullHeader At(uint64_t step) {
  PullHeader header;
  header.step = Step(step);
  return header;
}

struct ReplicaWorld {
  ReplicaWorld() {
    replica_.Execute(OpenModel{std::make_shared<const Layout>(ParametersOnly(2)), {SgdOptions()}});
  }

  // A stream of the push with that attempt. Its start is in push_, or its error in ended_.
  void Begin(uint32_t attempt = 0) {
    PushHeader header;
    header.session = kPush.session;
    header.sequence = kPush.sequence;
    header.attempt = attempt;
    waits_ = replica_.calls().BeginPush(
        header,
        [this](absl::StatusOr<std::unique_ptr<PendingPush>> push) {
          ++starts_;
          if (!push.ok()) ended_ = push.status();
          push_ = push.ok() ? *std::move(push) : nullptr;
        },
        [this] { ++cancels_; });
  }

  void End(const Values& gradient) {
    const absl::Status added = push_->Add(ChunkOf(0, gradient));
    answer_ = replica_.calls().EndPush(std::move(push_), added);
  }

  // A push arrives. Returns its gradient's memory.
  std::weak_ptr<const void> Arrive(uint64_t id, const Values& gradient) {
    replica_.Execute(AdmitPush{PushId(id), kPush});
    Begin();
    TensorChunk chunk = ChunkOf(0, gradient);
    std::weak_ptr<const void> memory = chunk.owner;
    EXPECT_THAT(push_->Reserve(chunk), IsOk());
    push_->Place(std::move(chunk));
    answer_ = replica_.calls().EndPush(std::move(push_), absl::OkStatus());
    return memory;
  }

  void PublishFirst(const Values& parameters) {
    replica_.Execute(AdmitPush{PushId(1), kPush});
    Begin();
    End(parameters);
    replica_.Execute(TakeParameters{PushId(1), Step(0)});
    haves_.clear();
    starts_ = 0;
  }

  void AskFor(uint64_t number) {
    replica_.calls().Pull(
        {kPush.session, number}, [this](const absl::StatusOr<PullResult>& result) {
          answers_.push_back(result.ok() ? ValuesOf(result->snapshot->values.span()) : Values());
          if (!result.ok()) ended_ = result.status();
        });
  }

  void Add(const Values& gradient, bool last) {
    const PushId id(++pushes_);
    replica_.Execute(AdmitPush{id, kPush});
    Begin();
    End(gradient);
    replica_.Execute(AddPush{id, {}, last});
  }

  // Makes the step of an SGD with learning rate 1 that `gradient` makes.
  void MakeStep(const Values& gradient) {
    Add(gradient, /*last=*/true);
    MakeStepOfSum();
  }

  // A checkpoint of step 5 is there, and is loaded.
  void LoadStep5(const Values& parameters) {
    const auto snapshot = std::make_shared<Snapshot>();
    snapshot->step = Step(5);
    snapshot->values = FloatBuffer(2);
    std::copy(parameters.begin(), parameters.end(), snapshot->values.span().begin());
    StripeCheckpoint& saved = storage_.saved[{Incarnation(2), Step(5)}];
    saved.parameters = snapshot;
    saved.optimizer_steps = 5;
    LoadCheckpoint load;
    load.source.incarnation = Incarnation(2);
    load.source.step = Step(5);
    replica_.Execute(load);
  }

  // The journal has step 6, with that checksum of what it makes.
  void JournalStep6(const Values& sum, uint64_t checksum) {
    JournaledSum step = {Step(6), Incarnation(2), checksum, FloatBuffer(sum.size())};
    std::copy(sum.begin(), sum.end(), step.sum.span().begin());
    storage_.journal.push_back(std::move(step));
  }

  void MakeStepOfSum() {
    StepOrder prepare;
    prepare.kind = StepOrder::Kind::kPrepare;
    prepare.optimizer.divisor = 1;
    prepare.optimizer.learning_rates = {1};
    StepOrder make;
    make.kind = StepOrder::Kind::kMake;
    replica_.Execute(prepare);
    replica_.Execute(make);
    replica_.Execute(PublishStep());
  }

  std::vector<HaveReport> haves_;
  int carried_ = 0;
  std::vector<SavedReport> saved_;
  std::vector<LoadedReport> loaded_;
  std::vector<uint64_t> durable_;
  std::vector<SummaryReport> summaries_;
  StripesInMemory storage_;
  Replica replica_{{0, 1},
                   SnapshotMemory::kPrivate,
                   nullptr,
                   Executors::Inline(),
                   [this](const ReplicaReport& report) {
                     if (std::holds_alternative<HaveReport>(report)) {
                       haves_.push_back(std::get<HaveReport>(report));
                     } else if (std::holds_alternative<SavedReport>(report)) {
                       saved_.push_back(std::get<SavedReport>(report));
                     } else if (std::holds_alternative<LoadedReport>(report)) {
                       loaded_.push_back(std::get<LoadedReport>(report));
                     } else if (std::holds_alternative<SummaryReport>(report)) {
                       summaries_.push_back(std::get<SummaryReport>(report));
                     } else if (std::holds_alternative<JournalReport>(report)) {
                       durable_.push_back(std::get<JournalReport>(report).durable.value());
                     } else {
                       ++carried_;
                     }
                   },
                   &storage_};
  uint64_t pushes_ = 1;
  PushId waits_;  // the latest stream's, if it waited
  int starts_ = 0;
  int cancels_ = 0;
  absl::Status answer_;  // to the latest stream
  std::unique_ptr<PendingPush> push_;
  absl::Status ended_;
  std::vector<Values> answers_;
};

class ReplicaTest : public ReplicaWorld, public ::testing::Test {};

TEST_F(ReplicaTest, AStreamWaitsAtItsHeaderUntilItsPushIsAdmitted) {
  Begin();
  EXPECT_EQ(starts_, 0);
  replica_.Execute(AdmitPush{PushId(1), kPush});
  ASSERT_NE(push_, nullptr);
  EXPECT_EQ(push_->id(), PushId(1));
}

TEST_F(ReplicaTest, AStreamMayComeAfterItsPushIsAdmitted) {
  replica_.Execute(AdmitPush{PushId(1), kPush});
  Begin();
  ASSERT_NE(push_, nullptr);
}

TEST_F(ReplicaTest, TheFirstGradientArrivesInTheMemoryOfTheSum) {
  PublishFirst({0, 0});
  std::set<const float*> memory;
  for (float step = 1; step < 5; ++step) {
    const PushId id(++pushes_);
    replica_.Execute(AdmitPush{id, kPush, /*measures_norm=*/false, /*begins_sum=*/true});
    Begin();
    ASSERT_NE(push_->gradient().memory(), nullptr);
    const float* const arrives_in = push_->gradient().memory()->span().data();
    memory.insert(arrives_in);
    End({1, 2});
    replica_.Execute(AddPush{id, {}, /*last=*/false});
    MakeStep({10, 20});
    EXPECT_EQ(replica_.stripe().latest()->values.span().data(), arrives_in);
    EXPECT_THAT(replica_.stripe().latest()->values.span(), ElementsAre(-11 * step, -22 * step));
  }
  EXPECT_EQ(memory.size(), 2u);
}

// No step is written over the gradient that the optimizer reads.
TEST_F(ReplicaTest, TheOnlyGradientOfAStepKeepsItsMemory) {
  PublishFirst({0, 0});
  const PushId id(++pushes_);
  replica_.Execute(AdmitPush{id, kPush, /*measures_norm=*/false, /*begins_sum=*/true});
  Begin();
  const std::shared_ptr<const FloatBuffer> memory = push_->gradient().memory();
  End({1, 2});
  replica_.Execute(AddPush{id, {}, /*last=*/true});
  MakeStepOfSum();
  EXPECT_NE(&replica_.stripe().latest()->values, memory.get());
  EXPECT_THAT(replica_.stripe().latest()->values.span(), ElementsAre(-1, -2));
  EXPECT_THAT(memory->span(), ElementsAre(1, 2));
}

TEST_F(ReplicaTest, OneAttemptIsAdmittedAndNotAnother) {
  replica_.Execute(AdmitPush{PushId(1), kPush});
  Begin(/*attempt=*/1);
  EXPECT_EQ(starts_, 0);
}

TEST_F(ReplicaTest, ReportsWhatItHas) {
  replica_.Execute(AdmitPush{PushId(1), kPush, /*measures_norm=*/true});
  Begin();
  End({3, 4});
  ASSERT_EQ(haves_.size(), 1u);
  EXPECT_EQ(haves_[0].push, PushId(1));
  EXPECT_THAT(haves_[0].refused, IsOk());
  EXPECT_EQ(haves_[0].norm, 5.0);
  EXPECT_EQ(haves_[0].bytes, 8u);
}

TEST_F(ReplicaTest, MeasuresNoNormUnlessAsked) {
  replica_.Execute(AdmitPush{PushId(1), kPush});
  Begin();
  End({3, 4});
  EXPECT_EQ(haves_.at(0).norm, absl::nullopt);
}

TEST_F(ReplicaTest, ReportsWhatIsWrongWithAPush) {
  replica_.Execute(AdmitPush{PushId(1), kPush, /*measures_norm=*/true});
  Begin();
  End({3});
  ASSERT_EQ(haves_.size(), 1u);
  EXPECT_EQ(ReasonOf(haves_[0].refused), Reason::kBadChunk);
  EXPECT_EQ(haves_[0].norm, absl::nullopt);
}

TEST_F(ReplicaTest, ForgetsADroppedPushWhereverItIs) {
  Begin();
  replica_.Execute(DropPush{PushId(), kPush});  // it waited at its header
  EXPECT_THAT(ended_, HasCode(absl::StatusCode::kCancelled, ::testing::_));
  replica_.Execute(AdmitPush{PushId(2), Attempt(1)});
  replica_.Execute(DropPush{PushId(2), Attempt(1)});  // its stream had not come
  Begin(/*attempt=*/1);
  EXPECT_EQ(push_, nullptr);
  replica_.Execute(AdmitPush{PushId(3), Attempt(2)});
  Begin(/*attempt=*/2);
  EXPECT_EQ(cancels_, 0);
  replica_.Execute(DropPush{PushId(3), Attempt(2)});  // it was arriving
  EXPECT_EQ(cancels_, 1);
  End({3, 4});
  EXPECT_THAT(answer_, HasCode(absl::StatusCode::kCancelled, ::testing::_));
  EXPECT_THAT(haves_, IsEmpty());
}

TEST_F(ReplicaTest, AnswersAStreamThatComesAfterItsPushWasDropped) {
  replica_.Execute(DropPush{PushId(), Attempt(1)});
  Begin(/*attempt=*/1);
  EXPECT_EQ(starts_, 1);
  EXPECT_THAT(ended_, HasCode(absl::StatusCode::kCancelled, ::testing::_));
  Begin(/*attempt=*/0);  // an earlier one, of which the log never told
  EXPECT_EQ(starts_, 2);
  EXPECT_THAT(ended_, HasCode(absl::StatusCode::kCancelled, ::testing::_));
  Begin(/*attempt=*/2);  // a later one waits
  EXPECT_EQ(starts_, 2);
  replica_.Execute(AdmitPush{PushId(1), Attempt(2)});
  EXPECT_EQ(starts_, 3);
  ASSERT_NE(push_, nullptr);
}

TEST_F(ReplicaTest, EndsTheEarlierStreamsOfASessionThatGoesOn) {
  Begin(/*attempt=*/0);
  replica_.Execute(AdmitPush{PushId(1), Attempt(1)});
  EXPECT_EQ(starts_, 1);
  EXPECT_THAT(ended_, HasCode(absl::StatusCode::kCancelled, ::testing::_));
  Begin(/*attempt=*/1);
  EXPECT_EQ(starts_, 2);
  ASSERT_NE(push_, nullptr);
}

// An offer of parameters has the sequence 0, and may follow a push that was too early.
TEST_F(ReplicaTest, AttemptsRiseAlsoFromPushesToOffers) {
  replica_.Execute(DropPush{PushId(), {kPush.session, Sequence(2), 3}});
  replica_.Execute(DropPush{PushId(), {kPush.session, Sequence(9), 1}});  // takes nothing back
  Begin(/*attempt=*/3);
  EXPECT_THAT(ended_, HasCode(absl::StatusCode::kCancelled, ::testing::_));
  replica_.Execute(AdmitPush{PushId(1), {kPush.session, Sequence(), 4}});
  PushHeader offer;
  offer.session = kPush.session;
  offer.attempt = 4;
  bool begun = false;
  replica_.calls().BeginPush(offer, [&](const auto& push) { begun = push.ok(); });
  EXPECT_TRUE(begun);
}

TEST_F(ReplicaTest, AdmitsALateStreamThoughALaterPushWasDropped) {
  replica_.Execute(AdmitPush{PushId(1), Attempt(0)});
  replica_.Execute(DropPush{PushId(), Attempt(1)});
  Begin(/*attempt=*/0);
  ASSERT_NE(push_, nullptr);
  EXPECT_EQ(push_->id(), PushId(1));
}

TEST_F(ReplicaTest, FreesTheMemoryOfADroppedGradient) {
  const std::weak_ptr<const void> memory = Arrive(1, {3, 4});
  EXPECT_EQ(haves_.size(), 1u);
  EXPECT_FALSE(memory.expired());
  replica_.Execute(DropPush{PushId(1), kPush});
  EXPECT_TRUE(memory.expired());
}

TEST_F(ReplicaTest, AnEndedSessionKeepsOnlyThePushesThatMayCount) {
  PublishFirst({1, 2});
  const std::weak_ptr<const void> counts = Arrive(2, {1, 1});
  const std::weak_ptr<const void> refused = Arrive(3, {9, 9});
  replica_.Execute(EndSession{SessionId(2)});
  EXPECT_FALSE(refused.expired());
  replica_.Execute(EndSession{kPush.session, {PushId(2)}});
  EXPECT_TRUE(refused.expired());
  EXPECT_FALSE(counts.expired());
  replica_.Execute(AddPush{PushId(2), {}, /*last=*/true});
  MakeStepOfSum();
  EXPECT_TRUE(counts.expired());
  EXPECT_THAT(replica_.stripe().latest()->values.span(), ElementsAre(0, 1));
}

TEST_F(ReplicaTest, ReportsNothingOnAPushWhoseSessionEndedMeanwhile) {
  replica_.Execute(AdmitPush{PushId(1), kPush});
  Begin();
  replica_.Execute(EndSession{SessionId(2)});
  EXPECT_EQ(cancels_, 0);
  replica_.Execute(EndSession{kPush.session});
  EXPECT_EQ(cancels_, 1);
  TensorChunk chunk = ChunkOf(0, {3, 4});
  const std::weak_ptr<const void> memory = chunk.owner;
  EXPECT_THAT(push_->Add(std::move(chunk)), IsOk());
  answer_ = replica_.calls().EndPush(std::move(push_), absl::OkStatus());
  EXPECT_EQ(ReasonOf(answer_), Reason::kUnknownSession);
  EXPECT_THAT(haves_, IsEmpty());
  EXPECT_TRUE(memory.expired());
}

TEST_F(ReplicaTest, MakesTheStepsThatItIsTold) {
  PublishFirst({1, 2});
  MakeStep({4, -4});
  EXPECT_EQ(carried_, 2);
  EXPECT_THAT(replica_.stripe().latest()->values.span(), ElementsAre(-3, 6));
  EXPECT_EQ(replica_.stripe().latest()->step, Step(1));
  MakeStep({1, 1});
  EXPECT_THAT(replica_.stripe().latest()->values.span(), ElementsAre(-4, 5));
}

TEST_F(ReplicaTest, StartsEachStepWithAnEmptySum) {
  PublishFirst({1, 2});
  Add({1, 1}, /*last=*/false);
  MakeStep({2, 4});
  EXPECT_THAT(replica_.stripe().latest()->values.span(), ElementsAre(-2, -3));
  Add({1, 1}, /*last=*/false);
  MakeStep({0, 1});
  EXPECT_THAT(replica_.stripe().latest()->values.span(), ElementsAre(-3, -5));
}

TEST_F(ReplicaTest, AnswersAPullWithTheLatestOfItsPlaceInTheLog) {
  PublishFirst({1, 2});
  AskFor(1);
  EXPECT_THAT(answers_, IsEmpty());
  replica_.Execute(ReleasePull{{kPush.session, 1}, At(0)});
  replica_.Execute(ReleasePull{{kPush.session, 2}, At(0)});
  MakeStep({1, 1});
  AskFor(2);  // it comes late
  EXPECT_THAT(answers_, ElementsAre(ElementsAre(1, 2), ElementsAre(1, 2)));
}

TEST_F(ReplicaTest, ForgetsTheStreamsOfAnEndedSession) {
  PublishFirst({1, 2});
  Begin(/*attempt=*/1);
  AskFor(1);
  replica_.Execute(ReleasePull{{kPush.session, 2}, At(0)});
  replica_.Execute(EndSession{kPush.session});
  EXPECT_EQ(starts_, 1);
  EXPECT_EQ(ReasonOf(ended_), Reason::kUnknownSession);
  EXPECT_THAT(answers_, ElementsAre(IsEmpty()));
}

TEST_F(ReplicaTest, AnswersWhatComesAfterItsSessionHasEnded) {
  PublishFirst({1, 2});
  replica_.Execute(ReleasePull{{kPush.session, 1}, At(0)});
  replica_.Execute(EndSession{kPush.session});
  replica_.Execute(DropPush{PushId(), Attempt(1)});  // its header came late too
  Begin(/*attempt=*/1);
  EXPECT_EQ(starts_, 1);
  EXPECT_EQ(ReasonOf(ended_), Reason::kUnknownSession);
  ended_ = absl::OkStatus();
  AskFor(1);
  EXPECT_THAT(answers_, ElementsAre(IsEmpty()));
  EXPECT_EQ(ReasonOf(ended_), Reason::kUnknownSession);
}

TEST_F(ReplicaTest, NeverStartsAStreamThatIsCancelled) {
  const auto alive = std::make_shared<int>();
  PushHeader header;
  header.session = kPush.session;
  header.sequence = kPush.sequence;
  const PushId id =
      replica_.calls().BeginPush(header, [this, alive](const auto& /*push*/) { ++starts_; });
  EXPECT_EQ(alive.use_count(), 2);
  EXPECT_TRUE(replica_.CancelPush(id));
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_FALSE(replica_.CancelPush(id));
  replica_.Execute(AdmitPush{PushId(1), kPush});
  replica_.Execute(EndSession{kPush.session});
  EXPECT_EQ(starts_, 0);
}

TEST_F(ReplicaTest, CancelsNoStreamThatHasStarted) {
  Begin();
  const PushId id = waits_;
  replica_.Execute(AdmitPush{PushId(1), kPush});
  EXPECT_EQ(starts_, 1);
  EXPECT_FALSE(replica_.CancelPush(id));
  End({3, 4});
  EXPECT_EQ(haves_.size(), 1u);
}

TEST_F(ReplicaTest, NeverAnswersAPullThatIsCancelled) {
  PublishFirst({1, 2});
  const auto alive = std::make_shared<int>();
  const PullId id = replica_.calls().Pull(
      {kPush.session, 1}, [this, alive](const auto& /*result*/) { answers_.emplace_back(); });
  EXPECT_EQ(alive.use_count(), 2);
  EXPECT_FALSE(replica_.CancelPull(PullId(id.value() + 1)));
  EXPECT_TRUE(replica_.CancelPull(id));
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_FALSE(replica_.CancelPull(id));
  replica_.Execute(ReleasePull{{kPush.session, 1}, At(0)});
  replica_.Execute(EndSession{kPush.session});
  EXPECT_THAT(answers_, IsEmpty());
}

TEST_F(ReplicaTest, DropsTheSnapshotOfAReleasedPullThatNeverComes) {
  PublishFirst({1, 2});
  const std::weak_ptr<const Snapshot> first = replica_.stripe().latest();
  replica_.Execute(ReleasePull{{kPush.session, 1}, At(0)});
  replica_.Execute(ReleasePull{{kPush.session, 2}, At(0)});
  MakeStep({1, 1});
  MakeStep({1, 1});
  replica_.Execute(DropPull{{kPush.session, 1}});
  EXPECT_FALSE(first.expired());  // the second pull has it
  replica_.Execute(DropPull{{kPush.session, 2}});
  EXPECT_TRUE(first.expired());
}

TEST_F(ReplicaTest, AnswersADroppedPullWheneverItComes) {
  PublishFirst({1, 2});
  AskFor(1);
  AskFor(3);
  replica_.Execute(DropPull{{kPush.session, 2}});
  EXPECT_THAT(answers_, ElementsAre(IsEmpty()));
  EXPECT_THAT(ended_, HasCode(absl::StatusCode::kCancelled, ::testing::_));
  replica_.Execute(DropPull{{kPush.session, 1}});
  AskFor(2);
  EXPECT_THAT(answers_, ElementsAre(IsEmpty(), IsEmpty()));
  replica_.Execute(ReleasePull{{kPush.session, 3}, At(0)});
  EXPECT_THAT(answers_, ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(1, 2)));
}

TEST_F(ReplicaTest, KeepsTheStreamsOfOtherSessions) {
  PublishFirst({1, 2});
  AskFor(1);
  replica_.Execute(EndSession{SessionId(2)});
  replica_.Execute(EndSession{SessionId(0)});
  replica_.Execute(ReleasePull{{kPush.session, 1}, At(0)});
  EXPECT_THAT(answers_, ElementsAre(ElementsAre(1, 2)));
}

// What a worker with that session gets.
using Copy = absl::StatusOr<std::shared_ptr<const StripeCheckpoint>>;

TEST_F(ReplicaTest, CopiesItsStripeBetweenTwoSteps) {
  Copy copy = nullptr;
  const auto take = [&](SessionId session) {
    copy = Copy(nullptr);
    replica_.CopyStripe(session, [&copy](Copy taken) { copy = std::move(taken); });
  };
  take(SessionId(1));
  EXPECT_THAT(copy, IsError(Reason::kUnknownSession, HasSubstr("session 1 is not open here")));
  replica_.Execute(OpenSession{SessionId(1)});
  take(SessionId(1));
  EXPECT_THAT(copy, IsError(Reason::kNotInitialized, HasSubstr("has no parameters yet")));
  PublishFirst({5, 6});
  take(SessionId(1));
  ASSERT_THAT(copy, IsOk());
  EXPECT_EQ((*copy)->parameters->step, Step(0));

  Add({1, 2}, /*last=*/true);
  StepOrder prepare;
  prepare.kind = StepOrder::Kind::kPrepare;
  prepare.optimizer.divisor = 1;
  prepare.optimizer.learning_rates = {1};
  replica_.Execute(prepare);
  take(SessionId(1));
  ASSERT_THAT(copy, IsOk());
  EXPECT_EQ((*copy)->parameters->step, Step(0));
  StepOrder make;
  make.kind = StepOrder::Kind::kMake;
  replica_.Execute(make);
  take(SessionId(1));
  ASSERT_THAT(copy, IsOk());
  EXPECT_EQ(*copy, nullptr);  // the step is written, and not published
  replica_.Execute(PublishStep());
  EXPECT_EQ((*copy)->parameters->step, Step(1));
  EXPECT_EQ((*copy)->optimizer_steps, 1u);

  StepOrder digest;
  digest.kind = StepOrder::Kind::kDigest;
  replica_.Execute(digest);
  take(SessionId(1));
  ASSERT_THAT(copy, IsOk());
  EXPECT_NE(*copy, nullptr);  // a digest begins no step
}

TEST_F(ReplicaTest, AnswersWhoWaitsForACopyWhenItEnds) {
  replica_.Execute(OpenSession{SessionId(1)});
  PublishFirst({5, 6});
  Add({1, 2}, /*last=*/true);
  for (const StepOrder::Kind kind : {StepOrder::Kind::kPrepare, StepOrder::Kind::kMake}) {
    StepOrder order;
    order.kind = kind;
    order.optimizer.learning_rates = {1};
    replica_.Execute(order);
  }
  Copy copy = nullptr;
  replica_.CopyStripe(SessionId(1), [&copy](Copy taken) { copy = std::move(taken); });
  replica_.EndCopies();
  EXPECT_EQ(copy.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ReplicaTest, SavesItsStateForACheckpointAndReportsTheChecksum) {
  PublishFirst({1, 2});
  MakeStep({1, 1});
  replica_.Execute(TakeCheckpoint{"job", Incarnation(2), Step(1)});
  const StripeCheckpoint& saved = storage_.saved.at({Incarnation(2), Step(1)});
  EXPECT_EQ(saved.parameters, replica_.stripe().latest());
  EXPECT_EQ(saved.optimizer_steps, 1u);
  EXPECT_THAT(saved.slots, IsEmpty());  // plain SGD has none
  ASSERT_EQ(saved_.size(), 1u);
  EXPECT_EQ(saved_[0].step, Step(1));
  EXPECT_THAT(saved_[0].failed, IsOk());
  EXPECT_EQ(saved_[0].checksum, 1001u);
}

TEST_F(ReplicaTest, ReportsWhyItCannotSave) {
  PublishFirst({1, 2});
  storage_.fails = absl::ResourceExhaustedError("the disk is full");
  replica_.Execute(TakeCheckpoint{"job", Incarnation(2), Step(0)});
  ASSERT_EQ(saved_.size(), 1u);
  EXPECT_EQ(saved_[0].failed, storage_.fails);
}

TEST_F(ReplicaTest, ContinuesFromACheckpoint) {
  LoadStep5({3, 4});
  ASSERT_EQ(loaded_.size(), 1u);
  EXPECT_THAT(loaded_[0].failed, IsOk());
  EXPECT_EQ(loaded_[0].journaled, Step(5));
  EXPECT_EQ(replica_.stripe().latest()->step, Step(5));
  EXPECT_THAT(replica_.stripe().latest()->values.span(), ElementsAre(3, 4));
}

TEST_F(ReplicaTest, ReportsWhyItCannotLoad) {
  replica_.Execute(LoadCheckpoint());
  ASSERT_EQ(loaded_.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(loaded_[0].failed));
  EXPECT_EQ(replica_.stripe().latest(), nullptr);
}

TEST_F(ReplicaTest, WritesTheSumOfEachStepToItsJournalFromThatCommandOn) {
  PublishFirst({1, 2});
  MakeStep({1, 1});
  replica_.Execute(BeginJournal{Incarnation(3)});
  Add({1, 2}, /*last=*/false);
  MakeStep({10, 20});
  ASSERT_EQ(storage_.journal.size(), 1u);
  EXPECT_EQ(storage_.journal[0].step, Step(2));
  EXPECT_THAT(storage_.journal[0].sum.span(), ElementsAre(11, 22));
  EXPECT_NE(storage_.journal[0].checksum, 0u);
  EXPECT_THAT(durable_, ElementsAre(2));
}

TEST_F(ReplicaTest, AStepWithoutGradientsIsJournaledWithoutASum) {
  PublishFirst({1, 2});
  replica_.Execute(BeginJournal{Incarnation(3)});
  MakeStep({1, 1});
  StepOrder copy;
  copy.kind = StepOrder::Kind::kCopy;
  replica_.Execute(copy);
  replica_.Execute(PublishStep());
  ASSERT_EQ(storage_.journal.size(), 2u);
  EXPECT_THAT(storage_.journal[1].sum.span(), IsEmpty());
  EXPECT_EQ(storage_.journal[1].checksum, 0u);
}

TEST_F(ReplicaTest, ACheckpointBeginsASegmentOfTheJournal) {
  PublishFirst({1, 2});
  replica_.Execute(BeginJournal{Incarnation(3)});
  replica_.Execute(TakeCheckpoint{"job", Incarnation(3), Step(0)});
  EXPECT_EQ(storage_.segments, 1);
}

TEST_F(ReplicaTest, MakesAJournaledStepAgainAndDoesNotJournalItTwice) {
  {
    ReplicaWorld made;  // another replica, which writes the journal
    made.LoadStep5({3, 4});
    made.replica_.Execute(BeginJournal{Incarnation(2)});
    made.MakeStep({1, 1});
    storage_.journal = std::move(made.storage_.journal);
  }
  LoadStep5({3, 4});
  ASSERT_EQ(loaded_.size(), 1u);
  EXPECT_EQ(loaded_[0].journaled, Step(6));
  replica_.Execute(ReplayStep{Step(6), Incarnation(2)});
  MakeStepOfSum();
  EXPECT_EQ(replica_.stripe().latest()->step, Step(6));
  EXPECT_THAT(replica_.stripe().latest()->values.span(), ElementsAre(2, 3));
  EXPECT_EQ(storage_.journal.size(), 1u);
  replica_.Execute(TakeCheckpoint{"job", Incarnation(3), Step(6)});
  ASSERT_EQ(saved_.size(), 1u);
  EXPECT_THAT(saved_[0].failed, IsOk());
}

TEST_F(ReplicaTest, SavesNoCheckpointOfAStepThatCameOutWithOtherBits) {
  JournalStep6({1, 1}, 77);
  LoadStep5({3, 4});
  replica_.Execute(ReplayStep{Step(6), Incarnation(2)});
  MakeStepOfSum();
  replica_.Execute(TakeCheckpoint{"job", Incarnation(3), Step(6)});
  ASSERT_EQ(saved_.size(), 1u);
  EXPECT_THAT(saved_[0].failed,
              HasCode(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("step 6 comes out with other bits: the server that made it got the "
                                "checksum 000000000000004d")));
}

// The journals are of different histories then.
TEST_F(ReplicaTest, SavesNoCheckpointIfItsJournalHasTheStepOfAnotherIncarnation) {
  JournalStep6({1, 1}, 77);
  LoadStep5({3, 4});
  replica_.Execute(ReplayStep{Step(6), Incarnation(1)});
  MakeStepOfSum();
  replica_.Execute(TakeCheckpoint{"job", Incarnation(3), Step(6)});
  ASSERT_EQ(saved_.size(), 1u);
  EXPECT_THAT(saved_[0].failed,
              HasCode(absl::StatusCode::kDataLoss,
                      HasSubstr("continues with step 6 of incarnation 2, and the first server's "
                                "with step 6 of incarnation 1")));
}

TEST_F(ReplicaTest, SavesNoCheckpointIfItsJournalLacksTheStep) {
  LoadStep5({3, 4});
  replica_.Execute(ReplayStep{Step(6), Incarnation(2)});
  MakeStepOfSum();
  replica_.Execute(TakeCheckpoint{"job", Incarnation(3), Step(6)});
  ASSERT_EQ(saved_.size(), 1u);
  EXPECT_THAT(saved_[0].failed, HasCode(absl::StatusCode::kDataLoss, "the journal ends"));
}

TEST_F(ReplicaTest, SummarizesATensorOfTheLatestStepAtItsPlaceInTheLog) {
  PublishFirst({3, 5});
  replica_.Execute(SummarizeTensor{1, {0, 1, 1}});
  MakeStep({1, 0});
  replica_.Execute(SummarizeTensor{2, {0, 0, 2}});
  ASSERT_EQ(summaries_.size(), 2u);
  EXPECT_EQ(summaries_[0].number, 1u);
  ASSERT_EQ(summaries_[0].part.units.size(), 1u);
  EXPECT_EQ(summaries_[0].part.units[0].min, 3);
  EXPECT_EQ(summaries_[0].part.units[0].max, 5);
  EXPECT_EQ(summaries_[0].part.units[0].mean, 4);
  EXPECT_THAT(summaries_[0].part.values, ElementsAre(5));
  EXPECT_EQ(summaries_[1].number, 2u);
  EXPECT_THAT(summaries_[1].part.values, ElementsAre(2, 5));
}

TEST_F(ReplicaTest, TellsItsStorageWhichCheckpointsToKeep) {
  PublishFirst({1, 2});
  replica_.Execute(KeepCheckpoints{{{Incarnation(2), Step(5)}}});
  EXPECT_THAT(storage_.keep, ElementsAre(CheckpointKey{Incarnation(2), Step(5)}));
}

}  // namespace
}  // namespace sluice
