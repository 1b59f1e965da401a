// The service Sequencer over a real connection, and a replica that is made of its messages.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/error.h"
#include "common/base/version.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/servers/grpc_replica_link.h"
#include "server/rpc/servers/replica_links.h"
#include "sluice/v1/sequencer.grpc.pb.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kReplica = 7;  // nonces of processes
constexpr uint64_t kLeader = 9;
constexpr absl::Duration kLease = absl::Seconds(10);

using Stream = grpc::ClientReaderWriter<v1::HolderMessage, v1::SequencerMessage>;

// One call of Follow.
class Following {
 public:
  Following(v1::Sequencer::Stub& stub, const v1::HolderMessage& hello) {
    stream_ = stub.Follow(&context_);
    stream_->Write(hello);
  }
  ~Following() { Cancel(); }

  // The next message; one without fields if the call has ended.
  v1::SequencerMessage Read() {
    v1::SequencerMessage message;
    stream_->Read(&message);
    return message;
  }
  void Write(const v1::HolderMessage& message) { stream_->Write(message); }
  absl::Status End() {
    v1::SequencerMessage message;
    while (stream_->Read(&message)) continue;
    ended_ = true;
    return FromGrpcStatus(stream_->Finish());
  }
  void Cancel() {
    if (ended_) return;
    context_.TryCancel();
    End().IgnoreError();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  bool ended_ = false;
};

class FollowTest : public ::testing::Test {
 protected:
  FollowTest() {
    links_.Listen(
        [this](uint32_t replica, const ReplicaReport& report) {
          absl::MutexLock lock(&mu_);
          heard_.emplace_back(replica, report);
        },
        [this](const ReplicaLoss& loss) {
          absl::MutexLock lock(&mu_);
          lost_.push_back(loss.why);
        });
    service_ = MakeGrpcSequencer(links_);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::Sequencer::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }
  ~FollowTest() override {
    links_.Close(absl::UnavailableError("the test is over"));
    server_->Shutdown();
  }

  static v1::HolderMessage Hello(uint64_t taken = 0) {
    v1::HolderMessage message;
    message.set_taken(taken);
    v1::HolderHello& hello = *message.mutable_hello();
    hello.set_job_id("job");
    hello.set_index(1);
    hello.set_servers(3);
    hello.set_process_nonce(kReplica);
    hello.set_address("unix:/replica");
    hello.set_version(kVersion);
    return message;
  }

  std::unique_ptr<Following> Follow(const v1::HolderMessage& hello) {
    return std::make_unique<Following>(*stub_, hello);
  }
  absl::Status Refused(const v1::HolderMessage& hello) { return Follow(hello)->End(); }

  // What the link of replica 1 is told.
  void Send(const ReplicaCommand& command) { links_.links()[0]->Send(command); }
  void OpenSmallModel() {
    Send(OpenModel{std::make_shared<const Layout>(ParametersOnly(100)), {SgdOptions()}});
  }

  static v1::HolderMessage Have(uint64_t number, uint64_t push) {
    v1::HolderMessage message;
    message.set_number(number);
    message.mutable_have()->set_push(push);
    return message;
  }

  void AwaitAway() const {
    while (links_.Away().empty()) std::this_thread::yield();
  }

  // Waits for so many reports. Returns the pushes that they are on.
  std::vector<uint64_t> Heard(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto enough = [&] { return heard_.size() >= count || !lost_.empty(); };
    mu_.Await(absl::Condition(&enough));
    std::vector<uint64_t> pushes;
    for (const auto& report : heard_) {
      EXPECT_EQ(report.first, 1u);
      pushes.push_back(std::get<HaveReport>(report.second).push.value());
    }
    return pushes;
  }
  std::vector<std::string> lost() {
    absl::MutexLock lock(&mu_);
    return lost_;
  }

