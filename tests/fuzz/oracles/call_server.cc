#include "tests/fuzz/oracles/call_server.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/messages.h"
#include "common/wire/push.h"
#include "common/wire/settings.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/fuzz/refusal.h"
#include "tests/testing/buffers.h"
#include "tests/testing/shard/finish_offer.h"

namespace sluice {
namespace {

template <typename Message>
absl::optional<Message> Parsed(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) return absl::nullopt;
  return message;
}

// An error that the shard or a translator gives to a peer.
void CheckRefused(const absl::Status& status) {
  if (status.ok()) return;
  CHECK(ReasonOf(status) != Reason::kNone) << status;
  CheckRefusal(status, {ReasonOf(status)});
}

bool Counts(Disposition disposition) {
  return disposition == Disposition::kAccepted || disposition == Disposition::kApplied;
}

}  // namespace

CallServer::CallServer(const ShardOptions& options, bool journal)
    : options_(options), journals_(journal) {
  Start();
  if (journals_) shard_->durability().EnableJournal(journal_.get());
}

CallServer::~CallServer() { End(); }

void CallServer::Start() {
  shard_ = std::make_unique<Shard>(options_, clock_);
  journal_ = std::make_unique<RecordingJournal>();
  snapshots_.clear();
  durable_ = 0;
  begun_ = 0;
}

// ---- Sessions ----

void CallServer::Join(const std::string& bytes) {
  const auto message = Parsed<v1::JoinRequest>(bytes);
  if (!message.has_value()) return;
  const auto request = FromProto(*message);
  if (!request.ok()) return CheckRefused(request.status());
  const auto welcome = shard_->Join(*request, [](const JobEvent&) {});
  CheckRefused(welcome.status());
  if (welcome.ok()) Welcomed(*request, *welcome);
  Check();
}

// A process that the server does not remember, or that has left, may not repeat its pushes: from
// now on it is another one. Others are told of each push that counted.
void CallServer::Welcomed(const JoinRequest& request, const Welcome& welcome) {
  const ProcessName name = {request.worker, request.process_nonce.value()};
  uint64_t& process = processes_[name];
  if (process == 0 || !welcome.resumed) process = welcome.session.value();
  process_of_[welcome.session.value()] = process;
  sessions_.push_back(welcome.session.value());
  const auto after = counted_.upper_bound({process, UINT64_MAX});
  if (after == counted_.begin() || std::prev(after)->first.first != process) return;
  CHECK_GE(welcome.last_sequence.value(), std::prev(after)->first.second)
      << request.worker << " may repeat a push that counted";
}

void CallServer::ForgetProcess(uint64_t session) {
  const uint64_t process = process_of_.at(session);
  for (auto& entry : processes_) {
    if (entry.second == process) entry.second = 0;
  }
}

void CallServer::Heartbeat(uint64_t session) {
  CheckRefused(shard_->Heartbeat(SessionId(session)).status());
  Check();
}

void CallServer::BreakJoin(uint64_t session) {
  shard_->ConnectionLost(SessionId(session));
  Check();
}

void CallServer::Leave(const std::string& bytes) {
  const auto message = Parsed<v1::LeaveRequest>(bytes);
  if (!message.has_value()) return;
  const Farewell farewell = {{message->results().begin(), message->results().end()},
                             message->failure()};
  const auto step = shard_->Leave(SessionId(message->session()), farewell);
  CheckRefused(step.status());
  if (step.ok()) ForgetProcess(message->session());
  Check();
}

void CallServer::Initialize(const std::string& header, const std::string& chunk) {
  const auto message = Parsed<v1::InitializeParamsRequest>(header);
  if (!message.has_value() || !message->has_header()) return;
  auto start = shard_->store().BeginInitialize(SessionId(message->header().session()));
  CheckRefused(start.status());
  if (!start.ok() || start->parameters == nullptr) return;
  auto decoded = DecodeChunk<v1::InitializeParamsRequest>(Sliced(chunk, {}));
  CheckRefused(decoded.status());
  if (!decoded.ok()) return;
  const absl::Status added = start->parameters->Add(*std::move(decoded), nullptr, &transforms_);
  CheckRefused(added);
  if (!added.ok()) return;
  const auto outcome = FinishOffer(*shard_, std::move(start->parameters));
  CheckRefused(outcome.status());
  if (outcome.ok() && journals_) TakeCheckpoint();
  Check();
}

