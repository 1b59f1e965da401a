#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "common/tensor/stripes.h"
#include "gtest/gtest.h"
#include "server/replica/replica.h"
#include "tests/scripts/scripted_job.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/outcome.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

// The messages of one link, in both directions. They come in order, when Deliver() is called.
class QueuedLink final : public ReplicaLink {
 public:
  explicit QueuedLink(Replica& replica) : replica_(replica) {}

  void Send(const ReplicaCommand& command) override {
    Add([this, command] { replica_.Execute(command); });
  }
  void Add(std::function<void()> deliver) { messages_.push_back(std::move(deliver)); }

  // Whether there was one.
  bool Deliver() {
    if (messages_.empty()) return false;
    const auto message = std::move(messages_.front());
    messages_.pop_front();
    message();
    return true;
  }

 private:
  Replica& replica_;
  std::deque<std::function<void()>> messages_;
};

class InProcess final : public ScriptedJob {
 public:
  InProcess(const ShardOptions& options, const Layout& layout, uint32_t servers,
            ScriptListener listener)
      : stripes_(layout.size(), servers),
        listener_(std::move(listener)),
        shard_(options, clock_, [this](const JobEvent& event) { listener_("owner", event); }) {
    std::vector<ReplicaLink*> links;
    for (uint32_t server = 1; server < servers; ++server) links.push_back(AddReplica(server));
    if (!links.empty()) {
      shard_.Lead(links, [this](absl::FunctionRef<bool()> until) {
        while (!until()) ASSERT_TRUE(DeliverOne()) << "the shard waits for what nobody sends";
      });
    }
  }

  ~InProcess() override {
    const ShardStatus state = shard_.Describe();
    EXPECT_TRUE(state.counters.Balanced()) << Columns(state.counters);
    EXPECT_EQ(state.counters.in_progress, 0u);
  }

  absl::StatusOr<Welcome> Join(const JoinRequest& request) override {
    const auto welcome = shard_.Join(
        request, [this, name = request.worker](const JobEvent& event) { listener_(name, event); });
    Settle();
    return welcome;
  }

  absl::Status Leave(SessionId session, const Farewell& farewell) override {
    const absl::Status left = shard_.Leave(session, farewell).status();
    Settle();
    return left;
  }

  void Lose(SessionId session) override {
    shard_.ConnectionLost(session);
    Settle();
  }

  absl::StatusOr<InitializeOutcome> Offer(SessionId session, const Values& parameters) override;
  std::unique_ptr<ScriptedPush> Push(const PushHeader& header) override;
  std::unique_ptr<ScriptedPull> Pull(const PullRequest& request, bool waits) override;

  absl::Status SetConsistency(const Consistency& consistency) override {
    const auto set = shard_.SetConsistency(consistency);
    Settle();
    return set.status();
  }

  void HoldLinks(bool hold) override {
    held_ = hold;
    Settle();
  }

  bool Await(const std::function<bool()>& condition) override { return condition(); }
  Values Parameters() override;
  Shard& shard() override { return shard_; }
  FakeClock& clock() override { return clock_; }

  uint32_t servers() const { return stripes_.count(); }
  ParameterStore& store(uint32_t server) {
    if (server == 0) return shard_;
    return *replicas_[server - 1];
  }

  // Does that after what is under way: a callback may not call back.
  void Later(std::function<void()> act) { later_.push_back(std::move(act)); }
  void Settle() override {
    while (true) {
      if (!later_.empty()) {
        const auto act = std::move(later_.front());
        later_.pop_front();
        act();
      } else if (held_ || !DeliverOne()) {
        return;
      }
    }
  }

  absl::Status AddPart(const Values& whole, uint32_t server, PendingPush& push) const {
    const bool fits = whole.size() == stripes_.size();
    if (servers() == 1 || !fits) {  // what does not fit is the first server's to refuse
      return server == 0 || fits ? push.Add(ChunkOf(0, whole)) : absl::OkStatus();
    }
    Values part(stripes_.SizeOf(server));
    for (uint64_t i = 0; i < part.size(); ++i) part[i] = whole[stripes_.InVector(server, i)];
    return part.empty() ? absl::OkStatus() : push.Add(ChunkOf(0, part));
  }
  void PutPart(const Snapshot& snapshot, uint32_t server, Values* whole) const {
    const absl::Span<const float> part = snapshot.values.span();
    whole->resize(stripes_.size());
    for (uint64_t i = 0; i < part.size(); ++i) (*whole)[stripes_.InVector(server, i)] = part[i];
  }

