// The part of Shard that takes pushes.

#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/shard/shard.h"

namespace sluice {
namespace {

// `norm` is the gradient's, if it was measured.
absl::Status CheckNorm(absl::optional<double> norm, const Guards& guards) {
  if (!norm.has_value() || *norm <= *guards.max_push_norm) return absl::OkStatus();
  return MakeError(Reason::kNormTooLarge,
                   absl::StrCat("the gradient's norm is ", *norm, ", this server takes at most ",
                                *guards.max_push_norm, "; look for the batch that caused it"));
}

PushName PushNameOf(const PushHeader& header) {
  return {header.session, header.sequence, header.attempt};
}

}  // namespace

PushId Shard::BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                        std::function<void()> cancel) {
  CompletingLock lock(&mu_);
  PushName name = header.ok() ? PushNameOf(*header) : PushName();
  const absl::Status begun = others_.Begin(name);
  if (!begun.ok()) name = PushName();
  auto admit = [this, name, start = std::move(start),
                layout = holder_.layout()](const absl::StatusOr<Admission>& admission) {
    if (leads()) TellHolders(name, admission);
    if (!admission.ok()) return start(admission.status());
    if (admission->push == PushId()) return start(PushStart{nullptr, admission->answer});
    start(PushStart{absl::make_unique<PendingPush>(admission->push, admission->header, layout,
                                                   admission->arrived, MemoryFor(*admission)),
                    {}});
  };
  if (!begun.ok()) {
    return coordinator_.BeginPush(begun, std::move(admit), std::move(cancel), lock.completions());
  }
  return coordinator_.BeginPush(header, std::move(admit), std::move(cancel), lock.completions());
}

std::shared_ptr<FloatBuffer> Shard::MemoryFor(const Admission& admission) {
  if (!admission.begins_sum) return nullptr;
  absl::MutexLock lock(&mu_);
  return holder_.LendNext(admission.push);
}

// If the session has ended meanwhile, the holders hear of that.
void Shard::TellHolders(const PushName& name, const absl::StatusOr<Admission>& admission) {
  absl::MutexLock lock(&mu_);
  if (admission.ok() && admission->push != PushId()) {
    others_.Admit(
        {admission->push, name, options_.guards.max_push_norm.has_value(), admission->begins_sum});
  } else {
    others_.Pass(name);
  }
}

bool Shard::CancelPush(PushId id) {
  absl::MutexLock lock(&mu_);
  return coordinator_.CancelPush(id);
}

PushId Shard::FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) {
  absl::Status complete = push->CheckComplete();
  push->Seal();
  if (complete.ok() && push->rows().rows() > 0) complete = TablesHere()->CheckFits(push->rows());
  const RunningMeans* const means = push->header().running_means.get();
  if (complete.ok() && means != nullptr) complete = CheckFits(*means, *layout());
  const PushId gathers = leads() ? push->id() : PushId();
  PushCallback answer = ReportingAttachments(push->header(), std::move(done));
  HaveReport own = {push->id(), complete, absl::nullopt, push->bytes()};
  if (!options_.guards.max_push_norm.has_value() || !complete.ok()) {
    Gather(std::move(push), own, std::move(answer));
    return gathers;
  }
  const auto shared = std::make_shared<std::unique_ptr<PendingPush>>(std::move(push));
  auto measure = [this, shared, own, answer = std::move(answer)]() mutable {
    own.norm = (*shared)->ParameterNorm();
    Gather(std::move(*shared), own, answer);
  };
  IsLarge() ? executors_.arrivals->Run(measure) : measure();
  return gathers;
}

std::shared_ptr<RowTables> Shard::TablesHere() const {
  absl::MutexLock lock(&mu_);
  return holder_.tables();
}

// The part of this server is here, or refused.
void Shard::Gather(std::unique_ptr<PendingPush> push, const HaveReport& own, PushCallback done) {
  if (!leads()) {
    const absl::Status refused =
        own.refused.ok() ? CheckNorm(own.norm, options_.guards) : own.refused;
    return Queue(std::move(push), refused, std::move(done));
  }
  const Arrival arrival = {push->id(), push->header(), own.bytes, std::move(done), {}};
  if (!own.refused.ok()) push = nullptr;
  const auto gathered = [this, arrival](const HaveReport& whole) { OnGathered(arrival, whole); };
  CompletingLock lock(&mu_);
  if (push != nullptr) holder_.Keep(std::move(push));
  others_.FinishOwn(own, gathered, lock.completions());
}

void Shard::OnGathered(Arrival arrival, const HaveReport& whole) {
  arrival.bytes = whole.bytes;
  arrival.refused = whole.refused.ok() ? CheckNorm(whole.norm, options_.guards) : whole.refused;
  std::unique_ptr<PendingPush> refused;
  {
    absl::MutexLock lock(&mu_);
    if (!arrival.refused.ok()) {
      refused = holder_.Drop(arrival.push);
      others_.Drop(arrival.push);
    }
    coordinator_.Queue(std::move(arrival));
  }
  refused = nullptr;  // its memory is free before others are told
  Advance();
}

bool Shard::CancelGathering(PushId id) {
  std::unique_ptr<PendingPush> own;
  Completions completions;
  {
    absl::MutexLock lock(&mu_);
    if (!others_.Cancel(id)) return false;
    own = holder_.Drop(id);
    const bool offer = own->header().sequence == Sequence();
    if (!offer) {
      coordinator_.AbandonPush(own->header().session, own->bytes(), Abandoned::kAborted,
                               &completions);
    }
  }
  own = nullptr;
  completions.Run();
  return true;
}

// Attachments are reported once: a repeated push has another disposition. A push is answered when
// the program has taken its attachments, so its worker waits for a slow program.
PushCallback Shard::ReportingAttachments(const PushHeader& header, PushCallback done) {
  if (header.attachments == nullptr || options_.on_attachments == nullptr) return done;
  return
      [this, worker = NameOf(header.session), step = header.step, attachments = header.attachments,
       done = std::move(done)](const absl::StatusOr<PushOutcome>& outcome) {
        const bool counted = outcome.ok() && (outcome->disposition == Disposition::kAccepted ||
                                              outcome->disposition == Disposition::kApplied);
        if (!counted) return done(outcome);
        executors_.hooks->Run([this, worker, step, attachments, done, outcome] {
          options_.on_attachments(worker, step, *attachments);
          done(outcome);
        });
      };
}

void Shard::RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                       PushCallback done) {
  const HaveReport own = {push->id(), why, absl::nullopt, push->bytes()};
  Gather(std::move(push), own, std::move(done));
}

void Shard::Queue(std::unique_ptr<PendingPush> push, const absl::Status& refused,
                  PushCallback done) {
  Arrival arrival = {push->id(), push->header(), push->bytes(), std::move(done), refused};
  if (!refused.ok()) push = nullptr;  // its memory is free before others are told
  {
    absl::MutexLock lock(&mu_);
    if (push != nullptr) holder_.Keep(std::move(push));
    coordinator_.Queue(std::move(arrival));
  }
  Advance();
}

void Shard::AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) {
  Completions completions;
  {
    absl::MutexLock lock(&mu_);
    others_.Drop(push->id());
    coordinator_.AbandonPush(push->header().session, push->bytes(), why, &completions);
  }
  push = nullptr;  // its memory is free before others are let in
  completions.Run();
}

}  // namespace sluice