// ---- Pushes ----

void CallServer::BeginPush(const std::string& bytes) {
  const size_t number = pushes_.size();
  pushes_.push_back(std::make_unique<Push>());
  const auto message = Parsed<v1::PushGradientsRequest>(bytes);
  absl::StatusOr<PushHeader> header = MakeError(Reason::kMissingHeader, "the push has no header");
  if (message.has_value() && message->has_header()) header = FromProto(message->header());
  if (header.ok()) pushes_.back()->header = *header;
  ++begun_;
  pushes_[number]->id = shard_->store().BeginPush(
      header,
      [this, number](absl::StatusOr<PushStart> start) { HearStart(number, std::move(start)); },
      [] {});
  Check();
}

void CallServer::HearStart(size_t number, absl::StatusOr<PushStart> start) {
  Push& push = *pushes_.at(number);
  CHECK(push.open);
  if (!start.ok()) return Hear(number, start.status());
  if (start->push == nullptr) return Hear(number, start->answer);
  CHECK(push.gathered == nullptr && push.answers == 0);
  gradients_.push_back(start->push->arrived());
  push.gathered = std::make_shared<GatheredPush>(std::move(start->push), transforms_,
                                                 shard_->store().parallel());
}

void CallServer::Send(size_t number, const std::string& bytes) {
  Push& push = *pushes_.at(number);
  if (push.gathered == nullptr) return;
  const auto buffer = Sliced(bytes, {bytes.size() / 2});
  auto chunk = DecodeChunk<v1::PushGradientsRequest>(buffer);
  bool goes_on = false;
  if (ReasonOf(chunk.status()) == Reason::kBadArgument) {
    const auto message = Parsed<v1::PushGradientsRequest>(bytes);
    const bool summary = message.has_value() && message->has_summary();
    goes_on = summary ? push.gathered->Summarize(FromProto(message->summary()))
                      : push.gathered->Add(chunk.status());
  } else {
    goes_on = push.gathered->Add(std::move(chunk));
  }
  if (!goes_on) EndPush(number);
  Check();
}

void CallServer::EndPush(size_t number) {
  Push& push = *pushes_.at(number);
  if (push.gathered == nullptr) return;
  GatheredPush::Gathered gathered = std::exchange(push.gathered, nullptr)->End();
  const PushCallback done = [this, number](const auto& outcome) { Hear(number, outcome); };
  const absl::Status complete = gathered.push->gradient().CheckComplete();
  if (!gathered.error.ok()) {
    shard_->store().RefusePush(std::move(gathered.push), gathered.error, done);
  } else if (complete.ok()) {
    shard_->store().FinishPush(std::move(gathered.push), done);
  } else {
    shard_->store().AbandonPush(std::move(gathered.push), Abandoned::kRejected);
    Hear(number, complete);
  }
  Check();
}

void CallServer::BreakPush(size_t number) {
  Push& push = *pushes_.at(number);
  if (push.gathered != nullptr) {
    shard_->store().AbandonPush(std::exchange(push.gathered, nullptr)->End().push,
                                Abandoned::kAborted);
    push.open = false;
  } else if (push.open && push.answers == 0 && shard_->store().CancelPush(push.id)) {
    push.open = false;
  }
  Check();
}

void CallServer::Hear(size_t number, const absl::StatusOr<PushOutcome>& outcome) {
  Push& push = *pushes_.at(number);
  CHECK(push.open);
  CHECK_EQ(++push.answers, 1);
  CheckRefused(outcome.status());
  if (outcome.ok()) NoteCounted(push.header, *outcome);
}

