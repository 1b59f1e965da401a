#include "worker/compression/auto_encoding.h"

#include <utility>

#include "absl/time/time.h"

namespace sluice {
namespace {

std::vector<std::vector<PlannedChunk>> PlanStripes(const Layout& layout,
                                                   const EncodingChoice& choice,
                                                   const Stripes& stripes) {
  std::vector<std::vector<PlannedChunk>> plans;
  for (uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
    plans.push_back(PlanChunks(layout.OfStripe(stripes, stripe), choice));
  }
  return plans;
}

uint64_t CountAwaiting(const std::vector<std::vector<PlannedChunk>>& plans) {
  uint64_t count = 0;
  for (const auto& chunks : plans) {
    for (const PlannedChunk& chunk : chunks) count += chunk.awaits_choice ? 1 : 0;
  }
  return count;
}

double SpeedOf(uint64_t elements, absl::Duration time) {
  if (time <= absl::ZeroDuration()) return 0;
  return static_cast<double>(elements * sizeof(float)) / absl::ToDoubleSeconds(time);
}

}  // namespace

AutoEncoding::AutoEncoding(const Layout& layout, const EncodingChoice& choice, Pipeline pipeline,
                           bool feedback, TransformRegistry transforms, uint32_t servers,
                           const Clock& clock)
    : choice_(choice),
      stripes_(layout.size(), servers),
      chunks_(PlanStripes(layout, choice_, stripes_)),
      feedback_(feedback),
      transforms_(std::move(transforms)),
      clock_(clock),
      chooser_(pipeline, CountAwaiting(chunks_)) {}

const Encoding& AutoEncoding::encoding() const {
  return choice_.candidates[measuring_ ? 0 : best_];
}

const std::vector<bool>& AutoEncoding::hardly_shrinks() const {
  static const auto* const none = new std::vector<bool>();
  return trials_.empty() ? *none : trials_[best_].hardly_shrinks;
}

void AutoEncoding::EndRound(const Transfer& transfer, absl::Span<const float> values) {
  ++rounds_;
  if (!measuring_) {
    if (rounds_ < (trials_.empty() ? kRoundsBefore : kRoundsBetween)) return;
    measuring_ = true;
    rounds_ = transfers_ = 0;
    return;
  }
  if (transfer.bytes > 0) {
    chooser_.NoteTransfer(transfer.bytes, transfer.time);
    ++transfers_;
  }
  if (transfers_ < kTransfers && rounds_ < kMostRoundsOfCheck) return;
  measuring_ = false;
  rounds_ = 0;
  Check(values);
}

void AutoEncoding::Check(absl::Span<const float> values) {
  trials_.clear();
  std::vector<EncodingCost> costs;
  for (const Encoding& candidate : choice_.candidates) {
    trials_.push_back(Try(candidate, values));
    costs.push_back(trials_.back().cost);
  }
  best_ = chooser_.Choose(costs);
  Describe();
}

EncodingTrial AutoEncoding::Try(const Encoding& candidate, absl::Span<const float> values) const {
  EncodingTrial trial;
  for (uint32_t stripe = 0; stripe < stripes_.count(); ++stripe) {
    const StripeSpan<const float> part(stripes_, stripe, 0, values);
    trial.Append(TryEncoding(candidate, chunks_[stripe], part, feedback_, transforms_, clock_,
                             kLongestTrial / stripes_.count()));
  }
  return trial;
}

void AutoEncoding::Describe() {
  const EncodingTrial& trial = trials_[best_];
  chosen_.encoding = EncodingName(choice_.candidates[best_]);
  chosen_.link_bytes_per_second = chooser_.link();
  chosen_.ratio = trial.ratio();
  chosen_.encode_bytes_per_second = SpeedOf(trial.elements, trial.cost.encode);
  chosen_.decode_bytes_per_second = SpeedOf(trial.elements, trial.cost.decode);
}

}  // namespace sluice
