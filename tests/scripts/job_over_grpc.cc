#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/tensor/shared_memory.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "gtest/gtest.h"
#include "tests/scripts/scripted_job.h"
#include "tests/testing/server/messages.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

Values ValuesAt(const v1::SharedParameters& where) {
  const auto view = SharedMemoryView::Open(FromProto(where.memory()));
  EXPECT_THAT(view, IsOk());
  if (!view.ok()) return {};
  Values values = ValuesOf((*view)->floats());
  EXPECT_TRUE((*view)->IsStill(where.generation()));
  return values;
}

// The memory of the gradients of all workers. Each push has a place of its own, since nobody waits
// until the one before was read.
class Gradients {
 public:
  explicit Gradients(uint64_t elements) {
    auto memory = SharedMemory::Create(elements);
    EXPECT_THAT(memory, IsOk());
    memory_ = *std::move(memory);
  }

  v1::SharedMemory name() const { return ToProto(memory_->name()); }

  v1::PushGradientsRequest Add(const Values& gradient) {
    EXPECT_LE(written_ + gradient.size(), memory_->floats().size()) << "too many pushes for memory";
    std::copy(gradient.begin(), gradient.end(), memory_->floats().begin() + written_);
    v1::PushGradientsRequest message;
    message.mutable_chunk()->mutable_shared()->set_first(written_);
    message.mutable_chunk()->mutable_shared()->set_count(gradient.size());
    written_ += gradient.size();
    return message;
  }

 private:
  std::shared_ptr<SharedMemory> memory_;
  uint64_t written_ = 0;
};

class GrpcPush final : public ScriptedPush {
 public:
  // `gradients`: null if tensors are in messages.
  GrpcPush(ServerWorld& world, Gradients* gradients, const PushHeader& header)
      : gradients_(gradients), stream_(world.OpenPush()) {
    stream_->Write(HeaderOf(ToProto(header)));
  }
  ~GrpcPush() override { Break(); }

  bool admitted() const override { return true; }
  absl::optional<absl::StatusOr<PushOutcome>> Answer() override {
    return std::exchange(answer_, absl::nullopt);
  }
  // Waits for the answer.
  void Finish(const Values& gradient) override {
    stream_->Write(gradients_ == nullptr ? GradientOf(0, gradient) : gradients_->Add(gradient));
    stream_->End();
    const auto answer = stream_->Answer();
    answer_ = answer.ok() ? FromProto(*answer) : absl::StatusOr<PushOutcome>(answer.status());
    ended_ = true;
  }
  void Break() override {
    if (std::exchange(ended_, true)) return;
    stream_->Cancel();
    stream_->Answer().IgnoreError();
  }

 private:
  Gradients* const gradients_;
  const std::unique_ptr<PushStream> stream_;
  bool ended_ = false;
  absl::optional<absl::StatusOr<PushOutcome>> answer_;
};

class GrpcPull final : public ScriptedPull {
 public:
  GrpcPull(ServerWorld& world, const PullRequest& request, bool shared)
      : world_(world), context_(world.Context()) {
    v1::PullParamsRequest message = ToProto(request);
    message.set_shared(shared);
    reader_ = world.stub().PullParams(context_.get(), message);
    thread_ = std::thread([this] { Read(); });
  }
  ~GrpcPull() override {
    context_->TryCancel();
    thread_.join();
  }

  void Wait() { EXPECT_TRUE(read_.WaitForNotificationWithTimeout(kPatience)); }
  absl::optional<absl::StatusOr<StepParameters>> Answer() override {
    if (!read_.HasBeenNotified()) return absl::nullopt;
    return std::exchange(answer_, absl::nullopt);
  }
  void Cancel() override {
    const uint32_t before = world_.shard().Describe().waiting_pulls;
    context_->TryCancel();
    Wait();
    answer_.reset();
    EXPECT_TRUE(
        world_.Await([&] { return world_.shard().Describe().waiting_pulls == before - 1; }));
  }

