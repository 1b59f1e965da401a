#include "tests/testing/shard/servers_world.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr uint64_t kManyEvents = 1000000;

}  // namespace

ServersWorld::ServersWorld(const ShardOptions& options, const Layout& model, uint32_t servers,
                           absl::optional<uint64_t> seed, JobListener owner)
    : model_(model),
      stripes_(model.size(), servers),
      seed_(seed),
      dice_(seed.value_or(0)),
      shard_(std::make_unique<Shard>(options, clock_, std::move(owner))) {
  std::vector<ReplicaLink*> links;
  for (uint32_t server = 1; server < servers; ++server) {
    AddReplica(server);
    links.push_back(links_.back().get());
  }
  if (links.empty()) return;
  shard_->Lead(links, nullptr, [this](absl::FunctionRef<bool()> until) { Pump(until); });
}

ServersWorld::~ServersWorld() = default;

void ServersWorld::AddReplica(uint32_t server) {
  const size_t index = links_.size();
  replicas_.push_back(std::make_unique<Replica>(
      StripePlace{server, stripes_.count()}, SnapshotMemory::kPrivate, nullptr, Executors::Inline(),
      [this, index](const ReplicaReport& report) { links_[index]->Report(report); }));
  Replica& replica = *replicas_.back();
  const auto execute = [&replica](const ReplicaCommand& command) { replica.Execute(command); };
  const auto report = [this, server](const ReplicaReport& report) {
    shard_->OnReport(server, report);
  };
  if (seed_.has_value()) {
    links_.push_back(std::make_unique<LateLink>(dice_, execute, report));
  } else {
    auto link = std::make_unique<PromptLink>(execute, report);
    prompt_.push_back(link.get());
    links_.push_back(std::move(link));
  }
}

ParameterStore& ServersWorld::store(uint32_t server) {
  if (server == 0) return shard_->store();
  return *replicas_[server - 1];
}

SessionId ServersWorld::Join(uint32_t worker, const OptimizerConfig& optimizer) {
  JoinRequest request;
  request.worker = absl::StrCat("w", worker);
  request.index = worker;
  request.process_nonce = ProcessNonce(worker + 1);
  request.layout = model_;
  request.optimizer = optimizer;
  const auto welcome = shard_->Join(request, nullptr);
  CHECK(welcome.ok()) << welcome.status();
  return welcome->session;
}

// ---- Pushes and offers ----

ServersWorld::CallPtr ServersWorld::Push(const PushHeader& header,
                                         absl::optional<Gradient> gradient, const Sends& sends) {
  auto call = std::make_shared<StripedCall>();
  call->header = header;
  if (gradient.has_value()) {
    for (const auto& [name, row] : gradient->rows) {
      call->header.row_bytes += RowBytes(1, row.size());
    }
  }
  call->gradient = std::move(gradient);
  return Send(std::move(call), sends);
}

ServersWorld::CallPtr ServersWorld::Offer(SessionId session, uint32_t attempt,
                                          const Values& parameters, const Sends& sends) {
  auto call = std::make_shared<StripedCall>();
  call->is_offer = true;
  call->header.session = session;
  call->header.attempt = attempt;
  call->gradient = Gradient{parameters};
  return Send(std::move(call), sends);
}

ServersWorld::CallPtr ServersWorld::Send(CallPtr call, const Sends& sends) {
  call->parts.resize(servers());
  for (uint32_t server = 0; server < servers(); ++server) {
    if (sends != nullptr && !sends(server)) continue;
    events_.push_back([this, server, call] {
      if (call->broken) return;
      call->is_offer ? BeginOffer(server, call) : Begin(server, call);
    });
  }
  return call;
}

