// A server in this process with its real gRPC service, and workers that may send any message.

#ifndef SLUICE_TESTS_TESTING_SERVER_SERVER_WORLD_H_
#define SLUICE_TESTS_TESTING_SERVER_SERVER_WORLD_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/net/address.h"
#include "common/protocol/protocol_types.h"
#include "common/trace/trace.h"
#include "server/replica/executors.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/rpc/server.h"
#include "server/shard/shard.h"
#include "sluice/v1/admin.grpc.pb.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/server/messages.h"
#include "tests/testing/server/request_stream.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/vectors.h"

namespace sluice {

// Ends a test that hangs. A test that passes never waits for so long.
inline constexpr absl::Duration kPatience = absl::Seconds(30);

using PushStream = RequestStream<v1::PushGradientsRequest, v1::PushGradientsResponse>;
using PushLaneStream = RequestStream<v1::PushGradientsRequest, v1::PushLaneResponse>;
using InitializeStream = RequestStream<v1::InitializeParamsRequest, v1::InitializeParamsResponse>;

// The answer to a pull.
struct Pulled {
  v1::PullHeader header;
  std::vector<size_t> chunks;  // their sizes in elements, as they came
  Values values;
};

// Used by one thread, except where a method says otherwise. The destructor stops the server, and
// expects that the push counters add up and that no push or pull is left in the shard.
class ServerWorld {
 public:
  // Serves on a free port. The clock is fake, so no lease ends by itself. All calls carry `token`.
  explicit ServerWorld(const ShardOptions& options, const Layout& layout = ParametersOnly(3),
                       const std::string& token = "", const RpcLimits& limits = {},
                       const TransformRegistry& transforms = BuiltinTransforms(),
                       Executors executors = Executors::Inline());
  ~ServerWorld();

  ServerWorld(const ServerWorld&) = delete;
  ServerWorld& operator=(const ServerWorld&) = delete;

  // Stops the server; cancels calls that are still open after `grace`. The destructor calls it,
  // too.
  void Stop(absl::Duration grace = absl::ZeroDuration());

  // Lets time pass, then ticks. All sessions that are alive send heartbeats meanwhile, except those
  // for which Silence() was called.
  void Pass(absl::Duration duration);
  void Silence(const std::string& name) { silent_.insert(name); }

  // Waits until `condition` holds; false after kPatience. Makes a call to the server between two
  // checks.
  bool Await(const std::function<bool()>& condition);

  // For tests that call the stubs themselves. Any thread may use these.
  std::unique_ptr<grpc::ClientContext> Context(absl::Duration timeout = kPatience) const;
  v1::ParameterServer::Stub& stub() { return *stub_; }
  v1::Inspector::Stub& inspector() { return *inspector_; }
  v1::Admin::Stub& admin() { return *admin_; }

  // Sessions. A test names workers and observers by their names. A session lasts until Leave(),
  // Break() or the end of the world.
  v1::JoinRequest RequestOf(const std::string& name);
  absl::StatusOr<v1::Welcome> JoinAs(const v1::JoinRequest& request);
  absl::StatusOr<v1::Welcome> Join(const std::string& name) { return JoinAs(RequestOf(name)); }
  absl::StatusOr<v1::Welcome> Observe(const std::string& name);
  absl::StatusOr<uint64_t> LeaveAs(const v1::LeaveRequest& request);
  absl::StatusOr<uint64_t> Leave(const std::string& name);
  uint64_t session(const std::string& name) const { return sessions_.at(name).id; }
  absl::StatusOr<uint64_t> Heartbeat(const std::string& name);
  // Tells what was measured of the step.
  absl::Status Report(const std::string& name, uint64_t step, const Results& results);
  // Evicts the worker, as the operator does.
  absl::Status Evict(const std::string& name);
  // Waits for the next event of the session's stream: "finished 3", "draining", "evicted", "policy
  // BACKUP from 3", or the status with which the stream ended.
  std::string NextEvent(const std::string& name);
  // Breaks the session's stream and waits until the server has noticed.
  bool Break(const std::string& name);

  // Initial parameters.
  absl::StatusOr<v1::InitializeParamsResponse> SendParameters(
      const std::vector<v1::InitializeParamsRequest>& messages);
  absl::StatusOr<v1::InitializeParamsResponse> Initialize(const std::string& name,
                                                          const Values& parameters);

  // Pushes. Each header has the worker's next sequence.
  v1::PushHeader NextHeader(const std::string& name, uint64_t step);
  std::unique_ptr<PushStream> OpenPush();
  std::unique_ptr<PushLaneStream> OpenPushLane();
  std::unique_ptr<InitializeStream> OpenInitialize();
  absl::StatusOr<PushOutcome> SendPush(const std::vector<v1::PushGradientsRequest>& messages);
  absl::StatusOr<PushOutcome> Push(const std::string& name, uint64_t step, const Values& gradient);
  // Sends only the header of a push, leaves the stream open, and returns the server's answer.
  absl::StatusOr<PushOutcome> AnswerToHeader(const v1::PushHeader& header);

  // Pulls.
  absl::StatusOr<Pulled> PullAs(const v1::PullParamsRequest& request,
                                absl::Duration timeout = kPatience);
  absl::StatusOr<Pulled> Pull(const std::string& name, uint64_t min_step);
  // Pulls the parameters with which the worker continues after its latest push.
  absl::StatusOr<Pulled> GoOn(const std::string& name);

  // Waits until no push is in progress, and returns the counters as Columns() (outcome.h) shows
  // them.
  std::string Counters();

  const Address& address() const { return door_->address(); }
  Shard& shard() { return shard_; }
  FakeClock& clock() { return clock_; }

 private:
  struct Session {
    uint64_t id = 0;
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientReader<v1::JoinEvent>> events;
    bool ended = false;

    void End();
    std::string Finish();  // waits for the end of the stream, and returns its status
  };

  const Layout layout_;
  const std::string token_;
  FakeClock clock_;
  Trace trace_{absl::nullopt, "server", clock_};
  Shard shard_;
  std::unique_ptr<GrpcServer> door_;
  std::unique_ptr<v1::ParameterServer::Stub> stub_;
  std::unique_ptr<v1::Inspector::Stub> inspector_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::map<std::string, Session> sessions_;
  std::set<std::string> silent_;
  std::map<std::string, uint64_t> nonces_;
  std::map<std::string, uint64_t> sequences_;
  bool stopped_ = false;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_SERVER_WORLD_H_
