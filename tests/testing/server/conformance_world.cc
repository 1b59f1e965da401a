#include "tests/testing/server/conformance_world.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "gtest/gtest.h"
#include "tests/testing/server/messages.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

// ---- In this process ----

class ShardTake final : public PendingTake {
 public:
  explicit ShardTake(TestPull pull) : pull_(std::move(pull)) {}

  absl::StatusOr<Taken> Wait() override {
    EXPECT_TRUE(pull_.answered());
    if (!pull_.result().ok()) return pull_.result().status();
    return Taken{pull_.step(), pull_.values()};
  }

  void Cancel() override { EXPECT_TRUE(pull_.Cancel()); }

 private:
  TestPull pull_;
};

class ShardConformance final : public ConformanceWorld {
 public:
  ShardConformance(const ShardOptions& options, const Layout& layout) : world_(options, layout) {}

  absl::StatusOr<Welcome> Join(const std::string& name) override { return world_.Join(name); }
  absl::Status Leave(const std::string& name) override { return world_.Leave(name).status(); }
  void Lose(const std::string& name) override { world_.Lose(name); }
  SessionId session(const std::string& name) override { return world_.session(name); }

  absl::StatusOr<InitializeOutcome> Initialize(const std::string&,
                                               const Values& parameters) override {
    return world_.Initialize(parameters);
  }

  PushHeader NextHeader(const std::string& name, uint64_t step) override {
    return world_.NextHeader(name, step);
  }
  absl::StatusOr<PushOutcome> PushAs(const PushHeader& header, const Values& gradient) override {
    return world_.PushAs(header, gradient);
  }

  std::unique_ptr<PendingTake> StartPull(const PullRequest& request) override {
    TestPull pull = world_.PullAs(request);
    EXPECT_FALSE(pull.answered());
    return std::make_unique<ShardTake>(std::move(pull));
  }
  absl::StatusOr<Taken> Pull(const PullRequest& request) override {
    return ShardTake(world_.PullAs(request)).Wait();
  }

  absl::StatusOr<uint64_t> SetPolicy(const Consistency& consistency) override {
    const auto step = world_.shard().SetConsistency(consistency);
    if (!step.ok()) return step.status();
    return step->value();
  }

  uint32_t accumulated() override { return shard().Describe().current.accumulated; }
  void Pass(absl::Duration duration) override { world_.Pass(duration); }
  bool Reaches(uint64_t step) override { return world_.step() == step; }
  Shard& shard() override { return world_.shard(); }

 private:
  ShardWorld world_;
};

// ---- Over gRPC ----

enum class Tensors { kInMessages, kInSharedMemory };

ShardOptions WithSharedSnapshots(ShardOptions options) {
  options.snapshots = SnapshotMemory::kShared;
  return options;
}

Values ValuesAt(const v1::SharedParameters& where) {
  const auto view = SharedMemoryView::Open(FromProto(where.memory()));
  EXPECT_THAT(view, IsOk());
  if (!view.ok()) return {};
  Values values = ValuesOf((*view)->floats());
  EXPECT_TRUE((*view)->IsStill(where.generation()));
  return values;
}

class ServerTake final : public PendingTake {
 public:
  ServerTake(ServerWorld& world, Tensors tensors, const PullRequest& request)
      : world_(world), context_(world.Context()) {
    v1::PullParamsRequest message = ToProto(request);
    message.set_shared(tensors == Tensors::kInSharedMemory);
    reader_ = world.stub().PullParams(context_.get(), message);
  }

  ~ServerTake() override {
    if (finished_) return;
    context_->TryCancel();
    reader_->Finish();
  }

  absl::StatusOr<Taken> Wait() override {
    Taken taken;
    v1::PullParamsResponse message;
    while (reader_->Read(&message)) {
      if (message.has_header()) taken.step = message.header().step();
      if (message.header().has_shared()) taken.values = ValuesAt(message.header().shared());
      if (!message.has_chunk()) continue;
      const std::string& payload = message.chunk().payload();
      taken.values.resize(taken.values.size() + payload.size() / sizeof(float));
      payload.copy(reinterpret_cast<char*>(taken.values.data() + message.chunk().offset()),
                   payload.size());
    }
    finished_ = true;
    const absl::Status end = FromGrpcStatus(reader_->Finish());
    if (!end.ok()) return end;
    return taken;
  }

  void Cancel() override {
    const uint32_t before = world_.shard().Describe().waiting_pulls;
    context_->TryCancel();
    finished_ = true;
    EXPECT_EQ(reader_->Finish().error_code(), grpc::StatusCode::CANCELLED);
    EXPECT_TRUE(
        world_.Await([&] { return world_.shard().Describe().waiting_pulls == before - 1; }));
  }

 private:
  ServerWorld& world_;
  const std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<v1::PullParamsResponse>> reader_;
  bool finished_ = false;
};

class ServerConformance final : public ConformanceWorld {
 public:
  ServerConformance(const ShardOptions& options, const Layout& layout, Tensors tensors)
      : tensors_(tensors), world_(options, layout) {
    if (tensors_ == Tensors::kInMessages) return;
    auto memory = SharedMemory::Create(kMostPushes * layout.size());
    EXPECT_THAT(memory, IsOk());
    memory_ = *std::move(memory);
  }

