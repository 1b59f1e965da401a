// A worker's connection to a server that sends garbage: it returns errors, never crashes, and never
// writes outside the vector.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/encoding/encoding.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/messages.h"
#include "tests/testing/status.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();

// A server that answers joins, pulls and pushes with the given messages.
class FakeServer final : public v1::ParameterServer::Service {
 public:
  FakeServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  std::vector<v1::JoinEvent> events;
  std::vector<v1::PullParamsResponse> pull;
  v1::PushGradientsResponse pushed;
  v1::PushPullResponse both;

 private:
  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*,
                    grpc::ServerWriter<v1::JoinEvent>* writer) override {
    for (const v1::JoinEvent& event : events) writer->Write(event);
    return grpc::Status::OK;
  }
  grpc::Status PullParams(grpc::ServerContext*, const v1::PullParamsRequest*,
                          grpc::ServerWriter<v1::PullParamsResponse>* writer) override {
    for (const v1::PullParamsResponse& message : pull) writer->Write(message);
    return grpc::Status::OK;
  }
  grpc::Status PullRows(grpc::ServerContext*, const v1::PullRowsRequest*,
                        grpc::ServerWriter<v1::PullParamsResponse>* writer) override {
    for (const v1::PullParamsResponse& message : pull) writer->Write(message);
    return grpc::Status::OK;
  }
  grpc::Status PushGradients(grpc::ServerContext*, grpc::ServerReader<v1::PushGradientsRequest>*,
                             v1::PushGradientsResponse* response) override {
    *response = pushed;
    return grpc::Status::OK;
  }

  grpc::Status PushPull(grpc::ServerContext*, grpc::ServerReader<v1::PushPullRequest>*,
                        v1::PushPullResponse* response) override {
    *response = both;
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

v1::PullParamsResponse HeaderAt(uint64_t step) {
  v1::PullParamsResponse message;
  message.mutable_header()->set_step(step);
  return message;
}

v1::PullParamsResponse NotModifiedAt(uint64_t step) {
  v1::PullParamsResponse message = HeaderAt(step);
  message.mutable_header()->set_not_modified(true);
  return message;
}

v1::PullParamsResponse Chunk(uint64_t offset, const Values& elements) {
  v1::PullParamsResponse message;
  *message.mutable_chunk() = PayloadOf(offset, elements);
  return message;
}

class GrpcConnectionGarbageTest : public ::testing::Test {
 protected:
  // A pull of six parameters that lie in the middle of a larger buffer.
  absl::StatusOr<PullHeader> Pull(const std::vector<v1::PullParamsResponse>& messages,
                                  const PullRequest& request = PullRequest()) {
    server_.pull = messages;
    return ConnectTo(server_.address())->StartPull(request)->Read(Parameters());
  }

  // The same of three rows of two elements.
  absl::StatusOr<PullHeader> PullRows(const std::vector<v1::PullParamsResponse>& messages) {
    server_.pull = messages;
    const auto connection = ConnectTo(server_.address());
    return connection->StartRowPull(PullRequest(), {{0, {1, 2, 3}}})->Read(Parameters());
  }

  // A push of six elements and its pull, of a worker that holds step 4.
  absl::Status PushPull(const v1::PushPullResponse& answer) {
    server_.both = answer;
    PullRequest request;
    request.have_step = Step(4);
    return ConnectTo(server_.address())
        ->PushPull(PushHeader(), Share(Values(6, 1)), request, Parameters())
        .status();
  }

  absl::Status Join(const std::vector<v1::JoinEvent>& events) {
    server_.events = events;
    return ConnectTo(server_.address())->Join(WorkerRequest("a")).status();
  }

  absl::Span<float> Parameters() { return absl::MakeSpan(buffer_).subspan(8, 6); }

  void TearDown() override {
    EXPECT_THAT(absl::MakeSpan(buffer_).first(8), Each(7)) << "before the parameters";
    EXPECT_THAT(absl::MakeSpan(buffer_).last(8), Each(7)) << "behind the parameters";
  }

  FakeServer server_;
  Values buffer_ = Values(22, 7);
};

TEST_F(GrpcConnectionGarbageTest, TakesChunksInAnyOrder) {
  const auto header = Pull({HeaderAt(5), Chunk(4, {5, 6}), Chunk(0, {1, 2, 3, 4})});
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->step, Step(5));
  EXPECT_EQ(ValuesOf(Parameters()), Values({1, 2, 3, 4, 5, 6}));
}

