#include "server/server.h"

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/error.h"
#include "common/net/private_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/admin.grpc.pb.h"
#include "tests/testing/json.h"
#include "tests/testing/outcome.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

ServerOptions On(const Address& address, const ShardOptions& shard = Sync(1)) {
  ServerOptions options;
  options.shard = shard;
  options.listen = address;
  return options;
}

Address Tcp(uint16_t port) {
  Address address;
  address.host = "127.0.0.1";
  address.port = port;
  return address;
}

Address Unix(const std::string& path) {
  Address address;
  address.unix_path = path;
  return address;
}

// ---- Listening ----

TEST(ServerTest, ListensOnAFreePort) {
  const auto server = Server::Start(On(Tcp(0)));
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ((*server)->address().host, "127.0.0.1");
  EXPECT_NE((*server)->address().port, 0);
}

TEST(ServerTest, NamesThePortThatAnotherServerHas) {
  const auto first = Server::Start(On(Tcp(0)));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(Server::Start(On((*first)->address())),
              HasCode(absl::StatusCode::kUnavailable,
                      HasSubstr(absl::StrCat("cannot listen on ", (*first)->address().ToString(),
                                             ": Address already in use"))));
}

TEST(ServerTest, TakesAPortAgainOnceItIsFree) {
  const Address address = Tcp(FreePort());
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Server::Start(On(address)), IsOk());
}

TEST(ServerTest, NamesTheHostThatIsNotThisMachine) {
  Address address = Tcp(0);
  address.host = "192.0.2.1";  // for documentation only, RFC 5737
  EXPECT_THAT(Server::Start(On(address)),
              HasCode(absl::StatusCode::kUnavailable,
                      HasSubstr("cannot listen on 192.0.2.1:0: Cannot assign requested address")));
}

TEST(ServerTest, LeavesTheSocketOfALivingServerAlone) {
  const auto directory = PrivateDirectory::Create();  // a test's own has too long a path
  ASSERT_THAT(directory, IsOk());
  const std::string path = (*directory)->path() + "/living.sock";
  const auto first = Server::Start(On(Unix(path)));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(Server::Start(On(Unix(path))),
              HasCode(absl::StatusCode::kUnavailable,
                      HasSubstr(absl::StrCat("cannot listen on unix:", path, ": another server"))));
  EXPECT_NE(ConnectTo((*first)->address().ToString()), nullptr);
}

TEST(ServerTest, TakesTheSocketThatADeadServerLeft) {
  const auto directory = PrivateDirectory::Create();
  ASSERT_THAT(directory, IsOk());
  const std::string path = (*directory)->path() + "/dead.sock";
  const int corpse = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  ASSERT_EQ(bind(corpse, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(corpse, 1), 0);
  close(corpse);
  EXPECT_THAT(Server::Start(On(Unix(path))), IsOk());
}

TEST(ServerTest, NamesTheDirectoryThatIsNotThere) {
  EXPECT_THAT(
      Server::Start(On(Unix("/nonexistent/server.sock"))),
      HasCode(absl::StatusCode::kUnavailable,
              AllOf(HasSubstr("unix:/nonexistent/server.sock"), HasSubstr("No such file"))));
}

TEST(ServerTest, SaysThatASocketsPathIsTooLong) {
  EXPECT_THAT(Server::Start(On(Unix("/tmp/" + std::string(200, 'x')))),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("more than 107 bytes")));
}

TEST(ServerTest, RemovesItsPrivateDirectory) {
  ServerOptions options;
  options.shard = Sync(1);
  auto server = Server::Start(options);
  ASSERT_THAT(server, IsOk());
  const std::filesystem::path socket((*server)->address().unix_path);
  EXPECT_TRUE(std::filesystem::exists(socket));
  *server = nullptr;
  EXPECT_FALSE(std::filesystem::exists(socket.parent_path()));
}

// ---- Serving ----

// A server on a thread of its own, with the signals of its own.
class ServingWorld {
 public:
  // `after` is called when it has served.
  explicit ServingWorld(
      ServerOptions options,
      const std::function<void(const Server&)>& after = [](const Server&) {}) {
    thread_ = std::thread([this, options, after] {
      const std::unique_ptr<Server> server = Server::Start(options).value();
      server_ = server.get();
      serves_.Notify();
      code_ = server_->Serve();
      counters_ = Columns(server_->shard().Describe().counters);
      phase_ = server_->shard().Describe().phase;
      after(*server_);
    });
    serves_.WaitForNotification();
  }
  ~ServingWorld() {
    if (!thread_.joinable()) return;
    Signal(SIGTERM);
    Wait();
  }