  absl::StatusOr<Welcome> Join(const std::string& name) override {
    v1::JoinRequest request = world_.RequestOf(name);
    if (memory_ != nullptr) *request.mutable_memory() = ToProto(memory_->name());
    const auto welcome = world_.JoinAs(request);
    if (!welcome.ok()) return welcome.status();
    EXPECT_EQ(welcome->shares_memory(), memory_ != nullptr);
    return FromProto(*welcome);
  }
  absl::Status Leave(const std::string& name) override { return world_.Leave(name).status(); }
  void Lose(const std::string& name) override { EXPECT_TRUE(world_.Break(name)); }
  SessionId session(const std::string& name) override { return SessionId(world_.session(name)); }

  absl::StatusOr<InitializeOutcome> Initialize(const std::string& name,
                                               const Values& parameters) override {
    const auto answer = world_.Initialize(name, parameters);
    if (!answer.ok()) return answer.status();
    return InitializeOutcome{answer->accepted(), Step(answer->step())};
  }

  PushHeader NextHeader(const std::string& name, uint64_t step) override {
    return FromProto(world_.NextHeader(name, step)).value();
  }
  absl::StatusOr<PushOutcome> PushAs(const PushHeader& header, const Values& gradient) override {
    const v1::PushGradientsRequest chunk =
        memory_ == nullptr ? GradientOf(0, gradient) : GradientInMemory(gradient);
    return world_.SendPush({HeaderOf(ToProto(header)), chunk});
  }

  std::unique_ptr<PendingTake> StartPull(const PullRequest& request) override {
    const uint32_t before = waiting();
    auto take = std::make_unique<ServerTake>(world_, tensors_, request);
    EXPECT_TRUE(world_.Await([&] { return waiting() == before + 1; }));
    return take;
  }
  absl::StatusOr<Taken> Pull(const PullRequest& request) override {
    return ServerTake(world_, tensors_, request).Wait();
  }

  absl::StatusOr<uint64_t> SetPolicy(const Consistency& consistency) override {
    v1::SetPolicyRequest request;
    *request.mutable_consistency() = ToProto(consistency);
    v1::SetPolicyResponse response;
    const auto context = world_.Context();
    const absl::Status status =
        FromGrpcStatus(world_.admin().SetPolicy(context.get(), request, &response));
    if (!status.ok()) return status;
    return response.step();
  }

  uint32_t accumulated() override {
    v1::ServerState state;
    const auto context = world_.Context();
    EXPECT_TRUE(world_.inspector().GetServerState(context.get(), {}, &state).ok());
    return state.current().accumulated();
  }

  void Pass(absl::Duration duration) override { world_.Pass(duration); }
  // The thread of a call that was answered may still be about to make the step.
  bool Reaches(uint64_t step) override {
    return world_.Await([&] { return this->step() == step; });
  }
  Shard& shard() override { return world_.shard(); }

 private:
  static constexpr uint64_t kMostPushes = 2000;

  // Each in a place of its own, since nobody waits until the one before was read.
  v1::PushGradientsRequest GradientInMemory(const Values& gradient) {
    std::copy(gradient.begin(), gradient.end(), memory_->floats().begin() + written_);
    v1::PushGradientsRequest message;
    message.mutable_chunk()->mutable_shared()->set_first(written_);
    message.mutable_chunk()->mutable_shared()->set_count(gradient.size());
    written_ += gradient.size();
    return message;
  }

  const Tensors tensors_;
  std::shared_ptr<SharedMemory> memory_;  // of all workers; null if tensors are in messages
  uint64_t written_ = 0;
  ServerWorld world_;
};

}  // namespace

void ConformanceWorld::Start(const std::vector<std::string>& workers) {
  for (const std::string& worker : workers) EXPECT_THAT(Join(worker), IsOk());
  EXPECT_THAT(Initialize(workers[0], Values(shard().layout()->size())), IsOk());
}

std::unique_ptr<PendingTake> ConformanceWorld::StartTake(const std::string& name,
                                                         uint64_t min_step) {
  PullRequest request;
  request.session = session(name);
  request.min_step = Step(min_step);
  return StartPull(request);
}

std::unique_ptr<PendingTake> ConformanceWorld::StartGoOn(const std::string& name, Sequence after) {
  PullRequest request;
  request.session = session(name);
  request.after = after;
  return StartPull(request);
}

absl::StatusOr<Taken> ConformanceWorld::Take(const std::string& name, uint64_t min_step) {
  PullRequest request;
  request.session = session(name);
  request.min_step = Step(min_step);
  return Pull(request);
}

Values ConformanceWorld::Parameters() {
  const std::shared_ptr<const Snapshot> snapshot = shard().snapshot();
  return snapshot == nullptr ? Values() : ValuesOf(snapshot->values.span());
}

std::unique_ptr<ConformanceWorld> MakeShardConformance(const ShardOptions& options,
                                                       const Layout& layout) {
  return std::make_unique<ShardConformance>(options, layout);
}

std::unique_ptr<ConformanceWorld> MakeServerConformance(const ShardOptions& options,
                                                        const Layout& layout) {
  return std::make_unique<ServerConformance>(options, layout, Tensors::kInMessages);
}

std::unique_ptr<ConformanceWorld> MakeSharedConformance(const ShardOptions& options,
                                                        const Layout& layout) {
  return std::make_unique<ServerConformance>(WithSharedSnapshots(options), layout,
                                             Tensors::kInSharedMemory);
}

}  // namespace sluice