void CallServer::NoteCounted(const PushHeader& header, const PushOutcome& outcome) {
  if (!Counts(outcome.disposition)) return;
  const auto process = process_of_.find(header.session.value());
  CHECK(process != process_of_.end());
  const bool applied = outcome.disposition == Disposition::kApplied;
  const Step step = applied ? Step(outcome.step.value() - 1) : outcome.step;
  const bool first =
      counted_.emplace(PushName(process->second, header.sequence.value()), step).second;
  CHECK(first) << "push " << header.sequence << " counts twice";
}

// ---- Pulls ----

void CallServer::Pull(const std::string& bytes) {
  const auto message = Parsed<v1::PullParamsRequest>(bytes);
  if (!message.has_value()) return;
  const size_t number = pulls_.size();
  pulls_.push_back(std::make_unique<Pulled>());
  pulls_[number]->id =
      shard_->store().Pull(FromProto(*message), [this, number](absl::StatusOr<PullResult> result) {
        Pulled& pull = *pulls_.at(number);
        CHECK(!pull.cancelled);
        CHECK_EQ(++pull.answers, 1);
        CheckRefused(result.status());
        if (result.ok()) pull.snapshot = result->snapshot;
      });
  Check();
}

void CallServer::BreakPull(size_t number) {
  Pulled& pull = *pulls_.at(number);
  const bool waits = pull.answers == 0 && !pull.cancelled;
  if (pull.id != PullId()) CHECK_EQ(shard_->store().CancelPull(pull.id), waits);
  pull.cancelled = pull.cancelled || waits;
  Check();
}

void CallServer::ReleasePull(size_t number) { pulls_.at(number)->snapshot = nullptr; }

// ---- What must hold ----

void CallServer::Check() {
  const ShardStatus status = shard_->Describe();
  CHECK(status.counters.Balanced());
  CHECK_EQ(status.counters.received, begun_);
  CheckSnapshot();
}

void CallServer::CheckSnapshot() {
  const std::shared_ptr<const Snapshot> snapshot = shard_->store().stripe().latest();
  if (snapshot == nullptr) return;
  const bool known = !snapshots_.empty() && snapshots_.back().lock() == snapshot;
  if (known) return;
  snapshots_.push_back(snapshot);
  const absl::Span<const float> values = snapshot->values.span();
  CHECK(
      std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }));
  published_[snapshot->step] = {values.begin(), values.end()};
}

void CallServer::End() {
  for (size_t i = 0; i < pushes_.size(); ++i) BreakPush(i);
  for (size_t i = 0; i < pulls_.size(); ++i) BreakPull(i);
  if (journals_)
    shard_->durability().FailHeldAnswers(MakeError(Reason::kJournalStopped, "the server ends"));
  for (const auto& push : pushes_) CHECK_EQ(push->answers, push->open ? 1 : 0);
  for (const auto& pull : pulls_) CHECK_EQ(pull->answers, pull->cancelled ? 0 : 1);
  const ShardStatus status = shard_->Describe();
  CHECK_EQ(status.waiting_pulls, 0u);
  CHECK_EQ(status.counters.in_progress, 0u);
  const auto held = std::count_if(gradients_.begin(), gradients_.end(),
                                  [](const auto& gradient) { return !gradient.expired(); });
  CHECK_LE(held, status.current.accumulated) << "gradients outside the current step";
  pulls_.clear();
  pushes_.clear();
  // What is left belongs to the current step, and ends with the shard.
  const std::shared_ptr<const Snapshot> latest = shard_->store().stripe().latest();
  const bool saved = checkpoint_ != nullptr;
  for (const auto& old : snapshots_) {
    const std::shared_ptr<const Snapshot> kept = old.lock();
    CHECK(kept == nullptr || kept == latest || (saved && kept == checkpoint_->parameters));
  }
  shard_ = nullptr;
  for (const auto& gradient : gradients_) CHECK(gradient.expired());
  gradients_.clear();
}

}  // namespace sluice
