#include "server/aggregation/parameter_history.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {
namespace {

constexpr uint64_t kBlock = 64;  // parameters: whole cache lines
constexpr uint64_t kAveraged = 1000;
constexpr double kLargestGap = 1e30;  // a float has room for more

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - double{b[i]};
    squares += difference * difference;
  }
  return std::sqrt(squares);
}

uint64_t ParametersOf(const std::vector<KindRun>& runs) {
  uint64_t count = 0;
  for (const KindRun& run : runs) {
    if (run.kind == RangeKind::kParameter) count += run.end - run.begin;
  }
  return count;
}

}  // namespace

ParameterHistory::ParameterHistory(const Layout& layout) {
  const std::vector<KindRun> runs = layout.Runs();
  const uint64_t count = ParametersOf(runs);
  // Block i begins at parameter i · count / blocks, rounded down to whole blocks.
  const uint64_t whole = (count + kBlock - 1) / kBlock;
  const uint64_t blocks = std::min(whole, kSample / kBlock);
  uint64_t before = 0;  // parameters before the run
  uint64_t next = 0;    // block
  for (const KindRun& run : runs) {
    if (run.kind != RangeKind::kParameter) continue;
    const uint64_t end = before + (run.end - run.begin);
    for (; next < blocks; ++next) {
      const uint64_t at = next * whole / blocks * kBlock;
      const uint64_t from = std::max(at, before);
      const uint64_t to = std::min(at + kBlock, end);
      if (from < to) blocks_.push_back({run.begin + (from - before), to - from});
      if (at + kBlock > end) break;  // the next run has its rest
    }
    before = end;
  }
}

void ParameterHistory::Add(absl::Span<const float> parameters, uint64_t decays) {
  Entry entry;
  if (entries_.size() == kSteps) {
    entry = std::move(entries_.front());
    entries_.pop_front();
  }
  entry.sample.clear();
  entry.decays = decays;
  for (const Block& block : blocks_) {
    const auto from = parameters.begin() + static_cast<int64_t>(block.begin);
    entry.sample.insert(entry.sample.end(), from, from + static_cast<int64_t>(block.size));
  }
  if (!entries_.empty()) {
    const double step = Distance(entries_.back().sample, entry.sample);
    // Steps that were left out, and those that did not touch the sample, say nothing of a step's
    // length.
    if (step > 0) {
      steps_ = std::min(steps_ + 1, kAveraged);
      mean_step_ += (step - mean_step_) / static_cast<double>(steps_);
    }
  }
  entries_.push_back(std::move(entry));
}

double ParameterHistory::GapSince(uint64_t staleness) const {
  if (entries_.empty() || mean_step_ == 0) return 1;
  const double distance = Distance(entries_.back().sample, Before(staleness).sample);
  return std::min(1 + distance / mean_step_, kLargestGap);
}

uint64_t ParameterHistory::DecaysSince(uint64_t staleness) const {
  return entries_.empty() ? 0 : entries_.back().decays - Before(staleness).decays;
}

const ParameterHistory::Entry& ParameterHistory::Before(uint64_t staleness) const {
  return entries_[entries_.size() - 1 - std::min<uint64_t>(staleness, entries_.size() - 1)];
}

}  // namespace sluice