void ServersWorld::Begin(uint32_t server, const CallPtr& call) {
  const auto answer = [call](const absl::StatusOr<PushOutcome>& outcome) {
    ++call->answers;
    call->outcome = outcome;
  };
  const auto start = [this, server, call, answer](absl::StatusOr<PushStart> start) {
    call->parts[server].waits = PushId();
    if (start.ok() && start->push != nullptr) {
      Admit(server, call, std::move(start->push));
    } else if (server == 0) {
      answer(start.ok() ? absl::StatusOr<PushOutcome>(start->answer) : start.status());
    }
  };
  const auto cancel = [this, call] { events_.push_back([this, call] { Break(*call); }); };
  const int before = call->answers;
  const PushId waits = store(server).BeginPush(call->header, start, cancel);
  const bool started = call->parts[server].push != nullptr || call->answers > before;
  if (!started) call->parts[server].waits = waits;
}

void ServersWorld::BeginOffer(uint32_t server, const CallPtr& call) {
  const auto start = [this, server, call](absl::StatusOr<InitializeStart> start) {
    call->parts[server].waits = PushId();
    if (start.ok() && start->parameters != nullptr) {
      Admit(server, call, std::move(start->parameters));
    } else if (server == 0) {
      ++call->answers;
      call->initialized =
          start.ok() ? start->answer : absl::StatusOr<InitializeOutcome>(start.status());
    }
  };
  const PushId waits =
      store(server).BeginInitialize(call->header.session, call->header.attempt, start, nullptr);
  const bool started = call->parts[server].push != nullptr || call->answers > 0;
  if (!started) call->parts[server].waits = waits;
}

// A callback may not call back, so the rest happens later.
void ServersWorld::Admit(uint32_t server, const CallPtr& call, std::unique_ptr<PendingPush> push) {
  call->parts[server].push = std::move(push);
  if (call->broken) {
    events_.push_back([this, server, call] { EndPart(server, *call); });
  } else if (call->gradient.has_value()) {
    events_.push_back([this, server, call] { SendPart(server, call); });
  }
}

void ServersWorld::Finish(const CallPtr& call, const Gradient& gradient) {
  call->gradient = gradient;
  for (uint32_t server = 0; server < servers(); ++server) {
    events_.push_back([this, server, call] { SendPart(server, call); });
  }
}

void ServersWorld::SendPart(uint32_t server, const CallPtr& call) {
  StripedCall::Part& part = call->parts[server];
  if (part.push == nullptr) return;
  const absl::Status added = AddPart(*call->gradient, server, *part.push);
  const auto answer = [call, server](auto& where, const auto& outcome) {
    call->parts[server].gathers = PushId();
    if (server > 0) return;
    ++call->answers;
    where = outcome;
  };
  const int before = call->answers;
  PushId gathers;
  if (call->is_offer) {
    CHECK(added.ok()) << added;
    gathers = store(server).FinishInitialize(
        std::move(part.push),
        [call, answer](const auto& outcome) { answer(call->initialized, outcome); });
  } else if (added.ok()) {
    gathers = store(server).FinishPush(std::move(part.push), [call, answer](const auto& outcome) {
      answer(call->outcome, outcome);
    });
  } else {
    if (server > 0) ++call->refused;
    store(server).RefusePush(std::move(part.push), added, [call, answer](const auto& outcome) {
      answer(call->outcome, outcome);
    });
  }
  if (call->answers == before) part.gathers = gathers;
}

