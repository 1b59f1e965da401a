#include "server/admission/held_answers.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Calls what HeldAnswers completes, and keeps what was told.
class HeldAnswersTest : public ::testing::Test {
 protected:
  // Holds the answer to a push of that session until the step is settled.
  void Hold(uint64_t session, uint64_t step) {
    const auto tell = [this, session](const absl::StatusOr<PushOutcome>& outcome) {
      told_.push_back(absl::StrCat(session, outcome.ok() ? " counts" : " fails"));
    };
    Run([&](Completions* completions) {
      answers_.Add(Step(step), {SessionId(session), tell, PushOutcome()}, completions);
    });
  }
  template <typename Event>
  void Run(Event event) {
    Completions completions;
    event(&completions);
    completions.Run();
  }
  void Publish(uint64_t step) {
    Run([&](Completions* completions) { answers_.OnPublished(Step(step), completions); });
  }
  void MakeDurable(uint64_t step) {
    Run([&](Completions* completions) { answers_.OnDurable(Step(step), completions); });
  }
  std::vector<std::string> Told() { return std::exchange(told_, {}); }

  HeldAnswers answers_;
  std::vector<std::string> told_;
};

TEST_F(HeldAnswersTest, WithoutAJournalAnAnswerWaitsUntilItsStepIsPublished) {
  Hold(1, 1);
  Hold(2, 2);
  EXPECT_THAT(Told(), IsEmpty());
  Publish(1);
  EXPECT_THAT(Told(), ElementsAre("1 counts"));
  Publish(2);
  EXPECT_THAT(Told(), ElementsAre("2 counts"));
}

TEST_F(HeldAnswersTest, WithAJournalItWaitsForBothInEitherOrder) {
  answers_.BeginJournal(Step(4));
  Hold(1, 5);
  MakeDurable(5);  // the journal is written before the step is published
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(answers_.settled(), Step(4));
  Publish(5);
  EXPECT_THAT(Told(), ElementsAre("1 counts"));
  Hold(2, 6);
  Publish(6);
  EXPECT_THAT(Told(), IsEmpty());
  MakeDurable(6);
  EXPECT_THAT(Told(), ElementsAre("2 counts"));
  EXPECT_EQ(answers_.settled(), Step(6));
}

TEST_F(HeldAnswersTest, SomeOfAStepFailAndTheOthersStay) {
  Hold(1, 1);
  Hold(2, 1);
  Hold(1, 2);
  Run([&](Completions* completions) {
    answers_.FailSome(
        Step(1), [](HeldAnswer& held) { return held.session == SessionId(1); },
        absl::AbortedError("its model is wanted"), completions);
  });
  EXPECT_THAT(Told(), ElementsAre("1 fails"));
  EXPECT_THAT(answers_.Sessions(), UnorderedElementsAre(SessionId(2), SessionId(1)));
  Publish(2);
  EXPECT_THAT(Told(), ElementsAre("2 counts", "1 counts"));
}

TEST_F(HeldAnswersTest, AfterTheJournalsEndNothingIsHeld) {
  answers_.BeginJournal(Step(0));
  Hold(1, 1);
  Run([&](Completions* completions) {
    answers_.EndJournal(absl::UnavailableError("the server ends"), completions);
  });
  EXPECT_THAT(Told(), ElementsAre("1 fails"));
  Hold(2, 1);
  EXPECT_THAT(Told(), ElementsAre("2 fails"));
  EXPECT_THAT(answers_.Sessions(), IsEmpty());
}

TEST_F(HeldAnswersTest, WithoutAJournalItsEndChangesNothing) {
  Hold(1, 1);
  Run([&](Completions* completions) {
    answers_.EndJournal(absl::UnavailableError("the server ends"), completions);
  });
  MakeDurable(1);
  EXPECT_THAT(Told(), IsEmpty());
  Publish(1);
  EXPECT_THAT(Told(), ElementsAre("1 counts"));
}

}  // namespace
}  // namespace sluice