 private:
  ReplicaLink* AddReplica(uint32_t server) {
    const size_t index = links_.size();
    replicas_.push_back(std::make_unique<Replica>(
        StripePlace{server, stripes_.count()}, SnapshotMemory::kPrivate, nullptr,
        Executors::Inline(), [this, index, server](const ReplicaReport& report) {
          links_[index]->Add([this, server, report] { shard_.OnReport(server, report); });
        }));
    links_.push_back(std::make_unique<QueuedLink>(*replicas_.back()));
    return links_.back().get();
  }

  bool DeliverOne() {
    for (const auto& link : links_) {
      if (link->Deliver()) return true;
    }
    return false;
  }

  const Stripes stripes_;
  const ScriptListener listener_;
  FakeClock clock_;
  bool held_ = false;
  std::map<SessionId, uint32_t> attempts_;
  std::map<SessionId, uint64_t> pulls_;
  std::deque<std::function<void()>> later_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<QueuedLink>> links_;
  Shard shard_;
};

// The streams of one push to all servers. Callbacks share the state with the script's handle.
class InProcessPush final : public ScriptedPush {
 public:
  InProcessPush(InProcess& job, const PushHeader& header) : state_(std::make_shared<State>(job)) {
    for (uint32_t server = 0; server < job.servers(); ++server) Begin(server, header);
  }
  ~InProcessPush() override { Break(); }

  bool admitted() const override { return state_->parts[0].push != nullptr; }
  absl::optional<absl::StatusOr<PushOutcome>> Answer() override {
    return std::exchange(state_->answer, absl::nullopt);
  }
  void Finish(const Values& gradient) override {
    state_->gradient = gradient;
    for (uint32_t server = 0; server < state_->job.servers(); ++server) Send(state_, server);
    state_->job.Settle();
  }
  void Break() override {
    BreakAll(*state_);
    state_->job.Settle();
  }

 private:
  struct Part {
    PushId waits;    // at its header
    PushId gathers;  // for the parts of other servers
    std::unique_ptr<PendingPush> push;
  };
  struct State {
    explicit State(InProcess& in) : job(in), parts(in.servers()) {}
    InProcess& job;
    std::vector<Part> parts;          // by server
    absl::optional<Values> gradient;  // once it is to be sent
    bool broken = false;
    bool answered = false;
    absl::optional<absl::StatusOr<PushOutcome>> answer;

    void Take(const absl::StatusOr<PushOutcome>& told) {
      EXPECT_FALSE(answered) << "a push was answered twice";
      answered = true;
      answer = told;
    }
  };

  void Begin(uint32_t server, const PushHeader& header) {
    const auto state = state_;
    const auto start = [state, server](absl::StatusOr<PushStart> start) {
      state->parts[server].waits = PushId();
      if (start.ok() && start->push != nullptr) {
        state->parts[server].push = std::move(start->push);
        if (state->gradient.has_value()) state->job.Later([=] { Send(state, server); });
      } else if (server == 0) {
        state->Take(start.ok() ? absl::StatusOr<PushOutcome>(start->answer) : start.status());
      }
    };
    const auto cancel = [state] { state->job.Later([state] { BreakAll(*state); }); };
    const PushId waits = state->job.store(server).BeginPush(header, start, cancel);
    const bool begun = state->parts[server].push != nullptr || (server == 0 && state->answered);
    if (!begun) state->parts[server].waits = waits;
  }

  static void Send(const std::shared_ptr<State>& state, uint32_t server) {
    Part& part = state->parts[server];
    if (part.push == nullptr) return;
    ParameterStore& store = state->job.store(server);
    const auto done = [state, server](const absl::StatusOr<PushOutcome>& outcome) {
      state->parts[server].gathers = PushId();
      if (server == 0) state->Take(outcome);
    };
    const absl::Status added = state->job.AddPart(*state->gradient, server, *part.push);
    if (!added.ok()) return store.RefusePush(std::move(part.push), added, done);
    const PushId gathers = store.FinishPush(std::move(part.push), done);
    if (server > 0 || !state->answered) part.gathers = gathers;
  }

  static void BreakAll(State& state) {
    if (std::exchange(state.broken, true) || state.answered) return;
    for (uint32_t server = 0; server < state.job.servers(); ++server) {
      Part& part = state.parts[server];
      ParameterStore& store = state.job.store(server);
      if (part.waits != PushId()) {
        store.CancelPush(part.waits);
      } else if (part.push != nullptr) {
        store.AbandonPush(std::move(part.push), Abandoned::kAborted);
      } else if (part.gathers != PushId()) {
        store.CancelGathering(part.gathers);
      }
    }
  }

