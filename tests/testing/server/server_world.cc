#include "tests/testing/server/server_world.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"

namespace sluice {
namespace {

Address AnyPort() {
  Address address;
  address.host = "127.0.0.1";
  return address;
}

bool NothingInProgress(const Shard& shard) { return shard.Describe().counters.in_progress == 0; }

}  // namespace

// ---- The world ----

ServerWorld::ServerWorld(const ShardOptions& options, const Layout& layout,
                         const std::string& token, const RpcLimits& limits,
                         const TransformRegistry& transforms, Executors executors)
    : layout_(layout),
      token_(token),
      shard_(options, clock_, nullptr, nullptr, &trace_, std::move(executors)) {
  auto door = StartGrpcServer({AnyPort(), token, nullptr, limits, transforms}, {&shard_});
  EXPECT_TRUE(door.ok()) << door.status();
  door_ = *std::move(door);
  const auto channel =
      grpc::CreateChannel(door_->address().ToString(), grpc::InsecureChannelCredentials());
  stub_ = v1::ParameterServer::NewStub(channel);
  inspector_ = v1::Inspector::NewStub(channel);
  admin_ = v1::Admin::NewStub(channel);
}

ServerWorld::~ServerWorld() {
  Stop();
  const ShardStatus state = shard_.Describe();
  EXPECT_TRUE(state.counters.Balanced()) << Columns(state.counters);
  EXPECT_EQ(state.counters.in_progress, 0u);
  EXPECT_EQ(state.waiting_pulls, 0u);
}

void ServerWorld::Stop(absl::Duration grace) {
  if (stopped_) return;
  stopped_ = true;
  door_->Shutdown(grace);
  for (auto& session : sessions_) session.second.End();
}

void ServerWorld::Pass(absl::Duration duration) {
  clock_.Advance(duration);
  for (const auto& session : sessions_) {
    if (silent_.count(session.first) == 0) {
      shard_.Heartbeat(SessionId(session.second.id)).IgnoreError();
    }
  }
  shard_.Tick();
}

bool ServerWorld::Await(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    v1::ServerState state;
    inspector_->GetServerState(Context().get(), v1::GetServerStateRequest(), &state);
  }
  return true;
}

std::unique_ptr<grpc::ClientContext> ServerWorld::Context(absl::Duration timeout) const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  if (!token_.empty()) context->AddMetadata("authorization", "Bearer " + token_);
  return context;
}

// ---- Sessions ----

void ServerWorld::Session::End() {
  context->TryCancel();
  Finish();
}

std::string ServerWorld::Session::Finish() {
  if (ended) return "";
  ended = true;
  return FromGrpcStatus(events->Finish()).ToString();
}

v1::JoinRequest ServerWorld::RequestOf(const std::string& name) {
  JoinRequest request;
  request.job_id = "job";
  request.worker = name;
  request.process_nonce = ProcessNonce(nonces_.emplace(name, 1000 + nonces_.size()).first->second);
  request.host = "node";
  request.pid = 7;
  request.layout = layout_;
  request.optimizer.options = PlainSgd();
  return ToProto(request);
}

absl::StatusOr<v1::Welcome> ServerWorld::JoinAs(const v1::JoinRequest& request) {
  Session session;
  session.context = Context();
  session.events = stub_->Join(session.context.get(), request);
  v1::JoinEvent event;
  if (!session.events->Read(&event)) return FromGrpcStatus(session.events->Finish());
  session.id = event.welcome().session();
  const auto earlier = sessions_.find(request.worker());
  if (earlier != sessions_.end()) earlier->second.End();
  sessions_[request.worker()] = std::move(session);
  return event.welcome();
}

absl::StatusOr<v1::Welcome> ServerWorld::Observe(const std::string& name) {
  v1::JoinRequest request = RequestOf(name);
  request.set_role(v1::OBSERVER);
  return JoinAs(request);
}

absl::StatusOr<uint64_t> ServerWorld::LeaveAs(const v1::LeaveRequest& request) {
  v1::LeaveResponse response;
  const absl::Status status = FromGrpcStatus(stub_->Leave(Context().get(), request, &response));
  if (!status.ok()) return status;
  return response.step();
}

absl::StatusOr<uint64_t> ServerWorld::Leave(const std::string& name) {
  v1::LeaveRequest request;
  request.set_session(session(name));
  return LeaveAs(request);
}

absl::StatusOr<uint64_t> ServerWorld::Heartbeat(const std::string& name) {
  v1::HeartbeatRequest request;
  request.set_session(session(name));
  v1::HeartbeatResponse response;
  const absl::Status status = FromGrpcStatus(stub_->Heartbeat(Context().get(), request, &response));
  if (!status.ok()) return status;
  return response.step();
}

absl::Status ServerWorld::Report(const std::string& name, uint64_t step, const Results& results) {
  v1::HeartbeatRequest request;
  request.set_session(session(name));
  request.mutable_measurement()->set_step(step);
  request.mutable_measurement()->mutable_results()->insert(results.begin(), results.end());
  v1::HeartbeatResponse response;
  return FromGrpcStatus(stub_->Heartbeat(Context().get(), request, &response));
}

absl::Status ServerWorld::Evict(const std::string& name) {
  v1::EvictWorkerRequest request;
  request.set_worker(name);
  v1::EvictWorkerResponse response;
  return FromGrpcStatus(admin_->EvictWorker(Context().get(), request, &response));
}