 private:
  void Read() {
    StepParameters pulled;
    v1::PullParamsResponse message;
    while (reader_->Read(&message)) {
      if (message.has_header()) {
        pulled.header.step = Step(message.header().step());
        pulled.header.not_modified = message.header().not_modified();
        pulled.header.last = message.header().last();
      }
      if (message.header().has_shared()) pulled.values = ValuesAt(message.header().shared());
      if (!message.has_chunk()) continue;
      const std::string& payload = message.chunk().payload();
      pulled.values.resize(pulled.values.size() + payload.size() / sizeof(float));
      payload.copy(reinterpret_cast<char*>(pulled.values.data() + message.chunk().offset()),
                   payload.size());
    }
    const absl::Status end = FromGrpcStatus(reader_->Finish());
    answer_ = end.ok() ? absl::StatusOr<StepParameters>(pulled) : end;
    read_.Notify();
  }

  ServerWorld& world_;
  const std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<v1::PullParamsResponse>> reader_;
  absl::optional<absl::StatusOr<StepParameters>> answer_;  // after read_
  absl::Notification read_;
  std::thread thread_;
};

ShardOptions With(ShardOptions options, SnapshotMemory memory) {
  options.snapshots = memory;
  return options;
}

class OverGrpc final : public ScriptedJob {
 public:
  OverGrpc(const ShardOptions& options, const Layout& layout, bool shared)
      : size_(layout.size()),
        world_(With(options, shared ? SnapshotMemory::kShared : SnapshotMemory::kPrivate), layout) {
    if (shared) gradients_ = std::make_unique<Gradients>(kMostPushes * size_);
  }

  absl::StatusOr<Welcome> Join(const JoinRequest& request) override {
    v1::JoinRequest message = ToProto(request);
    if (gradients_ != nullptr) *message.mutable_memory() = gradients_->name();
    const auto welcome = world_.JoinAs(message);
    if (!welcome.ok()) return welcome.status();
    EXPECT_EQ(welcome->shares_memory(), gradients_ != nullptr);
    names_[SessionId(welcome->session())] = request.worker;
    return FromProto(*welcome);
  }
  absl::Status Leave(SessionId session, const Farewell& /*farewell*/) override {
    return world_.Leave(names_.at(session)).status();
  }
  void Lose(SessionId session) override { EXPECT_TRUE(world_.Break(names_.at(session))); }

  absl::StatusOr<InitializeOutcome> Offer(SessionId session, const Values& parameters) override {
    const auto answer = world_.Initialize(names_.at(session), parameters);
    if (!answer.ok()) return answer.status();
    return InitializeOutcome{answer->accepted(), Step(answer->step())};
  }
  std::unique_ptr<ScriptedPush> Push(const PushHeader& header) override {
    return std::make_unique<GrpcPush>(world_, gradients_.get(), header);
  }
  std::unique_ptr<ScriptedPull> Pull(const PullRequest& request, bool waits) override {
    const uint32_t before = shard().Describe().waiting_pulls;
    auto pull = std::make_unique<GrpcPull>(world_, request, gradients_ != nullptr);
    if (waits) {
      EXPECT_TRUE(Await([&] { return shard().Describe().waiting_pulls == before + 1; }));
    } else {
      pull->Wait();
    }
    return pull;
  }

  absl::Status SetConsistency(const Consistency& consistency) override {
    v1::SetPolicyRequest request;
    *request.mutable_consistency() = ToProto(consistency);
    v1::SetPolicyResponse response;
    const auto context = world_.Context();
    return FromGrpcStatus(world_.admin().SetPolicy(context.get(), request, &response));
  }

  void HoldLinks(bool /*hold*/) override { FAIL() << "one server has no links"; }
  bool Await(const std::function<bool()>& condition) override { return world_.Await(condition); }
  Values Parameters() override {
    const std::shared_ptr<const Snapshot> snapshot = shard().store().stripe().latest();
    return snapshot == nullptr ? Values() : ValuesOf(snapshot->values.span());
  }
  Shard& shard() override { return world_.shard(); }
  FakeClock& clock() override { return world_.clock(); }
  void Settle() override {}

 private:
  static constexpr uint64_t kMostPushes = 100;

  const uint64_t size_;
  std::unique_ptr<Gradients> gradients_;  // null if tensors are in messages
  std::map<SessionId, std::string> names_;
  ServerWorld world_;
};

}  // namespace

std::unique_ptr<ScriptedJob> JobOverGrpc(const ShardOptions& options, const Layout& layout,
                                         bool shared) {
  return std::make_unique<OverGrpc>(options, layout, shared);
}

}  // namespace sluice
