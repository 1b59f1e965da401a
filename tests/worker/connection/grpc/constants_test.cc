// The constants of a model, between workers and a server over gRPC.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/encoding/checksum.h"
#include "common/tensor/constant_tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"
#include "worker/client/parameter_follower.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three floats that are trained, and three numbers, one flag and nothing that are not.
Layout LayoutWithConstants() {
  return *Layout::Create({{"w", {3}, RangeKind::kParameter, DataType::kFloat32, 0, 3}}, {},
                         {{"order", {3}, "I64"}, {"flag", {}, "BOOL"}, {"nothing", {0, 2}, "F64"}});
}

JoinRequest RequestWith(const std::string& name, const Layout& layout) {
  JoinRequest request = WorkerRequest(name, 3);
  request.layout = layout;
  return request;
}

// A worker's own memory of the constants.
struct Held {
  int64_t order[3] = {};
  bool flag = false;

  ConstantMemory memory() {
    return {absl::MakeSpan(reinterpret_cast<char*>(order), sizeof(order)),
            absl::MakeSpan(reinterpret_cast<char*>(&flag), sizeof(flag)), absl::Span<char>()};
  }
};

class ConstantsTest : public ::testing::Test {
 protected:
  absl::Status Join(const std::string& name, Held& held) {
    auto client = std::make_unique<ParameterClient>(ConnectTo(world_.address().ToString()));
    client->KeepConstants(held.memory());
    parameters_ = {1, 2, 3};
    const absl::Status joined =
        client->Join(RequestWith(name, layout_), absl::MakeSpan(parameters_));
    clients_.push_back(std::move(client));
    return joined;
  }

  // A session whose worker has offered nothing.
  std::pair<std::unique_ptr<ServerConnection>, SessionId> JoinOnly(const std::string& name) {
    auto connection = ConnectTo(world_.address().ToString());
    const auto welcome = connection->Join(RequestWith(name, layout_));
    EXPECT_THAT(welcome, IsOk());
    EXPECT_FALSE(welcome->constants.has_value());
    return {std::move(connection), welcome->session};
  }

  const Layout layout_ = LayoutWithConstants();
  ServerWorld world_{Sync(2), layout_};
  std::vector<std::unique_ptr<ParameterClient>> clients_;
  Values parameters_;  // of the worker that joined last
};

TEST_F(ConstantsTest, OfTheFirstWorkerAreThoseOfAllThatJoin) {
  Held first = {{3, 1, 2}, true};
  Held second = {{7, 8, 9}, false};
  ASSERT_THAT(Join("a", first), IsOk());
  ASSERT_THAT(Join("b", second), IsOk());
  EXPECT_THAT(second.order, ElementsAre(3, 1, 2));
  EXPECT_TRUE(second.flag);
  EXPECT_EQ(clients_[1]->welcome().constants, ChecksumOf(first.memory()));
}

TEST_F(ConstantsTest, AFollowerGetsThemWithItsFirstStep) {
  Held first = {{3, 1, 2}, true};
  ASSERT_THAT(Join("a", first), IsOk());
  JoinRequest request = RequestWith("f", layout_);
  request.role = SessionRole::kObserver;
  ParameterFollower follower(ConnectTo(world_.address().ToString()), request, absl::Seconds(30));
  Held followed;
  ASSERT_THAT(follower.KeepConstants(followed.memory()), IsOk());
  Values parameters(3);
  ASSERT_THAT(follower.Next(1, absl::MakeSpan(parameters)), IsOk());
  EXPECT_THAT(parameters, ElementsAre(1, 2, 3));
  EXPECT_THAT(followed.order, ElementsAre(3, 1, 2));
}

TEST_F(ConstantsTest, OffersOfParametersComeAfterThem) {
  Held held = {{3, 1, 2}, true};
  const auto [connection, session] = JoinOnly("a");
  EXPECT_THAT(connection->Initialize(session, {1, 2, 3}),
              IsError(Reason::kNotInitialized, HasSubstr("no values for the model's 3 constants")));
  EXPECT_THAT(connection->PullConstants(session, 25), IsError(Reason::kNotInitialized, _));
  const auto offered =
      connection->OfferConstants(session, ChecksumOf(held.memory()), held.memory());
  ASSERT_THAT(offered, IsOk());
  EXPECT_EQ(*offered, ChecksumOf(held.memory()));
  EXPECT_THAT(connection->Initialize(session, {1, 2, 3}), IsOk());
}