TEST_F(GrpcConnectionGarbageTest, RefusesAChunkThatReachesOutOfTheVector) {
  const auto outside =
      IsError(Reason::kBadChunk, HasSubstr("lies outside the vector of 6 elements"));
  EXPECT_THAT(Pull({HeaderAt(5), Chunk(5, {9, 9})}), outside);
  EXPECT_THAT(Pull({HeaderAt(5), Chunk(0, Values(7, 9))}), outside);
  EXPECT_THAT(Pull({HeaderAt(5), Chunk(6, {9})}), outside);
}

TEST_F(GrpcConnectionGarbageTest, RefusesAChunkWhoseOffsetWouldOverflow) {
  for (const uint64_t offset :
       {uint64_t{1} << 40, kLargest - 1, kLargest, kLargest / sizeof(float)}) {
    EXPECT_THAT(Pull({HeaderAt(5), Chunk(offset, {9, 9, 9})}),
                IsError(Reason::kBadChunk, HasSubstr("lies outside the vector")));
  }
}

TEST_F(GrpcConnectionGarbageTest, RefusesChunksThatOverlap) {
  EXPECT_THAT(Pull({HeaderAt(5), Chunk(0, {1, 2, 3, 4}), Chunk(3, {4, 5, 6})}),
              IsError(Reason::kBadChunk, HasSubstr("overlaps elements before 4")));
}

TEST_F(GrpcConnectionGarbageTest, RefusesAPullThatLacksAChunk) {
  EXPECT_THAT(Pull({HeaderAt(5), Chunk(0, {1, 2, 3, 4})}),
              IsError(Reason::kBadChunk, HasSubstr("elements 4 to 5 are missing")));
}

TEST_F(GrpcConnectionGarbageTest, RefusesOtherRowsThanItHasAskedFor) {
  const Values values = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(PullRows({HeaderAt(5), Chunk(0, values)}), IsOk());
  EXPECT_EQ(ValuesOf(Parameters()), values);
  EXPECT_THAT(PullRows({HeaderAt(5), Chunk(0, Values(8, 9))}),
              IsError(Reason::kBadChunk, HasSubstr("lies outside the vector of 6 elements")));
  EXPECT_THAT(PullRows({HeaderAt(5), Chunk(0, {1, 2, 3, 4})}),
              IsError(Reason::kBadChunk, HasSubstr("elements 4 to 5 are missing")));
  EXPECT_THAT(PullRows({HeaderAt(5), Chunk(0, values), Chunk(2, {9, 9})}),
              IsError(Reason::kBadChunk, HasSubstr("overlaps")));
}

TEST_F(GrpcConnectionGarbageTest, RefusesAnAnswerToAPullOfRowsThatHasNone) {
  v1::PullParamsResponse shared = HeaderAt(5);
  shared.mutable_header()->mutable_shared()->set_generation(1);
  const auto refused = HasCode(absl::StatusCode::kInternal, HasSubstr("answer to PullRows has no"));
  EXPECT_THAT(PullRows({}), refused);
  EXPECT_THAT(PullRows({Chunk(0, {1, 2})}), refused);
  EXPECT_THAT(PullRows({NotModifiedAt(5)}), refused);
  EXPECT_THAT(PullRows({HeaderAt(5), HeaderAt(5)}), refused);
  EXPECT_THAT(PullRows({shared}), refused);
}