  std::string address() const { return server_->address().ToString(); }
  std::unique_ptr<ServerConnection> Connect() { return ConnectTo(address()); }

  void Signal(int signal) { pthread_kill(thread_.native_handle(), signal); }

  // Waits for the end; tells the exit code.
  int Wait() {
    thread_.join();
    return code_;
  }
  const std::string& counters() const { return counters_; }
  Phase phase() const { return phase_; }

 private:
  std::thread thread_;
  absl::Notification serves_;
  Server* server_ = nullptr;
  int code_ = -1;
  std::string counters_;
  Phase phase_ = Phase::kWaitingForWorkers;
};

// For those that are lost; who is there has time enough to say so.
constexpr absl::Duration kShortLease = absl::Seconds(5);

ServerOptions Serving(const ShardOptions& shard) {
  ServerOptions options;
  options.shard = shard;
  return options;
}

// A worker in session, whose model has three parameters.
class SessionOf {
 public:
  SessionOf(ServingWorld& world, const std::string& name, SessionRole role = SessionRole::kWorker)
      : client_(world.Connect()) {
    JoinRequest request = WorkerRequest(name);
    request.role = role;
    EXPECT_THAT(client_.Join(request, absl::MakeSpan(parameters_)), IsOk());
  }

  absl::Status Train(absl::optional<float> loss = absl::nullopt) {
    return client_.PushPull(Share({1, 1, 1}), 1, loss, absl::MakeSpan(parameters_)).status();
  }
  absl::Status AwaitEnd() { return client_.AwaitEnd(absl::MakeSpan(parameters_)); }
  absl::Status Leave() { return client_.Leave({}); }

 private:
  ParameterClient client_;
  Values parameters_ = {0, 0, 0};
};

TEST(ServerServeTest, EndsOnceEveryWorkerHasLeft) {
  ServingWorld world(Serving(Sync(2)));
  {
    SessionOf a(world, "a");
    SessionOf b(world, "b");
    std::thread other([&b] { EXPECT_THAT(b.Train(), IsOk()); });
    EXPECT_THAT(a.Train(), IsOk());
    other.join();
    EXPECT_THAT(a.Leave(), IsOk());
    EXPECT_THAT(b.Leave(), IsOk());
  }
  EXPECT_EQ(world.Wait(), 0);
  EXPECT_EQ(world.counters(), "2 received: 2 accepted");
  EXPECT_EQ(world.phase(), Phase::kFinished);
}

// The events of a JSON log in the order in which each came first.
std::vector<std::string> EventsIn(const std::string& path) {
  std::vector<std::string> events;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::string event = JsonAt(line, "event");
    if (std::count(events.begin(), events.end(), event) == 0) events.push_back(event);
  }
  return events;
}

TEST(ServerServeTest, LogsTheEventsOfTheJob) {
  ServerOptions options = Serving(Sync(1));
  options.event_files.json_log = ::testing::TempDir() + "/job.jsonl";
  options.event_files.tensorboard = ::testing::TempDir() + "/board";
  std::filesystem::remove_all(options.event_files.tensorboard);
  std::filesystem::remove(options.event_files.json_log);
  ServingWorld world(options);
  {
    SessionOf a(world, "a");
    EXPECT_THAT(a.Train(2.5), IsOk());
    EXPECT_THAT(a.Leave(), IsOk());
  }
  EXPECT_EQ(world.Wait(), 0);
  const std::vector<std::string> events = EventsIn(options.event_files.json_log);
  EXPECT_THAT(events, UnorderedElementsAre("started", "joined", "left", "step", "finished"));
  EXPECT_EQ(events.front(), "started");
  EXPECT_EQ(events.back(), "finished");
  const std::filesystem::directory_iterator written(options.event_files.tensorboard);
  EXPECT_THAT(written->path().filename().string(), StartsWith("events.out.tfevents."));
  EXPECT_GT(written->file_size(), 100);
}

TEST(ServerTest, NamesTheFileOfEventsThatCannotBeWritten) {
  ServerOptions options = On(Tcp(0));
  options.event_files.json_log = "/nonexistent/job.jsonl";
  EXPECT_THAT(Server::Start(options),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("cannot write /nonexistent/job.jsonl: No such file")));
}

TEST(ServerServeTest, StaysUntilTheObserverHasLeftToo) {
  ServingWorld world(Serving(Sync(1)));
  {
    SessionOf a(world, "a");
    SessionOf observer(world, "o", SessionRole::kObserver);
    EXPECT_THAT(a.Leave(), IsOk());
    EXPECT_THAT(observer.AwaitEnd(), IsOk());
    EXPECT_THAT(observer.Leave(), IsOk());
  }
  EXPECT_EQ(world.Wait(), 0);
}