  absl::Mutex mu_;
  std::vector<std::pair<uint32_t, ReplicaReport>> heard_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> lost_ ABSL_GUARDED_BY(mu_);
  FakeClock clock_;
  ReplicaLinks links_{{"job", 3, Incarnation(4), SessionId(9000), ProcessNonce(kLeader), kLease},
                      clock_};
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Sequencer::Stub> stub_;
};

TEST_F(FollowTest, TellsWhoItIsAndWhatItSent) {
  Send(OpenSession{SessionId(5)});
  const auto call = Follow(Hello());
  const v1::SequencerMessage hello = call->Read();
  EXPECT_EQ(hello.number(), 0u);
  EXPECT_EQ(hello.hello().job_id(), "job");
  EXPECT_EQ(hello.hello().process_nonce(), kLeader);
  EXPECT_EQ(hello.hello().incarnation(), 4u);
  EXPECT_EQ(hello.hello().session_base(), 9000u);
  const v1::SequencerMessage first = call->Read();
  EXPECT_EQ(first.number(), 1u);
  EXPECT_EQ(first.open_session().session(), 5u);
  Send(EndJob{3});
  EXPECT_EQ(call->Read().end_job().exit_code(), 3);
}

TEST_F(FollowTest, SendsAgainWhatAnEarlierCallHasLost) {
  auto call = Follow(Hello());
  call->Read();
  for (uint64_t i = 1; i <= 3; ++i) Send(OpenSession{SessionId(i)});
  EXPECT_EQ(call->Read().number(), 1u);
  call->Cancel();
  call = Follow(Hello(/*taken=*/1));
  EXPECT_TRUE(call->Read().has_hello());
  EXPECT_EQ(call->Read().number(), 2u);
  EXPECT_EQ(call->Read().open_session().session(), 3u);
}

TEST_F(FollowTest, HearsEachReportOnceAndInOrder) {
  auto call = Follow(Hello());
  call->Read();
  OpenSmallModel();
  call->Read();
  call->Write(Have(1, 11));
  call->Write(Have(1, 11));  // again
  call->Write(Have(3, 13));  // after a gap
  call->Write(Have(2, 12));
  EXPECT_THAT(Heard(2), ElementsAre(11, 12));
  links_.Tick();
  EXPECT_EQ(call->Read().taken(), 2u);
  call->Cancel();
  call = Follow(Hello(/*taken=*/1));
  EXPECT_EQ(call->Read().taken(), 2u);
  call->Write(Have(2, 12));
  call->Write(Have(3, 13));
  EXPECT_THAT(Heard(3), ElementsAre(11, 12, 13));
}

// While a replica is silent, no step waits too long for a worker.
TEST_F(FollowTest, AReplicaThatLetsNothingBeHeardIsSilent) {
  const ReplicaLink& link = *links_.links()[0];
  clock_.Advance(absl::Hours(1));
  EXPECT_FALSE(link.silent());  // it has not come
  const auto call = Follow(Hello());
  call->Read();
  clock_.Advance(GrpcReplicaLink::kSilence);
  EXPECT_FALSE(link.silent());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(link.silent());
  call->Write(v1::HolderMessage());  // a sign of life
  while (link.silent()) std::this_thread::yield();
  call->Cancel();
  AwaitAway();
  EXPECT_TRUE(link.silent());
}

TEST_F(FollowTest, DescribesEachServerAndWhatReplicasTell) {
  links_.SetAddress("unix:/first");
  const auto call = Follow(Hello());
  call->Read();
  OpenSmallModel();
  call->Read();
  clock_.Advance(absl::Seconds(3));
  v1::HolderMessage told;
  told.mutable_figures()->set_step(17);
  told.mutable_figures()->set_wire_bytes_received(400);
  told.mutable_figures()->set_wire_bytes_sent(300);
  v1::HolderTable& table = *told.mutable_figures()->add_tables();
  table.set_rows(5);
  table.set_hits(4);
  table.set_ages(2.5);
  for (const uint64_t id : {8, 9}) {
    table.add_hottest(id);
    table.add_hottest_reads(100 * id);
  }
  table.add_hottest(7);  // without a number of reads
  for (uint64_t session = 1; session <= 300; ++session) {
    told.mutable_figures()->add_pulling(session);
  }
  call->Write(told);
  call->Write(Have(1, 11));
  EXPECT_THAT(Heard(1), ElementsAre(11));
  const std::vector<ServerStatus> servers = links_.Describe();
  ASSERT_THAT(servers, SizeIs(3));
  EXPECT_EQ(servers[0].address, "unix:/first");
  EXPECT_EQ(servers[1].address, "unix:/replica");
  EXPECT_TRUE(servers[1].connected);
  EXPECT_EQ(servers[1].unchanged, absl::Seconds(3));
  TableStatus expected;
  expected.rows = 5;
  expected.hits = 4;
  expected.ages = 2.5;
  expected.hottest = {{8, 800}, {9, 900}};
  StripeFigures figures = servers[1].figures;
  EXPECT_EQ(figures.pulling.size(), 256);
  EXPECT_EQ(figures.pulling.back(), SessionId(256));
  figures.pulling.clear();
  EXPECT_EQ(figures, (StripeFigures{Step(17), 400, 300, {expected}}));
  EXPECT_EQ(servers[2].address, "");
  EXPECT_FALSE(servers[2].connected);
  EXPECT_FALSE(servers[2].unchanged.has_value());
}

TEST_F(FollowTest, TheSameProcessMayCallAgainBeforeItsCallHasEnded) {
  const auto first = Follow(Hello());
  first->Read();
  const auto second = Follow(Hello());
  EXPECT_TRUE(second->Read().has_hello());
  EXPECT_THAT(first->End(), HasCode(absl::StatusCode::kUnavailable, HasSubstr("called again")));
  EXPECT_TRUE(links_.states()[0].connected);
}

TEST_F(FollowTest, CutsALargeModel) {
  const auto call = Follow(Hello());
  call->Read();
  Send(OpenModel{std::make_shared<const Layout>(ManyTensors(100000)), {SgdOptions()}});
  std::string bytes;
  v1::SequencerMessage message;
  do {
    message = call->Read();
    EXPECT_EQ(message.number(), 1u);
    bytes += message.part().bytes();
  } while (message.part().more());
  ASSERT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.open_model().layout().ranges_size(), 100000);
}