  const std::shared_ptr<State> state_;
};

class InProcessPull final : public ScriptedPull {
 public:
  InProcessPull(InProcess& job, const PullRequest& request)
      : job_(job), state_(std::make_shared<State>()) {
    state_->missing = job.servers();
    for (uint32_t server = 0; server < job.servers(); ++server) {
      ids_.push_back(job.store(server).Pull(
          request, [&job, server, state = state_](const absl::StatusOr<PullResult>& result) {
            state->Take(job, server, result);
          }));
    }
  }

  absl::optional<absl::StatusOr<StepParameters>> Answer() override {
    if (state_->missing > 0 && state_->error.ok()) return absl::nullopt;
    if (std::exchange(state_->told, true)) return absl::nullopt;
    if (!state_->error.ok()) return absl::StatusOr<StepParameters>(state_->error);
    return absl::StatusOr<StepParameters>(state_->pulled);
  }

  void Cancel() override {
    EXPECT_TRUE(job_.shard().CancelPull(ids_[0]));
    for (uint32_t server = 1; server < job_.servers(); ++server) {
      job_.store(server).CancelPull(ids_[server]);
    }
    job_.Settle();
  }

 private:
  struct State {
    uint32_t missing = 0;
    bool told = false;
    absl::Status error;
    StepParameters pulled;

    void Take(InProcess& job, uint32_t server, const absl::StatusOr<PullResult>& result) {
      EXPECT_GT(missing, 0u) << "a pull was answered twice";
      --missing;
      if (!result.ok()) {
        if (server == 0) error = result.status();
        return;
      }
      if (server == 0) pulled.header = result->header;
      EXPECT_EQ(result->header.step, server == 0 ? pulled.header.step : result->header.step);
      if (result->snapshot != nullptr) job.PutPart(*result->snapshot, server, &pulled.values);
    }
  };

  InProcess& job_;
  const std::shared_ptr<State> state_;
  std::vector<PullId> ids_;  // by server
};

std::unique_ptr<ScriptedPush> InProcess::Push(const PushHeader& header) {
  PushHeader sent = header;
  sent.attempt = ++attempts_[header.session];
  auto push = std::make_unique<InProcessPush>(*this, sent);
  Settle();
  return push;
}

std::unique_ptr<ScriptedPull> InProcess::Pull(const PullRequest& request, bool /*waits*/) {
  PullRequest sent = request;
  sent.number = ++pulls_[request.session];
  auto pull = std::make_unique<InProcessPull>(*this, sent);
  Settle();
  return pull;
}

absl::StatusOr<InitializeOutcome> InProcess::Offer(SessionId session, const Values& parameters) {
  const auto answer =
      std::make_shared<absl::StatusOr<InitializeOutcome>>(absl::UnknownError("not answered"));
  const uint32_t attempt = ++attempts_[session];
  for (uint32_t server = 0; server < servers(); ++server) {
    const auto done = [answer, server](const absl::StatusOr<InitializeOutcome>& outcome) {
      if (server == 0) *answer = outcome;
    };
    const auto start = [this, server, done, parameters](absl::StatusOr<InitializeStart> start) {
      if (!start.ok()) return done(start.status());
      if (start->parameters == nullptr) return done(start->answer);
      const auto part =
          std::make_shared<std::unique_ptr<PendingPush>>(std::move(start->parameters));
      Later([this, server, done, parameters, part] {
        EXPECT_THAT(AddPart(parameters, server, **part), IsOk());
        store(server).FinishInitialize(std::move(*part), done);
      });
    };
    store(server).BeginInitialize(session, attempt, start, nullptr);
  }
  Settle();
  return *answer;
}

// Several servers tell an observer, who is there only for it.
Values InProcess::Parameters() {
  if (servers() == 1) {
    const std::shared_ptr<const Snapshot> snapshot = shard_.snapshot();
    return snapshot == nullptr ? Values() : ValuesOf(snapshot->values.span());
  }
  JoinRequest request;
  request.role = SessionRole::kObserver;
  request.worker = "reader of the parameters";
  request.process_nonce = ProcessNonce(1);
  request.layout = *shard_.layout();
  const auto welcome = shard_.Join(request, nullptr);
  EXPECT_THAT(welcome.status(), IsOk());
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
  return std::make_unique<InProcess>(options, layout, servers, std::move(listener));
}

}  // namespace sluice