TEST(ServerServeTest, FailsIfEveryWorkerWasLost) {
  ShardOptions shard = Sync(1);
  shard.lease = kShortLease;
  ServingWorld world(Serving(shard));
  { SessionOf a(world, "a"); }
  EXPECT_EQ(world.Wait(), 3);
  EXPECT_EQ(world.phase(), Phase::kFinished);
}

TEST(ServerServeTest, SucceedsIfOneOfTheWorkersLeftInGoodOrder) {
  ShardOptions shard = Sync(2);
  shard.lease = kShortLease;
  ServingWorld world(Serving(shard));
  {
    SessionOf a(world, "a");
    SessionOf b(world, "b");
    EXPECT_THAT(a.Leave(), IsOk());
  }
  EXPECT_EQ(world.Wait(), 0);
}

TEST(ServerServeTest, TrainsWithWhoIsThereOnceTheStartTimeoutIsOver) {
  ShardOptions shard = Sync(3);
  shard.start_timeout = absl::ZeroDuration();
  ServingWorld world(Serving(shard));
  {
    SessionOf a(world, "a");
    EXPECT_THAT(a.Train(), IsOk());
    EXPECT_THAT(a.Leave(), IsOk());
  }
  EXPECT_EQ(world.Wait(), 0);
}

TEST(ServerServeTest, WaitsForMoreWorkersIfToldTo) {
  ServerOptions options = Serving(Sync(1));
  options.exit_when_finished = false;
  ServingWorld world(options);
  for (const char* name : {"a", "b"}) {
    SessionOf worker(world, name);
    EXPECT_THAT(worker.Train(), IsOk());
    EXPECT_THAT(worker.Leave(), IsOk());
  }
  world.Signal(SIGTERM);
  EXPECT_EQ(world.Wait(), 0);
  EXPECT_EQ(world.counters(), "2 received: 2 accepted");
}

TEST(ServerServeTest, DrainsWhenItIsTerminated) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ServingWorld world(Serving(Sync(1)));
    {
      SessionOf a(world, "a");
      SessionOf observer(world, "o", SessionRole::kObserver);
      world.Signal(signal);
      EXPECT_THAT(observer.AwaitEnd(),
                  HasCode(absl::StatusCode::kUnavailable, HasSubstr("went down")));
    }
    EXPECT_EQ(world.Wait(), 0);
    EXPECT_EQ(world.phase(), Phase::kDraining);
  }
}

ServerOptions Stopping(ServerOptions options) {
  options.shard.guards.on_divergence = DivergenceAction::kStop;
  return options;
}

void TrainTimes(SessionOf& worker, int times, float loss) {
  for (int i = 0; i < times; ++i) ASSERT_THAT(worker.Train(loss), IsOk());
}

// A worker that has done its part, while another one diverges.
TEST(ServerServeTest, TellsThoseWhoWaitForTheEndThatTrainingDiverged) {
  ServingWorld world(Stopping(Serving(Sync(1))));
  {
    SessionOf a(world, "a");
    SessionOf observer(world, "o", SessionRole::kObserver);
    TrainTimes(a, 64, 2);
    TrainTimes(a, 146, 7);
    EXPECT_THAT(a.Train(7), IsError(Reason::kDiverged, HasSubstr("because training diverges")));
    EXPECT_THAT(observer.AwaitEnd(),
                IsError(Reason::kDiverged, HasSubstr("because training diverges")));
  }
  EXPECT_EQ(world.Wait(), 7);
}

std::vector<std::string> CheckpointsIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, "checkpoint-")) names.push_back(name);
  }
  return names;
}

constexpr char kFirstCheckpoint[] = "checkpoint-000001-000000000000.safetensors";

ServerOptions Saving(ServerOptions options, const std::string& directory) {
  options.durable.directory = ::testing::TempDir() + "/" + directory;
  return options;
}

TEST(ServerServeTest, SavesTheLastCheckpointAlsoOfTrainingThatSeemsToDiverge) {
  const ServerOptions options = Saving(Stopping(Serving(Sync(1))), "suspect");
  ServingWorld world(options);
  {
    SessionOf a(world, "a");
    TrainTimes(a, 64, 2);
    TrainTimes(a, 20, 7);
    world.Signal(SIGTERM);
  }
  EXPECT_EQ(world.Wait(), 0);
  EXPECT_THAT(CheckpointsIn(options.durable.directory),
              UnorderedElementsAre(kFirstCheckpoint, "checkpoint-000001-000000000084.safetensors"));
}

