#include "server/admission/state_requests.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/admission/draining.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr Step kStep(7);

// Sessions of workers at one step, and what those who wait were told.
class StateWorld {
 public:
  SessionId Join(const std::string& worker) {
    JoinRequest request;
    request.worker = worker;
    request.process_nonce = ProcessNonce(++nonce_);
    request.role = SessionRole::kWorker;
    const auto record = sessions.Open(request, kStep, absl::UnixEpoch());
    EXPECT_THAT(record, IsOk());
    return (*record)->session;
  }

  void Contribute(SessionId session) {
    sessions.Change(**sessions.Find(session),
                    [](SessionRecord& record) { record.Contribute(kStep); });
  }

  void End(SessionId session) {
    sessions.Change(**sessions.Find(session),
                    [](SessionRecord& record) { record.presence = Presence::kEvicted; });
  }

  StateRequestId Wait(SessionId session, absl::optional<uint64_t> ahead = absl::nullopt) {
    const auto done = [this, session](const absl::StatusOr<WorkerState>& state) {
      if (!state.ok()) {
        errors.push_back(state.status());
      } else if (state->bytes == nullptr) {
        own.push_back(session);
      } else {
        took.emplace_back(session, *state->bytes);
      }
    };
    const StateRequestId id = requests.Add(session, ahead, done, &completions_);
    completions_.Run();
    return id;
  }

  absl::optional<SessionId> Settle(const absl::Status& serving = absl::OkStatus(),
                                   Step step = kStep) {
    requests.Note(sessions.TakeChanged(), sessions, step);
    const auto asked = requests.Settle(serving, sessions, step, now, &completions_);
    completions_.Run();
    return asked;
  }

  void Offer(SessionId session, const std::string& model, Step step = kStep) {
    const auto offer = requests.BeginOffer(session);
    ASSERT_THAT(offer, IsOk());
    requests.HandOn(*offer, {step, 3, std::make_shared<const std::string>(model), 0},
                    &completions_);
    completions_.Run();
    EndOffer(*offer);
  }

  void EndOffer(StateOfferId offer) {
    requests.EndOffer(offer, &completions_);
    completions_.Run();
  }

  SessionTable sessions{100};
  StateRequests requests{kPatience};
  absl::Time now = absl::UnixEpoch();
  std::vector<std::pair<SessionId, std::string>> took;
  std::vector<SessionId> own;
  std::vector<absl::Status> errors;

 private:
  uint64_t nonce_ = 0;
  Completions completions_;
};

TEST(StateRequestsTest, AskOneThatHasContributedAndAllWhoWaitGetItsModel) {
  StateWorld world;
  const SessionId has_it = world.Join("a"), late = world.Join("b"), later = world.Join("c");
  world.Wait(late);
  world.Wait(later);
  EXPECT_EQ(world.Settle(), absl::nullopt);  // it may still compute
  world.Contribute(has_it);
  EXPECT_EQ(world.Settle(), has_it);
  EXPECT_TRUE(world.requests.Wants(has_it));
  EXPECT_FALSE(world.requests.Wants(late));
  EXPECT_THAT(world.requests.Served(), UnorderedElementsAre(has_it, late, later));
  world.Offer(has_it, "model");
  EXPECT_THAT(world.took,
              UnorderedElementsAre(std::make_pair(late, "model"), std::make_pair(later, "model")));
  EXPECT_EQ(world.Settle(), absl::nullopt);
  EXPECT_THAT(world.requests.Served(), IsEmpty());
}

TEST(StateRequestsTest, AskAnotherWhenTheFirstIsGone) {
  StateWorld world;
  const SessionId first = world.Join("a"), second = world.Join("b"), late = world.Join("c");
  world.Contribute(first);
  world.Contribute(second);
  world.Wait(late);
  EXPECT_EQ(world.Settle(), first);
  world.End(first);
  EXPECT_EQ(world.Settle(), second);
  world.Offer(second, "model");
  EXPECT_THAT(world.took, ElementsAre(std::make_pair(late, "model")));
}

TEST(StateRequestsTest, AnOfferThatBreaksOffIsAskedForAgain) {
  StateWorld world;
  const SessionId has_it = world.Join("a"), late = world.Join("b");
  world.Contribute(has_it);
  world.Wait(late);
  ASSERT_EQ(world.Settle(), has_it);
  const auto offer = world.requests.BeginOffer(has_it);
  ASSERT_THAT(offer, IsOk());
  EXPECT_EQ(world.Settle(), absl::nullopt);  // it is on its way
  EXPECT_THAT(world.requests.BeginOffer(has_it),
              IsError(Reason::kBadArgument, HasSubstr("offers it already")));
  world.EndOffer(*offer);
  EXPECT_EQ(world.Settle(), has_it);
  world.Offer(has_it, "model");
  EXPECT_THAT(world.took, ElementsAre(std::make_pair(late, "model")));
}