// ---- Refusals ----

TEST_F(FollowTest, RefusesAForeignReplica) {
  v1::HolderMessage hello = Hello();
  hello.mutable_hello()->set_job_id("other");
  EXPECT_THAT(Refused(hello), IsError(Reason::kWrongJob, HasSubstr("runs the job job, not")));
  hello = Hello();
  hello.mutable_hello()->set_servers(4);
  EXPECT_THAT(Refused(hello), IsError(Reason::kWrongJob, HasSubstr("has 3 servers, not 4")));
  hello = Hello();
  hello.mutable_hello()->set_version("0.0.1");
  EXPECT_THAT(Refused(hello), IsError(Reason::kVersionMismatch, HasSubstr("0.0.1")));
  hello = Hello();
  hello.mutable_hello()->set_sequencer_nonce(kLeader + 1);
  EXPECT_THAT(Refused(hello), IsError(Reason::kNotInitialized, HasSubstr("started again")));
  EXPECT_FALSE(links_.states()[0].connected);
}

TEST_F(FollowTest, RefusesAHelloThatIsOutOfRange) {
  for (const uint32_t index : {0u, 3u, 4294967295u}) {
    v1::HolderMessage hello = Hello();
    hello.mutable_hello()->set_index(index);
    EXPECT_THAT(Refused(hello), IsError(Reason::kBadArgument, HasSubstr("field index")));
  }
  v1::HolderMessage hello = Hello();
  hello.mutable_hello()->set_process_nonce(0);
  EXPECT_THAT(Refused(hello), IsError(Reason::kBadArgument, HasSubstr("field process_nonce")));
  hello = Hello();
  hello.mutable_hello()->set_address(std::string(300, 'x'));
  EXPECT_THAT(Refused(hello), IsError(Reason::kBadArgument, HasSubstr("field address")));
  EXPECT_THAT(Refused(Hello(/*taken=*/1)), IsError(Reason::kBadArgument, HasSubstr("field taken")));
  EXPECT_THAT(Refused(Have(1, 1)), IsError(Reason::kBadArgument, HasSubstr("field hello")));
}