v1::PushPullResponse AnswerAt(uint64_t step) {
  v1::PushPullResponse answer;
  answer.mutable_push()->set_disposition(v1::APPLIED);
  answer.mutable_pull()->set_step(step);
  *answer.mutable_parameters() = PayloadOf(0, {1, 2, 3, 4, 5, 6});
  return answer;
}

TEST_F(GrpcConnectionGarbageTest, RefusesAnAnswerToAPushAndPullThatLacksAPart) {
  const auto refused = HasCode(absl::StatusCode::kInternal, HasSubstr("answer to PushPull has no"));
  v1::PushPullResponse answer = AnswerAt(5);
  answer.clear_pull();
  EXPECT_THAT(PushPull(answer), refused);
  answer = AnswerAt(5);
  answer.clear_parameters();
  EXPECT_THAT(PushPull(answer), refused);
  answer.mutable_pull()->set_not_modified(true);
  EXPECT_THAT(PushPull(answer), refused);  // the worker holds another step
  answer = AnswerAt(5);
  answer.clear_push();
  EXPECT_THAT(PushPull(answer), refused);
  EXPECT_THAT(Parameters(), Each(7));
  EXPECT_THAT(PushPull(AnswerAt(5)), IsOk());
  EXPECT_EQ(ValuesOf(Parameters()), Values({1, 2, 3, 4, 5, 6}));
}

TEST_F(GrpcConnectionGarbageTest, RefusesParametersOfAPushAndPullThatAreNotAllOfThem) {
  const auto refused = IsError(Reason::kBadChunk, HasSubstr("expected all 6, not encoded"));
  v1::PushPullResponse answer = AnswerAt(5);
  *answer.mutable_parameters() = PayloadOf(0, Values(5, 9));
  EXPECT_THAT(PushPull(answer), refused);
  *answer.mutable_parameters() = PayloadOf(0, Values(7, 9));
  EXPECT_THAT(PushPull(answer), refused);
  *answer.mutable_parameters() = PayloadOf(kLargest, Values(6, 9));
  EXPECT_THAT(PushPull(answer), refused);
  answer = AnswerAt(5);
  answer.mutable_parameters()->mutable_encoding()->set_count(6);
  answer.mutable_parameters()->set_checksum(0);
  EXPECT_FALSE(PushPull(answer).ok());
  answer = AnswerAt(5);
  answer.mutable_parameters()->set_checksum(1);
  EXPECT_THAT(PushPull(answer), IsError(Reason::kCorruptChunk, HasSubstr("checksum")));
  answer = AnswerAt(5);
  answer.mutable_parameters()->set_payload("123456");
  EXPECT_THAT(PushPull(answer), IsError(Reason::kBadChunk, HasSubstr("multiple of 4")));
  EXPECT_THAT(Parameters(), Each(7));
}

// What decodes the rows is not the connection's.
TEST_F(GrpcConnectionGarbageTest, ReadsRowsThatWereAskedForWhenTheConnectionIsGone) {
  server_.pull = {HeaderAt(5), Chunk(0, {1, 2, 3, 4, 5, 6})};
  auto connection = ConnectTo(server_.address());
  connection->UsePullEncoding(*ParseEncoding("bfloat16"));
  const auto pull = connection->StartRowPull(PullRequest(), {{0, {1, 2, 3}}});
  connection = nullptr;
  EXPECT_THAT(pull->Read(Parameters()), IsOk());
}

// The caller's parameters are a mixture only after the third.
TEST_F(GrpcConnectionGarbageTest, TellsWhetherAPullThatFailedHasWrittenToTheParameters) {
  const auto wrote = [this](const std::vector<v1::PullParamsResponse>& messages) {
    server_.pull = messages;
    const auto connection = ConnectTo(server_.address());
    const auto pull = connection->StartPull(PullRequest());
    EXPECT_FALSE(pull->Read(Parameters()).ok());
    return pull->wrote();
  };
  EXPECT_FALSE(wrote({}));
  EXPECT_FALSE(wrote({HeaderAt(5)}));
  EXPECT_TRUE(wrote({HeaderAt(5), Chunk(0, {1, 2, 3, 4})}));
  EXPECT_FALSE(wrote({HeaderAt(5), Chunk(5, {9, 9})}));
}