TEST_F(ConstantsTest, AnOfferOfAnotherSizeIsRefusedAndTheNextOneCounts) {
  Held held = {{3, 1, 2}, true};
  const auto [connection, session] = JoinOnly("a");
  ConstantMemory fewer = held.memory();
  fewer.pop_back();
  fewer.pop_back();
  EXPECT_THAT(connection->OfferConstants(session, ChecksumOf(fewer), fewer),
              IsError(Reason::kBadArgument, HasSubstr("24 bytes, and the constants of the layout "
                                                      "have 25")));
  ConstantMemory more = held.memory();
  more.push_back(more.front());
  EXPECT_THAT(connection->OfferConstants(session, ChecksumOf(more), more),
              IsError(Reason::kBadArgument, HasSubstr("have 25")));
  EXPECT_THAT(connection->OfferConstants(session, ChecksumOf(held.memory()), held.memory()),
              IsOk());
  EXPECT_THAT(connection->OfferConstants(SessionId(77), 0, held.memory()),
              IsError(Reason::kUnknownSession, _));
}

// The message of the offer that comes first is not complete when the second one begins.
TEST_F(ConstantsTest, AnOfferThatBreaksOffGivesWayToTheNext) {
  Held held = {{3, 1, 2}, true};
  const auto [first, session] = JoinOnly("a");
  const auto context = world_.Context();
  v1::OfferConstantsResponse response;
  const auto broken = world_.stub().OfferConstants(context.get(), &response);
  v1::OfferConstantsRequest message;
  message.mutable_header()->set_session(session.value());
  ASSERT_TRUE(broken->Write(message));
  message.set_data("1234");
  ASSERT_TRUE(broken->Write(message));
  const auto [second, other] = JoinOnly("b");
  context->TryCancel();
  EXPECT_THAT(second->OfferConstants(other, ChecksumOf(held.memory()), held.memory()), IsOk());
  EXPECT_EQ(broken->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ConstantsTest, AByteThatIsDamagedOnItsWayIsNoConstant) {
  Held held = {{3, 1, 2}, true};
  const auto [connection, session] = JoinOnly("a");
  const uint64_t sent = ChecksumOf(held.memory());
  held.order[1] = 9;
  EXPECT_THAT(connection->OfferConstants(session, sent, held.memory()),
              IsError(Reason::kCorruptChunk, HasSubstr("damaged")));
  EXPECT_THAT(connection->PullConstants(session, 25), IsError(Reason::kNotInitialized, _));
}

// Its parameters may belong to its constants, which are not the job's.
TEST_F(ConstantsTest, TheParametersAreThoseOfTheWorkerWhoseConstantsAreTheJobs) {
  Held first = {{3, 1, 2}, true};
  Held second = {{7, 8, 9}, false};
  const auto [connection, session] = JoinOnly("a");
  ASSERT_THAT(connection->OfferConstants(session, ChecksumOf(first.memory()), first.memory()),
              IsOk());
  std::thread other([&] { EXPECT_THAT(Join("b", second), IsOk()); });
  ASSERT_TRUE(world_.Await([&] { return world_.shard().Describe().waiting_pulls == 1; }));
  EXPECT_THAT(connection->Initialize(session, {5, 6, 7}), IsOk());
  other.join();
  EXPECT_THAT(parameters_, ElementsAre(5, 6, 7));
}

TEST_F(ConstantsTest, AnotherModelIsRefusedByTheNameOfTheTensor) {
  Held held;
  ASSERT_THAT(Join("a", held), IsOk());
  const auto refused = [&](std::vector<ConstantTensor> constants) {
    const auto other = Layout::Create(layout_.ranges(), {}, std::move(constants));
    return ConnectTo(world_.address().ToString())->Join(RequestWith("b", *other)).status();
  };
  EXPECT_THAT(refused({{"order", {3}, "I32"}, {"flag", {}, "BOOL"}, {"nothing", {0, 2}, "F64"}}),
              IsError(Reason::kLayoutMismatch,
                      HasSubstr("\"order\" [3] I32, the job's is \"order\" [3] I64")));
  EXPECT_THAT(refused({{"order", {3}, "I64"}}),
              IsError(Reason::kLayoutMismatch,
                      HasSubstr("it has 1 tensors that are not trained, the job's has 3; the first "
                                "that it lacks is \"flag\" [] BOOL")));
}

TEST_F(ConstantsTest, MemoryThatDoesNotFitIsRefusedBeforeTheJoin) {
  ParameterClient client(ConnectTo(world_.address().ToString()));
  Held held;
  ConstantMemory memory = held.memory();
  memory.pop_back();
  client.KeepConstants(memory);
  Values parameters = {1, 2, 3};
  EXPECT_THAT(client.Join(RequestWith("a", layout_), absl::MakeSpan(parameters)),
              IsError(Reason::kBadArgument, HasSubstr("memory for 2 constants")));
}

}  // namespace
}  // namespace sluice
