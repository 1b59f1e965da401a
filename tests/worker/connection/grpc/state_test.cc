// Models that workers hand to one another, between workers and a server over gRPC.

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/encoding/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// More elements than one call of PushPull has, or fewer; and a model of several messages.
constexpr uint32_t kSmall = 3, kLarge = 20'000;
const std::string& Model() {
  static const auto* const model = new std::string(3'000'000, 'm');
  return *model;
}

JoinRequest RequestOf(const std::string& name, uint32_t elements) {
  JoinRequest request = WorkerRequest(name, elements);
  request.optimizer = {MeanGradientOptions()};
  return request;
}

// A worker that steps itself: its model is a text.
class Worker {
 public:
  Worker(const std::string& address, uint32_t elements)
      : elements_(elements), vector_(elements, 1), client_(ConnectTo(address)) {
    const auto restore = [](absl::Span<float> parameters) {
      for (float& parameter : parameters) parameter = 10;
      return absl::OkStatus();
    };
    const auto save = [this]() -> absl::StatusOr<std::string> {
      if (can_save) return Model();
      return absl::InternalError("it has no memory");
    };
    const auto load = [this](absl::string_view bytes) {
      loaded = std::string(bytes);
      return absl::OkStatus();
    };
    client_.RestoreBy(restore, {save, load});
  }

  absl::Status Join(const std::string& name) {
    return client_.Join(RequestOf(name, elements_), absl::MakeSpan(vector_));
  }

  absl::Status Push(float gradient) {
    vector_.assign(elements_, gradient);
    const auto report =
        client_.PushPull({vector_, nullptr}, 1, absl::nullopt, absl::MakeSpan(vector_));
    return report.status();
  }

  float value() const { return vector_.front(); }
  bool step_to_take() const { return client_.held().step_to_take(); }
  void Leave() { EXPECT_THAT(client_.Leave({}), IsOk()); }

  std::string loaded;
  bool can_save = true;

 private:
  const uint32_t elements_;
  Values vector_;
  ParameterClient client_;
};

class StateTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  StateTest() : world_(Sync(2), ParametersOnly(GetParam())) {}

  std::unique_ptr<Worker> NewWorker() {
    return std::make_unique<Worker>(world_.address().ToString(), GetParam());
  }

  ServerWorld world_;
};

INSTANTIATE_TEST_SUITE_P(Sizes, StateTest, ::testing::Values(kSmall, kLarge));

TEST_P(StateTest, WorkersGetTheMeanGradientAndOneThatComesLateTheModel) {
  const auto a = NewWorker(), b = NewWorker(), late = NewWorker();
  ASSERT_THAT(a->Join("a"), IsOk());
  ASSERT_THAT(b->Join("b"), IsOk());
  EXPECT_EQ(b->value(), 10);  // the parameters of the first
  EXPECT_FALSE(b->step_to_take());
  std::thread other([&] { EXPECT_THAT(b->Push(3), IsOk()); });
  EXPECT_THAT(a->Push(1), IsOk());
  other.join();
  EXPECT_EQ(a->value(), 2);
  EXPECT_EQ(b->value(), 2);
  EXPECT_TRUE(a->step_to_take() && b->step_to_take());

  // The step waits for the one that joins now, and that waits for the model.
  std::thread third([&] {
    EXPECT_THAT(late->Join("c"), IsOk());
    EXPECT_FALSE(late->step_to_take());
    EXPECT_THAT(late->Push(9), IsOk());
  });
  std::thread second([&] { EXPECT_THAT(b->Push(3), IsOk()); });
  EXPECT_THAT(a->Push(3), IsOk());
  second.join();
  third.join();
  if (late->loaded.empty()) return;  // it has joined in the step after that
  EXPECT_EQ(late->loaded, Model());
  for (Worker* const worker : {a.get(), b.get(), late.get()}) {
    EXPECT_EQ(worker->value(), 5);
    EXPECT_TRUE(worker->step_to_take());
    worker->Leave();
  }
}