// The vector's part comes before the rows in some pushes, and after them in others.
absl::Status ServersWorld::AddPart(const Gradient& gradient, uint32_t server,
                                   PendingPush& push) const {
  const Values part = PartOf(gradient.vector, server);
  Values rows;
  std::map<uint32_t, RowIds> ids;
  for (const auto& [name, row] : gradient.rows) {
    if (BucketOf(name.second) % servers() != server) continue;
    ids[name.first].table = name.first;
    ids[name.first].ids.push_back(name.second);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  const bool rows_first = push.id().value() % 2 == 0 || part.empty();
  absl::Status added = rows_first ? absl::OkStatus() : push.Add(ChunkOf(0, part));
  for (auto& [table, of_table] : ids) {
    if (added.ok()) added = push.AddIds(std::move(of_table));
  }
  if (added.ok() && !rows.empty()) added = push.Add(ChunkOf(part.size(), rows));
  if (added.ok() && rows_first && !part.empty()) added = push.Add(ChunkOf(0, part));
  return added;
}

void ServersWorld::EndPart(uint32_t server, StripedCall& call) {
  StripedCall::Part& part = call.parts[server];
  if (part.waits != PushId()) {
    store(server).CancelPush(part.waits);
  } else if (part.push != nullptr && call.is_offer) {
    store(server).AbandonInitialize(std::move(part.push));
  } else if (part.push != nullptr) {
    store(server).AbandonPush(std::move(part.push), Abandoned::kAborted);
  } else if (part.gathers != PushId()) {
    store(server).CancelGathering(part.gathers);
  }
}

void ServersWorld::Break(StripedCall& call) {
  call.broken = true;
  for (uint32_t server = 0; server < servers(); ++server) EndPart(server, call);
}

// ---- Pulls ----

ServersWorld::PullPtr ServersWorld::Pull(const PullRequest& request) {
  auto pull = std::make_shared<StripedPull>();
  pull->ids.resize(servers());
  for (uint32_t server = 0; server < servers(); ++server) {
    events_.push_back([this, server, pull, request] {
      const auto done = [server, pull](const absl::StatusOr<PullResult>& result) {
        CHECK(pull->answers.emplace(server, result).second) << "answered twice";
      };
      pull->ids[server] = store(server).Pull(request, done);
    });
  }
  return pull;
}

bool ServersWorld::Cancel(StripedPull& pull) {
  for (uint32_t server = 1; server < servers(); ++server) {
    store(server).CancelPull(pull.ids[server]);
  }
  return shard_->store().CancelPull(pull.ids[0]);
}

// ---- Time ----

void ServersWorld::Act() {
  if (!seed_.has_value()) {
    if (events_.empty()) {
      for (const auto& link : links_) {
        if (!link->idle()) return link->Act();
      }
      return;
    }
    const auto event = std::move(events_.front());
    events_.pop_front();
    return event();
  }
  const size_t which = dice_() % (events_.size() + 2 * links_.size() + 1);
  if (which < events_.size()) {
    const auto event = std::move(events_[which]);
    events_.erase(events_.begin() + static_cast<ptrdiff_t>(which));
    event();
  } else if (!links_.empty()) {
    links_[dice_() % links_.size()]->Act();
  }
}

void ServersWorld::Pump(absl::FunctionRef<bool()> until) {
  for (uint64_t i = 0; i < kManyEvents && !until(); ++i) Act();
  CHECK(until()) << "nothing gets on with " << servers() << " servers and the seed "
                 << seed_.value_or(0);
}

bool ServersWorld::LinksAreIdle() const {
  return std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link->idle(); });
}

void ServersWorld::Settle() {
  Pump([this] { return events_.empty() && LinksAreIdle(); });
}

void ServersWorld::HoldLinks(bool hold) {
  for (PromptLink* const link : prompt_) link->Hold(hold);
}

// ---- Vectors ----

// Of a gradient of another size, which the first server refuses, that one gets all.
Values ServersWorld::PartOf(const Values& whole, uint32_t stripe) const {
  if (servers() == 1 || whole.size() != stripes_.size()) return stripe == 0 ? whole : Values();
  Values part(stripes_.SizeOf(stripe));
  for (uint64_t i = 0; i < part.size(); ++i) part[i] = whole[stripes_.InVector(stripe, i)];
  return part;
}

Values ServersWorld::Joined(const StripedPull& pull) const {
  Values whole(stripes_.size());
  for (const auto& [stripe, result] : pull.answers) {
    const absl::Span<const float> part = result.value().snapshot->values.span();
    CHECK_EQ(part.size(), stripes_.SizeOf(stripe));
    for (uint64_t i = 0; i < part.size(); ++i) whole[stripes_.InVector(stripe, i)] = part[i];
  }
  return whole;
}

Values ServersWorld::RowOf(const StripedPull& pull, uint32_t table, RowId id) const {
  Values row(model_.tables()[table].width);
  const auto& result = pull.answers.at(BucketOf(id) % servers());
  result.value().snapshot->rows->Read(table, {id}, absl::MakeSpan(row));
  return row;
}

}  // namespace sluice
