// The part of Shard that takes pushes.

#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/shard/shard.h"

namespace sluice {
namespace {

absl::Status CheckNorm(const PendingPush& push, const Guards& guards) {
  if (!guards.max_push_norm.has_value()) return absl::OkStatus();
  const double norm = push.gradient().ParameterNorm();
  if (norm <= *guards.max_push_norm) return absl::OkStatus();
  return MakeError(Reason::kNormTooLarge,
                   absl::StrCat("the gradient's norm is ", norm, ", this server takes at most ",
                                *guards.max_push_norm, "; look for the batch that caused it"));
}

}  // namespace

PushId Shard::BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                        std::function<void()> cancel) {
  CompletingLock lock(&mu_);
  auto admit = [start = std::move(start),
                layout = holder_.layout()](const absl::StatusOr<Admission>& admission) {
    if (!admission.ok()) return start(admission.status());
    if (admission->push == PushId()) return start(PushStart{nullptr, admission->answer});
    start(PushStart{absl::make_unique<PendingPush>(admission->push, admission->header, layout,
                                                   admission->arrived),
                    {}});
  };
  return coordinator_.BeginPush(header, std::move(admit), std::move(cancel), lock.completions());
}

bool Shard::CancelPush(PushId id) {
  absl::MutexLock lock(&mu_);
  return coordinator_.CancelPush(id);
}

void Shard::FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) {
  const absl::Status complete = push->gradient().CheckComplete();
  push->Seal();
  PushCallback answer = ReportingAttachments(push->header(), std::move(done));
  if (!options_.guards.max_push_norm.has_value() || !complete.ok()) {
    return Queue(std::move(push), complete, std::move(answer));
  }
  const auto shared = std::make_shared<std::unique_ptr<PendingPush>>(std::move(push));
  const auto check_norm = [this, shared, answer = std::move(answer)] {
    const absl::Status fits = CheckNorm(**shared, options_.guards);
    Queue(std::move(*shared), fits, answer);
  };
  IsLarge() ? executors_.arrivals->Run(check_norm) : check_norm();
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
  Queue(std::move(push), why, std::move(done));
}

void Shard::Queue(std::unique_ptr<PendingPush> push, const absl::Status& refused,
                  PushCallback done) {
  Arrival arrival = {push->id(), push->header(), push->gradient().bytes(), std::move(done),
                     refused};
  if (!refused.ok()) push = nullptr;  // its memory is free before others are told
  {
    absl::MutexLock lock(&mu_);
    if (push != nullptr) holder_.Keep(std::move(push));
    coordinator_.Queue(std::move(arrival));
  }
  Advance();
}

void Shard::AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) {
  CompletingLock lock(&mu_);
  coordinator_.AbandonPush(push->header().session, push->gradient().bytes(), why,
                           lock.completions());
}

}  // namespace sluice
