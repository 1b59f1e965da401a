#include "tests/server/shard/leading_world.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr uint64_t kManyEvents = 1000000;

}  // namespace

LeadingWorld::LeadingWorld(const ShardOptions& options, const Layout& model,
                           const OptimizerConfig& optimizer, uint32_t servers, uint64_t seed)
    : model_(model),
      optimizer_(optimizer),
      stripes_(model.size(), servers),
      seed_(seed),
      dice_(seed),
      shard_(std::make_unique<Shard>(options, clock_)) {
  std::vector<ReplicaLink*> links;
  for (uint32_t server = 1; server < servers; ++server) {
    AddReplica(server);
    links.push_back(links_.back().get());
  }
  shard_->Lead(links, [this](absl::FunctionRef<bool()> until) { Pump(until); });
}

LeadingWorld::~LeadingWorld() = default;

void LeadingWorld::AddReplica(uint32_t server) {
  const size_t index = links_.size();
  followers_.push_back(std::make_unique<Replica>(
      StripePlace{server, stripes_.count()}, SnapshotMemory::kPrivate, nullptr, Executors::Inline(),
      [this, index](const ReplicaReport& report) { links_[index]->Report(report); }));
  links_.push_back(std::make_unique<LateLink>(
      dice_, *followers_.back(),
      [this, server](const ReplicaReport& report) { shard_->OnReport(server, report); }));
}

SessionId LeadingWorld::Join(uint32_t worker) {
  JoinRequest request;
  request.worker = absl::StrCat("w", worker);
  request.index = worker;
  request.process_nonce = ProcessNonce(worker + 1);
  request.layout = model_;
  request.optimizer = optimizer_;
  const auto welcome = shard_->Join(request, nullptr);
  CHECK(welcome.ok()) << welcome.status();
  return welcome->session;
}

// ---- Pushes and offers ----

std::shared_ptr<StripedCall> LeadingWorld::Push(const PushHeader& header, const Gradient& gradient,
                                                const std::function<bool(uint32_t)>& sends) {
  auto call = std::make_shared<StripedCall>();
  call->header = header;
  for (const auto& [name, row] : gradient.rows) call->header.row_bytes += RowBytes(1, row.size());
  call->gradient = gradient;
  return Send(std::move(call), sends);
}

std::shared_ptr<StripedCall> LeadingWorld::Offer(SessionId session, uint32_t attempt,
                                                 const Values& parameters,
                                                 const std::function<bool(uint32_t)>& sends) {
  PushHeader header;
  header.session = session;
  header.attempt = attempt;
  return Push(header, {parameters}, sends);
}

LeadingWorld::CallPtr LeadingWorld::Send(CallPtr call, const std::function<bool(uint32_t)>& sends) {
  for (uint32_t server = 0; server < servers(); ++server) {
    if (sends != nullptr && !sends(server)) continue;
    events_.push_back([this, server, call] {
      if (call->broken) return;
      if (server > 0) {
        SendToReplica(server, call);
      } else if (call->header.sequence == Sequence()) {
        OfferToShard(call);
      } else {
        SendToShard(call);
      }
    });
  }
  return call;
}

void LeadingWorld::SendToReplica(uint32_t server, const CallPtr& call) {
  const auto start = [this, server, call](absl::StatusOr<std::unique_ptr<PendingPush>> push) {
    if (!push.ok()) return;
    const auto shared = std::make_shared<std::unique_ptr<PendingPush>>(*std::move(push));
    events_.push_back([this, server, call, shared] {
      if (call->broken) return;
      const absl::Status added = AddPart(call->gradient, server, **shared);
      if (!added.ok()) ++call->refused;
      replica(server).calls().EndPush(std::move(*shared), added).IgnoreError();
    });
  };
  call->elsewhere[server] = replica(server).calls().BeginPush(call->header, start);
}

void LeadingWorld::SendToShard(const CallPtr& call) {
  const auto answer = [call](const absl::StatusOr<PushOutcome>& outcome) {
    ++call->answers;
    call->outcome = outcome;
  };
  const auto end = [this, call, answer] {
    if (call->own == nullptr) return;
    const absl::Status added = AddPart(call->gradient, 0, *call->own);
    if (added.ok()) {
      const PushId id = shard_->FinishPush(std::move(call->own), answer);
      call->gathers = call->answers > 0 ? PushId() : id;
    } else {
      shard_->RefusePush(std::move(call->own), added, answer);
    }
  };
  const auto start = [this, call, answer, end](absl::StatusOr<PushStart> start) {
    call->waits = PushId();
    if (!start.ok()) return answer(start.status());
    if (start->push == nullptr) return answer(start->answer);
    call->own = std::move(start->push);
    call->broken ? EndOwn(*call) : events_.push_back(end);
  };
  const auto cancel = [this, call] { events_.push_back([this, call] { Break(*call); }); };
  const PushId waits = shard_->BeginPush(call->header, start, cancel);
  if (waits != PushId() && call->own == nullptr && call->answers == 0) call->waits = waits;
}