TEST_F(GrpcConnectionGarbageTest, RefusesBrokenElements) {
  v1::PullParamsResponse broken;
  broken.mutable_chunk()->set_payload("12345");
  EXPECT_THAT(Pull({HeaderAt(5), broken}),
              IsError(Reason::kBadChunk, HasSubstr("has 5 bytes, expected a multiple of 4")));
}

TEST_F(GrpcConnectionGarbageTest, RefusesAPullWithoutAHeader) {
  const auto headerless =
      HasCode(absl::StatusCode::kInternal, HasSubstr("answer to PullParams has no header"));
  EXPECT_THAT(Pull({}), headerless);
  EXPECT_THAT(Pull({Chunk(0, Values(6, 9))}), headerless);
  EXPECT_THAT(Pull({v1::PullParamsResponse()}), headerless);
}

TEST_F(GrpcConnectionGarbageTest, RefusesASecondHeaderAmongTheChunks) {
  EXPECT_THAT(Pull({HeaderAt(5), Chunk(0, {1, 2, 3}), HeaderAt(6)}),
              HasCode(absl::StatusCode::kInternal, HasSubstr("answer to PullParams has no chunk")));
}

TEST_F(GrpcConnectionGarbageTest, RefusesToTakeNothingForParametersItDoesNotHold) {
  const auto nothing =
      HasCode(absl::StatusCode::kInternal, HasSubstr("answer to PullParams has no parameters"));
  EXPECT_THAT(Pull({NotModifiedAt(5)}), nothing);
  PullRequest request;
  request.have_step = Step(4);
  EXPECT_THAT(Pull({NotModifiedAt(5)}, request), nothing);
}

TEST_F(GrpcConnectionGarbageTest, RefusesChunksOfParametersThatAreNotModified) {
  PullRequest request;
  request.have_step = Step(5);
  EXPECT_THAT(Pull({NotModifiedAt(5), Chunk(0, Values(6, 9)), Chunk(0, Values(6, 9))}, request),
              HasCode(absl::StatusCode::kInternal, HasSubstr("answer to PullParams has no end")));
  EXPECT_EQ(ValuesOf(Parameters()), Values(6, 7));
}

TEST_F(GrpcConnectionGarbageTest, RefusesASessionWithoutAWelcome) {
  const auto unwelcome =
      HasCode(absl::StatusCode::kInternal, HasSubstr("answer to Join has no welcome"));
  v1::JoinEvent draining;
  draining.mutable_draining();
  EXPECT_THAT(Join({draining}), unwelcome);
  EXPECT_THAT(Join({v1::JoinEvent()}), unwelcome);
}

TEST_F(GrpcConnectionGarbageTest, RefusesAWelcomeToAJobOfUnknownMode) {
  v1::JoinEvent event;
  event.mutable_welcome()->set_session(1);
  EXPECT_THAT(Join({event}), IsError(Reason::kBadArgument, HasSubstr("consistency.mode")));
}

TEST_F(GrpcConnectionGarbageTest, SaysThatTheServerEndedTheSession) {
  EXPECT_THAT(Join({}), HasCode(absl::StatusCode::kUnavailable, HasSubstr("ended the session")));
}

TEST_F(GrpcConnectionGarbageTest, RefusesAPushWithoutADisposition) {
  EXPECT_THAT(PushThrough(*ConnectTo(server_.address()), PushHeader(), Share({1, 2, 3})),
              IsError(Reason::kBadArgument, HasSubstr("field disposition is 0")));
}

}  // namespace
}  // namespace sluice