std::string ServerWorld::NextEvent(const std::string& name) {
  v1::JoinEvent event;
  Session& session = sessions_.at(name);
  if (!session.events->Read(&event)) return session.Finish();
  if (event.has_training_finished()) {
    return absl::StrCat("finished ", event.training_finished().step());
  }
  if (event.has_policy_changed()) {
    const v1::PolicyChanged& changed = event.policy_changed();
    return absl::StrCat("policy ", v1::ConsistencyMode_Name(changed.consistency().mode()), " from ",
                        changed.step());
  }
  if (event.has_evicted()) return "evicted";
  return event.has_draining() ? "draining" : event.ShortDebugString();
}

bool ServerWorld::Break(const std::string& name) {
  sessions_.at(name).context->TryCancel();
  return Await([this, name] {
    for (const SessionRecord& record : shard_.Sessions()) {
      if (record.worker == name) return record.presence != Presence::kPresent;
    }
    return false;
  });
}

// ---- Calls ----

std::unique_ptr<PushStream> ServerWorld::OpenPush() {
  return std::make_unique<PushStream>(
      Context(), [this](grpc::ClientContext* context, v1::PushGradientsResponse* response) {
        return stub_->PushGradients(context, response);
      });
}

std::unique_ptr<PushLaneStream> ServerWorld::OpenPushLane() {
  return std::make_unique<PushLaneStream>(
      Context(), [this](grpc::ClientContext* context, v1::PushLaneResponse* response) {
        return stub_->PushLane(context, response);
      });
}

std::unique_ptr<InitializeStream> ServerWorld::OpenInitialize() {
  return std::make_unique<InitializeStream>(
      Context(), [this](grpc::ClientContext* context, v1::InitializeParamsResponse* response) {
        return stub_->InitializeParams(context, response);
      });
}

absl::StatusOr<v1::InitializeParamsResponse> ServerWorld::SendParameters(
    const std::vector<v1::InitializeParamsRequest>& messages) {
  const auto stream = OpenInitialize();
  for (const v1::InitializeParamsRequest& message : messages) stream->Write(message);
  stream->End();
  return stream->Answer();
}

absl::StatusOr<v1::InitializeParamsResponse> ServerWorld::Initialize(const std::string& name,
                                                                     const Values& parameters) {
  return SendParameters({HeaderOf(session(name)), ParametersOf(0, parameters)});
}

v1::PushHeader ServerWorld::NextHeader(const std::string& name, uint64_t step) {
  v1::PushHeader header;
  header.set_session(session(name));
  header.set_sequence(++sequences_[name]);
  header.set_step(step);
  header.set_incarnation(1);
  header.set_samples(1);
  return header;
}

absl::StatusOr<PushOutcome> ServerWorld::SendPush(
    const std::vector<v1::PushGradientsRequest>& messages) {
  const auto stream = OpenPush();
  for (const v1::PushGradientsRequest& message : messages) stream->Write(message);
  stream->End();
  const auto answer = stream->Answer();
  if (!answer.ok()) return answer.status();
  return FromProto(*answer);
}

absl::StatusOr<PushOutcome> ServerWorld::Push(const std::string& name, uint64_t step,
                                              const Values& gradient) {
  return SendPush({HeaderOf(NextHeader(name, step)), GradientOf(0, gradient)});
}

absl::StatusOr<PushOutcome> ServerWorld::AnswerToHeader(const v1::PushHeader& header) {
  const auto stream = OpenPush();
  stream->Write(HeaderOf(header));
  const auto answer = stream->Answer();
  if (!answer.ok()) return answer.status();
  return FromProto(*answer);
}

absl::StatusOr<Pulled> ServerWorld::PullAs(const v1::PullParamsRequest& request,
                                           absl::Duration timeout) {
  const auto context = Context(timeout);
  const auto reader = stub_->PullParams(context.get(), request);
  Pulled pulled;
  v1::PullParamsResponse message;
  while (reader->Read(&message)) {
    if (message.has_header()) pulled.header = message.header();
    if (!message.has_chunk()) continue;
    const v1::TensorChunk& chunk = message.chunk();
    EXPECT_EQ(chunk.offset(), pulled.values.size());
    const size_t elements = chunk.payload().size() / sizeof(float);
    pulled.chunks.push_back(elements);
    pulled.values.resize(pulled.values.size() + elements);
    chunk.payload().copy(reinterpret_cast<char*>(pulled.values.data() + chunk.offset()),
                         chunk.payload().size());
  }
  const absl::Status status = FromGrpcStatus(reader->Finish());
  if (!status.ok()) return status;
  return pulled;
}

absl::StatusOr<Pulled> ServerWorld::Pull(const std::string& name, uint64_t min_step) {
  v1::PullParamsRequest request;
  request.set_session(session(name));
  request.set_min_step(min_step);
  return PullAs(request);
}

absl::StatusOr<Pulled> ServerWorld::GoOn(const std::string& name) {
  v1::PullParamsRequest request;
  request.set_session(session(name));
  request.set_after(sequences_[name]);
  return PullAs(request);
}

std::string ServerWorld::Counters() {
  EXPECT_TRUE(Await([this] { return NothingInProgress(shard_); }));
  return Columns(shard_.Describe().counters);
}

}  // namespace sluice
