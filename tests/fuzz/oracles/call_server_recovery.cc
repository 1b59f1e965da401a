// The part of CallServer that plays the operator, the clock and the disk.

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/tensor/vector_copy.h"
#include "common/wire/settings.h"
#include "server/durable/format/saved_state.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/fuzz/oracles/call_server.h"
#include "tests/fuzz/refusal.h"
#include "tests/testing/shard/change_settings.h"

namespace sluice {
namespace {

constexpr uint64_t kSessionsPerIncarnation = 1000000;

FloatBuffer CopyOf(absl::Span<const float> values) {
  FloatBuffer copy(values.size());
  CopyTo(AsPiece(values), copy.span());
  return copy;
}

bool SameBits(absl::Span<const float> a, absl::Span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

// ---- The operator ----

void CallServer::SetConsistency(const std::string& bytes) {
  v1::Consistency message;
  if (!message.ParseFromString(bytes)) return;
  const auto consistency = FromProto(message);
  if (!consistency.ok()) return CheckRefusal(consistency.status(), {Reason::kBadArgument});
  const auto from = ChangeConsistency(*shard_, *consistency);
  if (!from.ok()) CheckRefusal(from.status(), {Reason::kBadArgument});
  Check();
}

void CallServer::SetLearningRate(double rate) {
  const auto from = ChangeLearningRate(*shard_, rate);
  if (!from.ok()) CheckRefusal(from.status(), {ReasonOf(from.status())});
  Check();
}

void CallServer::Evict(const std::string& worker) {
  const absl::Status evicted = shard_->Evict(worker);
  if (!evicted.ok()) CheckRefusal(evicted, {Reason::kNotFound});
  Check();
}

void CallServer::Drain() {
  shard_->Drain();
  Check();
}

// ---- The machine ----

void CallServer::Pass(absl::Duration duration) {
  clock_.Advance(duration);
  shard_->Tick();
  Check();
}

void CallServer::TakeCheckpoint() {
  shard_->durability().TakeCheckpoint([this](const auto& taken) {
    if (taken.ok()) checkpoint_ = *taken;
  });
  Check();
}

void CallServer::Sync(size_t steps) {
  durable_ = std::min(durable_ + steps, journal_->records.size());
  if (durable_ > 0) shard_->durability().OnDurable(journal_->records[durable_ - 1].step);
  Check();
}

// The checkpoint as the next process reads it.
std::unique_ptr<ShardCheckpoint> CallServer::Saved() const {
  auto state = DecodeSavedState(EncodeSavedState(*checkpoint_));
  CHECK(state.ok()) << state.status();
  auto saved = std::make_unique<ShardCheckpoint>(*std::move(state));
  const auto parameters = std::make_shared<Snapshot>();
  parameters->step = checkpoint_->step;
  parameters->values = CopyOf(checkpoint_->parameters->values.span());
  saved->parameters = parameters;
  saved->slots.clear();
  for (const SlotCheckpoint& slot : checkpoint_->slots) {
    saved->slots.push_back({slot.name, CopyOf(slot.values.span())});
  }
  return saved;
}

void CallServer::Restart(size_t steps) {
  if (checkpoint_ == nullptr) return;
  const size_t kept = std::min(durable_ + steps, journal_->records.size());
  const std::unique_ptr<RecordingJournal> journal = std::move(journal_);
  const std::unique_ptr<const ShardCheckpoint> saved = Saved();
  End();
  options_.incarnation = options_.incarnation.Next();
  options_.session_base = SessionId(options_.session_base.value() + kSessionsPerIncarnation);
  Start();
  const absl::Status restored = shard_->durability().Restore(*saved);
  CHECK(restored.ok()) << restored;
  Step reached = saved->step;
  for (size_t i = 0; i < kept; ++i) {
    const auto record = DecodeSavedStep(EncodeSavedStep(journal->records[i]));
    CHECK(record.ok()) << record.status();
    if (record->step <= saved->step) continue;
    const absl::Status replayed =
        shard_->durability().Replay(*record, journal->sums[i], journal->row_sums[i]);
    CHECK(replayed.ok()) << replayed;
    reached = record->step;
  }
  shard_->durability().BeginIncarnation({});
  const auto published = published_.find(reached);
  if (published != published_.end()) {
    CHECK(SameBits(shard_->store().stripe().latest()->values.span(), published->second));
  }
  ForgetAfter(reached);
  TakeCheckpoint();
  if (journals_) shard_->durability().EnableJournal(journal_.get());
  Check();
}

// The steps after this one are lost, with the pushes that are part of them.
void CallServer::ForgetAfter(Step step) {
  published_.erase(published_.upper_bound(step), published_.end());
  for (auto it = counted_.begin(); it != counted_.end();) {
    const bool lost = it->second >= step;
    CHECK(!lost || !journals_) << "a push that was told to count is lost";
    it = lost ? counted_.erase(it) : std::next(it);
  }
}

}  // namespace sluice