void LeadingWorld::OfferToShard(const CallPtr& call) {
  auto start = shard_->BeginInitialize(call->header.session, call->header.attempt);
  if (!start.ok() || start->parameters == nullptr) {
    call->initialized =
        start.ok() ? start->answer : absl::StatusOr<InitializeOutcome>(start.status());
    ++call->answers;
    return;
  }
  call->own = std::move(start->parameters);
  events_.push_back([this, call] {
    if (call->own == nullptr) return;
    CHECK(AddPart(call->gradient, 0, *call->own).ok());
    const auto done = [call](const absl::StatusOr<InitializeOutcome>& outcome) {
      ++call->answers;
      call->initialized = outcome;
    };
    const PushId id = shard_->FinishInitialize(std::move(call->own), done);
    call->gathers = call->answers > 0 ? PushId() : id;
  });
}

// The vector's part comes before the rows in some pushes, and after them in others.
absl::Status LeadingWorld::AddPart(const Gradient& gradient, uint32_t server,
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

void LeadingWorld::EndOwn(StripedCall& call) {
  if (call.header.sequence == Sequence()) {
    shard_->AbandonInitialize(std::move(call.own));
  } else {
    shard_->AbandonPush(std::move(call.own), Abandoned::kAborted);
  }
}

void LeadingWorld::Break(StripedCall& call) {
  call.broken = true;
  for (uint32_t server = 1; server < servers(); ++server) {
    replica(server).CancelPush(call.elsewhere[server]);
  }
  if (call.waits != PushId()) {
    shard_->CancelPush(call.waits);
  } else if (call.own != nullptr) {
    EndOwn(call);
  } else if (call.gathers != PushId()) {
    shard_->CancelGathering(call.gathers);
  }
}

// ---- Pulls ----

std::shared_ptr<StripedPull> LeadingWorld::Pull(const PullRequest& request) {
  auto pull = std::make_shared<StripedPull>();
  for (uint32_t server = 0; server < servers(); ++server) {
    events_.push_back([this, server, pull, request] {
      const auto done = [server, pull](const absl::StatusOr<PullResult>& result) {
        CHECK(pull->answers.emplace(server, result).second) << "answered twice";
      };
      if (server > 0) {
        replica(server).calls().Pull({request.session, request.number}, done);
      } else {
        pull->waits = shard_->Pull(request, done);
      }
    });
  }
  return pull;
}

// ---- Time ----

void LeadingWorld::Act() {
  const size_t which = dice_() % (events_.size() + 2 * links_.size() + 1);
  if (which < events_.size()) {
    const auto event = std::move(events_[which]);
    events_.erase(events_.begin() + static_cast<ptrdiff_t>(which));
    event();
  } else if (!links_.empty()) {
    links_[dice_() % links_.size()]->Act();
  }
}

void LeadingWorld::Pump(absl::FunctionRef<bool()> until) {
  for (uint64_t i = 0; i < kManyEvents && !until(); ++i) Act();
  CHECK(until()) << "nothing gets on in story " << seed_ << " of " << servers() << " servers";
}

void LeadingWorld::Settle() {
  Pump([this] {
    return events_.empty() &&
           std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link->idle(); });
  });
}

// ---- Vectors ----

Values LeadingWorld::PartOf(const Values& whole, uint32_t stripe) const {
  Values part(stripes_.SizeOf(stripe));
  for (uint64_t i = 0; i < part.size(); ++i) part[i] = whole[stripes_.InVector(stripe, i)];
  return part;
}

Values LeadingWorld::Joined(const StripedPull& pull) const {
  Values whole(stripes_.size());
  for (const auto& [stripe, result] : pull.answers) {
    const absl::Span<const float> part = result.value().snapshot->values.span();
    CHECK_EQ(part.size(), stripes_.SizeOf(stripe));
    for (uint64_t i = 0; i < part.size(); ++i) whole[stripes_.InVector(stripe, i)] = part[i];
  }
  return whole;
}

Values LeadingWorld::RowOf(const StripedPull& pull, uint32_t table, RowId id) const {
  Values row(model_.tables()[table].width);
  const auto& result = pull.answers.at(BucketOf(id) % servers());
  result.value().snapshot->rows->Read(table, {id}, absl::MakeSpan(row));
  return row;
}

}  // namespace sluice