// It has not seen the step that was made without it, whose mean the others may have clipped.
TEST_P(StateTest, OneThatHasMissedASingleStepTakesTheModelAndNotTheStep) {
  const auto a = NewWorker(), b = NewWorker();
  ASSERT_THAT(a->Join("a"), IsOk());
  ASSERT_THAT(b->Join("b"), IsOk());
  std::thread other([&] { EXPECT_THAT(b->Push(3), IsOk()); });
  EXPECT_THAT(a->Push(1), IsOk());
  other.join();
  b->Leave();
  EXPECT_THAT(a->Push(3), IsOk());
  std::thread returning([&] {
    EXPECT_THAT(b->Join("b"), IsOk());
    EXPECT_FALSE(b->step_to_take());
    EXPECT_EQ(b->loaded, Model());
    EXPECT_THAT(b->Push(7), IsOk());
  });
  while (world_.shard().Describe().workers < 2) std::this_thread::yield();
  EXPECT_THAT(a->Push(5), IsOk());
  returning.join();
  EXPECT_TRUE(b->step_to_take());
  EXPECT_EQ(b->value(), 6);
}

TEST_P(StateTest, AModelThatCannotBeWrittenEndsTheOneThatWaitsAndNobodyElse) {
  const auto a = NewWorker(), b = NewWorker(), late = NewWorker();
  a->can_save = b->can_save = false;
  ASSERT_THAT(a->Join("a"), IsOk());
  ASSERT_THAT(b->Join("b"), IsOk());
  for (int step = 0; step < 2; ++step) {
    std::thread third([&] {
      if (step == 0) return;
      EXPECT_THAT(late->Join("c"), IsError(Reason::kNoState, HasSubstr("it has no memory")));
      late->Leave();
    });
    std::thread other([&] { EXPECT_THAT(b->Push(3), IsOk()); });
    EXPECT_THAT(a->Push(1), IsOk());
    other.join();
    third.join();
    EXPECT_EQ(a->value(), 2);
  }
  EXPECT_THAT(late->loaded, IsEmpty());
}

// ---- What a worker may not do ----

TEST(HostileStateTest, CallsOutOfTurnChangeNothing) {
  ServerWorld world(Sync(1), ParametersOnly(3));
  auto connection = ConnectTo(world.address().ToString());
  const auto welcome = connection->Join(RequestOf("a", 3));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_THAT(connection->OfferState(welcome->session, std::string("model")),
              IsError(Reason::kBadArgument, HasSubstr("is not asked for the model")));
  EXPECT_THAT(connection->OfferState(SessionId(999), std::string("model")),
              IsError(Reason::kUnknownSession, _));
  EXPECT_THAT(connection->PullState(SessionId(999), absl::nullopt),
              IsError(Reason::kUnknownSession, _));
  v1::OfferStateResponse response;
  const auto context = world.Context();
  const auto writer = world.stub().OfferState(context.get(), &response);
  v1::OfferStateRequest bytes;
  bytes.set_data("model");
  writer->Write(bytes);
  EXPECT_THAT(FromGrpcStatus(writer->Finish()), IsError(Reason::kMissingHeader, _));
}

TEST(HostileStateTest, WhereTheServerHasTheModelThereIsNoneToHandOver) {
  ServerWorld world(Sync(1), ParametersOnly(3));
  auto connection = ConnectTo(world.address().ToString());
  const auto welcome = connection->Join(WorkerRequest("a"));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_THAT(connection->PullState(welcome->session, absl::nullopt),
              IsError(Reason::kBadArgument, HasSubstr("pull its parameters with PullParams")));
  EXPECT_THAT(connection->OfferState(welcome->session, std::string("model")),
              IsError(Reason::kBadArgument, HasSubstr("the server of this job has the model")));
}

TEST(HostileStateTest, AnObserverIsRefused) {
  ServerWorld world(Sync(1), ParametersOnly(3));
  auto connection = ConnectTo(world.address().ToString());
  ASSERT_THAT(connection->Join(RequestOf("a", 3)), IsOk());
  EXPECT_THAT(ConnectTo(world.address().ToString())->Join(ObserverRequest("o")),
              IsError(Reason::kOptimizerMismatch, HasSubstr("mean gradients only")));
}

}  // namespace
}  // namespace sluice