TEST(StateRequestsTest, AfterAnOfferThatFailsAnotherWorkerIsAskedAndNotForEver) {
  StateWorld world;
  const SessionId first = world.Join("a"), second = world.Join("b"), late = world.Join("c");
  world.Contribute(first);
  world.Contribute(second);
  world.Wait(late);
  std::vector<SessionId> asked;
  for (int i = 0; i < StateRequests::kMostFailures; ++i) {
    EXPECT_THAT(world.errors, IsEmpty());
    asked.push_back(*world.Settle());
    world.EndOffer(*world.requests.BeginOffer(asked.back()));
  }
  EXPECT_THAT(std::vector<SessionId>(asked.begin(), asked.begin() + 3),
              ElementsAre(first, second, first));
  EXPECT_THAT(world.errors, ElementsAre(IsError(Reason::kNoState, HasSubstr("offers of it"))));
  EXPECT_EQ(world.Settle(), absl::nullopt);
}

TEST(StateRequestsTest, AModelOfAStepThatIsOverIsNotHandedOn) {
  StateWorld world;
  const SessionId has_it = world.Join("a"), late = world.Join("b");
  world.Contribute(has_it);
  world.Wait(late);
  ASSERT_EQ(world.Settle(), has_it);
  world.Offer(has_it, "model", kStep.Next());
  EXPECT_THAT(world.took, IsEmpty());
  EXPECT_EQ(world.Settle(absl::OkStatus(), kStep.Next()), absl::nullopt);  // has not contributed
}

TEST(StateRequestsTest, NobodyIsAskedWhoIsNotAskedOrWaitsItself) {
  StateWorld world;
  const SessionId has_it = world.Join("a"), late = world.Join("b");
  EXPECT_THAT(world.requests.BeginOffer(has_it), IsError(Reason::kBadArgument, _));
  world.Contribute(late);  // an earlier process of its name has
  world.Wait(late);
  EXPECT_EQ(world.Settle(), absl::nullopt);
  world.Contribute(has_it);
  EXPECT_EQ(world.Settle(), has_it);
  EXPECT_THAT(world.requests.BeginOffer(late), IsError(Reason::kBadArgument, _));
}

TEST(StateRequestsTest, WithoutAModelAllAreToldWhenNobodyMayComeBackAnyMore) {
  StateWorld world;
  const SessionId a = world.Join("a"), b = world.Join("b");
  world.Wait(a);
  world.Settle();
  world.Wait(b);
  world.Settle();
  EXPECT_THAT(world.errors, IsEmpty());
  world.now += kPatience;
  world.Settle();
  EXPECT_THAT(world.errors,
              ElementsAre(IsError(Reason::kNoState, HasSubstr("none that takes part")),
                          IsError(Reason::kNoState, _)));
}

TEST(StateRequestsTest, OneWhoseModelIsAheadGoesOnAndTheOthersWaitForIt) {
  StateWorld world;
  const SessionId behind = world.Join("a"), ahead = world.Join("b"), fresh = world.Join("c");
  world.Wait(behind, 9);
  world.Wait(fresh);
  world.Settle();
  world.Wait(ahead, 10);
  world.Settle();
  EXPECT_THAT(world.own, ElementsAre(ahead));
  EXPECT_THAT(world.errors, IsEmpty());
  world.Contribute(ahead);
  EXPECT_EQ(world.Settle(), ahead);
  world.Offer(ahead, "model");
  EXPECT_THAT(world.took, UnorderedElementsAre(std::make_pair(behind, "model"),
                                               std::make_pair(fresh, "model")));
}

TEST(StateRequestsTest, AWorkerThatCannotWriteItsModelSaysSoToThoseWhoWait) {
  StateWorld world;
  const SessionId has_it = world.Join("a"), late = world.Join("b");
  world.Contribute(has_it);
  world.Wait(late);
  ASSERT_EQ(world.Settle(), has_it);
  const auto offer = world.requests.BeginOffer(has_it);
  ASSERT_THAT(offer, IsOk());
  Completions completions;
  world.requests.Fail(*offer, "no memory", &completions);
  completions.Run();
  EXPECT_THAT(world.errors, ElementsAre(IsError(Reason::kNoState, HasSubstr("no memory"))));
  EXPECT_EQ(world.Settle(), absl::nullopt);
}

TEST(StateRequestsTest, EndWithTheSessionTheServerOrALaterCall) {
  StateWorld world;
  const SessionId has_it = world.Join("a"), late = world.Join("b"), third = world.Join("c");
  world.Contribute(has_it);
  const StateRequestId cancelled = world.Wait(third);
  EXPECT_TRUE(world.requests.Cancel(cancelled));
  EXPECT_FALSE(world.requests.Cancel(cancelled));
  world.Wait(late);
  world.Wait(late);
  EXPECT_THAT(world.errors, ElementsAre(IsError(Reason::kBadArgument, HasSubstr("later"))));
  world.Wait(third);
  world.End(late);
  EXPECT_EQ(world.Settle(), has_it);
  EXPECT_THAT(world.errors, ElementsAre(_, IsError(Reason::kUnknownSession, _)));
  EXPECT_EQ(world.Settle(DrainingError()), absl::nullopt);
  EXPECT_THAT(world.errors, ElementsAre(_, _, IsError(Reason::kDraining, _)));
}

}  // namespace
}  // namespace sluice
