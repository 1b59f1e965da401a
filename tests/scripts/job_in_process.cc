#include <map>
#include <utility>

#include "gtest/gtest.h"
#include "tests/scripts/scripted_job.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/change_settings.h"
#include "tests/testing/shard/servers_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

class InProcessPush final : public ScriptedPush {
 public:
  InProcessPush(ServersWorld& world, const PushHeader& header)
      : world_(world), call_(world.Push(header, absl::nullopt)) {
    world_.Settle();
  }
  ~InProcessPush() override { Break(); }

  bool admitted() const override { return call_->parts[0].push != nullptr; }
  absl::optional<absl::StatusOr<PushOutcome>> Answer() override {
    EXPECT_LE(call_->answers, 1);
    if (call_->answers == 0 || std::exchange(told_, true)) return absl::nullopt;
    return call_->outcome;
  }
  void Finish(const Values& gradient) override {
    world_.Finish(call_, {gradient});
    world_.Settle();
  }
  void Break() override {
    if (call_->answers == 0) world_.Break(*call_);
    world_.Settle();
  }

 private:
  ServersWorld& world_;
  const ServersWorld::CallPtr call_;
  bool told_ = false;
};

class InProcessPull final : public ScriptedPull {
 public:
  InProcessPull(ServersWorld& world, const PullRequest& request)
      : world_(world), pull_(world.Pull(request)) {
    world_.Settle();
  }

  // An error of one server is the answer: a worker needs the parts of all.
  absl::optional<absl::StatusOr<StepParameters>> Answer() override {
    if (told_) return absl::nullopt;
    for (const auto& [server, answer] : pull_->answers) {
      if (answer.ok()) continue;
      told_ = true;
      return absl::StatusOr<StepParameters>(answer.status());
    }
    if (pull_->answers.size() < world_.servers()) return absl::nullopt;
    told_ = true;
    StepParameters parameters;
    parameters.header = pull_->answers.at(0)->header;
    for (const auto& [server, answer] : pull_->answers) {
      EXPECT_EQ(answer->header.step, parameters.header.step);
      EXPECT_EQ(answer->snapshot == nullptr, parameters.header.not_modified);
    }
    if (!parameters.header.not_modified) parameters.values = world_.Joined(*pull_);
    return absl::StatusOr<StepParameters>(parameters);
  }
  void Cancel() override {
    EXPECT_TRUE(world_.Cancel(*pull_));
    world_.Settle();
  }

 private:
  ServersWorld& world_;
  const ServersWorld::PullPtr pull_;
  bool told_ = false;
};

class InProcess final : public ScriptedJob {
 public:
  InProcess(const ShardOptions& options, const Layout& layout, uint32_t servers,
            const ScriptListener& listener)
      : listener_(listener),
        world_(options, layout, servers, absl::nullopt,
               [listener](const JobEvent& event) { listener("owner", event); }) {}
  ~InProcess() override {
    const ShardStatus state = shard().Describe();
    EXPECT_TRUE(state.counters.Balanced()) << Columns(state.counters);
    EXPECT_EQ(state.counters.in_progress, 0u);
  }

  absl::StatusOr<Welcome> Join(const JoinRequest& request) override {
    return Settled(shard().Join(request, [listener = listener_, name = request.worker](
                                             const JobEvent& event) { listener(name, event); }));
  }
  absl::Status Leave(SessionId session, const Farewell& farewell) override {
    return Settled(shard().Leave(session, farewell)).status();
  }
  void Lose(SessionId session) override {
    shard().ConnectionLost(session);
    world_.Settle();
  }
  absl::StatusOr<InitializeOutcome> Offer(SessionId session, const Values& parameters) override {
    const auto call = world_.Offer(session, ++attempts_[session], parameters);
    world_.Settle();
    return call->initialized;
  }
  std::unique_ptr<ScriptedPush> Push(const PushHeader& header) override {
    PushHeader sent = header;
    sent.attempt = ++attempts_[header.session];
    return std::make_unique<InProcessPush>(world_, sent);
  }
  std::unique_ptr<ScriptedPull> Pull(const PullRequest& request, bool /*waits*/) override {
    PullRequest sent = request;
    sent.number = ++pulls_[request.session];
    return std::make_unique<InProcessPull>(world_, sent);
  }
  absl::Status SetConsistency(const Consistency& consistency) override {
    return Settled(ChangeConsistency(shard(), consistency)).status();
  }
  void HoldLinks(bool hold) override {
    world_.HoldLinks(hold);
    world_.Settle();
  }
  bool Await(const std::function<bool()>& condition) override { return condition(); }
  Values Parameters() override;
  Shard& shard() override { return world_.shard(); }
  FakeClock& clock() override { return world_.clock(); }
  void Settle() override { world_.Settle(); }

 private:
  template <typename T>
  T Settled(T answer) {
    world_.Settle();
    return answer;
  }

  const ScriptListener listener_;
  std::map<SessionId, uint32_t> attempts_;
  std::map<SessionId, uint64_t> pulls_;
  ServersWorld world_;
};

// Several servers tell an observer, who is there only for it.
Values InProcess::Parameters() {
  if (world_.servers() == 1) {
    const std::shared_ptr<const Snapshot> snapshot = shard().store().stripe().latest();
    return snapshot == nullptr ? Values() : ValuesOf(snapshot->values.span());
  }
  if (shard().layout() == nullptr) return {};
  JoinRequest request;
  request.role = SessionRole::kObserver;
  request.worker = "reader of the parameters";
  request.process_nonce = ProcessNonce(1);
  request.layout = *shard().layout();
  const auto welcome = shard().Join(request, nullptr);
  EXPECT_THAT(welcome.status(), IsOk());
  if (!welcome.ok()) return {};
  PullRequest pull;
  pull.session = welcome->session;
  const auto pulled = Pull(pull, false)->Answer();
  EXPECT_TRUE(pulled.has_value());
  EXPECT_THAT(Leave(welcome->session, {}), IsOk());
  return pulled.has_value() && pulled->ok() ? (*pulled)->values : Values();
}

}  // namespace

std::unique_ptr<ScriptedJob> JobInProcess(const ShardOptions& options, const Layout& layout,
                                          uint32_t servers, ScriptListener listener) {
  return std::make_unique<InProcess>(options, layout, servers, listener);
}

}  // namespace sluice