TEST_F(FollowTest, RefusesASecondProcessWithTheSameIndex) {
  const auto first = Follow(Hello());
  first->Read();
  v1::HolderMessage hello = Hello();
  hello.mutable_hello()->set_process_nonce(kReplica + 1);
  // It may be the same server, started again before its end was seen.
  for (const absl::Duration passes : {absl::ZeroDuration(), absl::Milliseconds(1999)}) {
    clock_.Advance(passes);
    const absl::Status refused = Refused(hello);
    EXPECT_THAT(refused, HasCode(absl::StatusCode::kUnavailable, HasSubstr("has not ended yet")));
    EXPECT_EQ(ReasonOf(refused), Reason::kNone);  // so it calls again
  }
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(Refused(hello),
              IsError(Reason::kBadArgument, HasSubstr("another process follows as server 1 of 3")));
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(FollowTest, AReplicaThatCameBackEmptyIsLost) {
  auto call = Follow(Hello());
  call->Read();
  OpenSmallModel();
  call->Read();
  call->Write(Have(1, 1));
  Heard(1);
  call->Cancel();
  v1::HolderMessage hello = Hello();
  hello.mutable_hello()->set_process_nonce(kReplica + 1);
  absl::Status refused = Refused(hello);
  while (absl::StrContains(refused.message(), "not ended yet")) refused = Refused(hello);
  EXPECT_THAT(refused, HasCode(absl::StatusCode::kUnavailable, HasSubstr("which may return")));
  EXPECT_THAT(lost(), IsEmpty());
  clock_.Advance(kLease + absl::Milliseconds(1));
  links_.Tick();
  EXPECT_THAT(lost(), ElementsAre(HasSubstr("has been away")));
  EXPECT_THAT(Refused(hello), IsError(Reason::kNotInitialized, HasSubstr("was started again")));
}

TEST_F(FollowTest, AReplicaThatIsAwayForLongerThanTheLeaseIsLost) {
  auto call = Follow(Hello());
  call->Read();
  OpenSmallModel();
  EXPECT_EQ(links_.Away(), "");
  call->Cancel();
  AwaitAway();
  EXPECT_EQ(links_.Away(), "server 1 of 3, at unix:/replica, is away");
  clock_.Advance(kLease);
  links_.Tick();
  EXPECT_THAT(lost(), IsEmpty());
  clock_.Advance(absl::Milliseconds(1));
  links_.Tick();
  links_.Tick();
  EXPECT_THAT(lost(), ElementsAre("server 1 of 3, at unix:/replica, has been away for longer than "
                                  "the lease of 10s, and its part of the parameters is lost; the "
                                  "job cannot go on"));
}

TEST_F(FollowTest, AReplicaThatIsConnectedOrWasToldNothingIsNotLost) {
  auto call = Follow(Hello());
  call->Read();
  call->Cancel();
  AwaitAway();
  clock_.Advance(2 * kLease);
  links_.Tick();
  call = Follow(Hello());
  call->Read();
  OpenSmallModel();
  call->Read();
  clock_.Advance(2 * kLease);
  links_.Tick();
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(FollowTest, AReplicaThatBreaksTheProtocolIsLost) {
  const auto call = Follow(Hello());
  call->Read();
  OpenSmallModel();
  v1::HolderMessage carried;
  carried.set_number(1);
  carried.mutable_carried();
  call->Write(carried);
  EXPECT_THAT(call->End(), IsError(Reason::kBadArgument, HasSubstr("but it has none")));
  EXPECT_THAT(lost(), ElementsAre(HasSubstr("server 1 of 3 breaks the protocol")));
  EXPECT_THAT(Heard(0), IsEmpty());
}

TEST_F(FollowTest, NamesTheServerThatHasNotCome) {
  EXPECT_THAT(links_.Addresses(),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("server 0 of 3 has not come yet")));
  links_.SetAddress("unix:/first");
  const auto call = Follow(Hello());
  call->Read();
  EXPECT_THAT(links_.Addresses(),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("server 2 of 3 has not come yet")));
  v1::HolderMessage hello = Hello();
  hello.mutable_hello()->set_index(2);
  hello.mutable_hello()->set_address("unix:/second");
  const auto other = Follow(hello);
  other->Read();
  EXPECT_THAT(*links_.Addresses(), ElementsAre("unix:/first", "unix:/replica", "unix:/second"));
}

}  // namespace
}  // namespace sluice