TEST(ServerServeTest, SavesTheLastCheckpointOfAJobWhoseLastLossesWereBad) {
  const ServerOptions options = Saving(Stopping(Serving(Sync(1))), "bad_end");
  ServingWorld world(options);
  {
    SessionOf a(world, "a");
    TrainTimes(a, 64, 2);
    TrainTimes(a, 20, 7);
    EXPECT_THAT(a.Leave(), IsOk());
  }
  EXPECT_EQ(world.Wait(), 0);
  EXPECT_THAT(CheckpointsIn(options.durable.directory),
              UnorderedElementsAre(kFirstCheckpoint, "checkpoint-000001-000000000084.safetensors"));
}

TEST(ServerServeTest, SavesNoLastCheckpointOfTrainingThatDiverged) {
  const ServerOptions options = Saving(Stopping(Serving(Sync(1))), "diverged");
  ServingWorld world(options);
  {
    SessionOf a(world, "a");
    TrainTimes(a, 64, 2);
    TrainTimes(a, 146, 7);
    EXPECT_THAT(a.Train(7), IsError(Reason::kDiverged, HasSubstr("because training diverges")));
  }
  EXPECT_EQ(world.Wait(), 7);
  EXPECT_THAT(CheckpointsIn(options.durable.directory), ElementsAre(kFirstCheckpoint));
}

TEST(ServerServeTest, EndsAJobThatShallGoBackButDivergesFromItsFirstStepOn) {
  ServerOptions options = Saving(Serving(Sync(1)), "nowhere");
  options.shard.guards.on_divergence = DivergenceAction::kRestore;
  ServingWorld world(options);
  {
    SessionOf a(world, "a");
    absl::Status trained;
    for (int i = 0; i < 1'000'000 && trained.ok(); ++i) {
      trained = a.Train(std::numeric_limits<float>::quiet_NaN());
    }
    EXPECT_THAT(trained,
                IsError(Reason::kDiverged, HasSubstr("; no checkpoint from before can be loaded")));
  }
  EXPECT_EQ(world.Wait(), 7);
}

// It computes for longer than the server waits, and hears why when it comes back.
TEST(ServerServeTest, WaitsForALeaseAtMostForAWorkerThatStillHearsThatTrainingDiverged) {
  ShardOptions shard = Async(1);
  shard.lease = kShortLease;
  ServingWorld world(Stopping(Serving(shard)));
  SessionOf b(world, "b");
  {
    SessionOf a(world, "a");
    TrainTimes(a, 64, 2);
    TrainTimes(a, 146, 7);
    EXPECT_THAT(a.Train(7), IsError(Reason::kDiverged, HasSubstr("because training diverges")));
  }
  EXPECT_EQ(world.Wait(), 7);
  EXPECT_THAT(b.Train(2), IsError(Reason::kDiverged, HasSubstr("because training diverges")));
}

TEST(ServerServeTest, EndsWhenItsOperatorDrainsIt) {
  ServingWorld world(Serving(Sync(1)));
  {
    SessionOf a(world, "a");
    const auto admin = v1::Admin::NewStub(
        grpc::CreateChannel(world.address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::DrainResponse response;
    EXPECT_TRUE(admin->Drain(&context, v1::DrainRequest(), &response).ok());
    EXPECT_EQ(response.step(), 0u);
  }
  EXPECT_EQ(world.Wait(), 0);
  EXPECT_EQ(world.phase(), Phase::kDraining);
}

TEST(ServerServeTest, TellsItsParametersChecksumInTheEnd) {
  std::string table;
  ServingWorld world(Serving(Sync(1)),
                     [&](const Server& server) { table = server.ClosingTable(); });
  {
    SessionOf a(world, "a");
    EXPECT_THAT(a.Train(), IsOk());
    EXPECT_THAT(a.Leave(), IsOk());
  }
  EXPECT_EQ(world.Wait(), 0);
  // zlib.crc32 of Python, of three times -1.
  EXPECT_THAT(table, HasSubstr("  parameters' CRC-32       e6777d69\n"));
}

// A worker that hears nothing, or watches for ever.
TEST(ServerServeTest, DoesNotWaitLongForCallsThatStayOpen) {
  ServingWorld world(Serving(Sync(1)));
  SessionOf a(world, "a");
  world.Signal(SIGTERM);
  EXPECT_EQ(world.Wait(), 0);
}

TEST(ServerServeTest, EndsAtASignalThatCameBeforeItServed) {
  std::thread([] {
    const auto server = Server::Start(Serving(Sync(1)));
    ASSERT_THAT(server, IsOk());
    raise(SIGTERM);
    EXPECT_EQ((*server)->Serve(), 0);
  }).join();
}

}  // namespace
}  // namespace sluice
