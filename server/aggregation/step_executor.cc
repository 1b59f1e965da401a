#include "server/aggregation/step_executor.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_copy.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

// Parts between two calls of WriteProgress.
constexpr uint64_t kPartsPerReport = 4;
// Elements that the optimizer gets at once. They stay in the first-level cache between the addition
// of the last gradient, the optimizer, and the write. Checksums depend on it.
constexpr uint64_t kPiece = 2048;
// The constant of torch::nn::utils::clip_grad_norm_.
constexpr double kClipEpsilon = 1e-6;

// Computes the checksum of one part of the vector, piece by piece while each is in the cache: the
// parameters, then the slots. Does nothing if the checksum is not wanted.
class PartChecksum {
 public:
  PartChecksum(absl::Span<uint64_t> checksums, uint64_t begin)
      : to_(checksums.empty() ? nullptr : &checksums[begin / kPartElements]) {
    if (to_ != nullptr) checksummer_.emplace();
  }
  ~PartChecksum() {
    if (to_ != nullptr) *to_ = checksummer_->Get();
  }
  PartChecksum(const PartChecksum&) = delete;
  PartChecksum& operator=(const PartChecksum&) = delete;

  void Add(absl::Span<const float> made, const std::vector<OptimizerSlot>& slots, uint64_t begin) {
    if (to_ == nullptr) return;
    checksummer_->Add(BytesOf(made));
    for (const OptimizerSlot& slot : slots) {
      checksummer_->Add(BytesOf(slot.values.subspan(begin, made.size())));
    }
  }

 private:
  uint64_t* const to_;
  absl::optional<Checksummer> checksummer_;
};

uint64_t Combined(const std::vector<uint64_t>& checksums) {
  std::string bytes;
  for (const uint64_t checksum : checksums) bytes += LittleEndian64(checksum);
  return Checksum(bytes);
}

}  // namespace

StepExecutor::StepExecutor(const Layout& layout, const OptimizerConfig& optimizer,
                           Parallel& parallel)
    : runs_(layout.Runs()),
      group_runs_(Joined(RangeRuns(layout, optimizer))),
      parallel_(parallel),
      accumulator_(layout),
      optimizer_(MakeOptimizer(optimizer, layout.size())),
      sgd_(std::holds_alternative<SgdOptions>(optimizer.options)),
      norms_(ParameterSample(layout)),
      history_(ParameterSample(layout)) {
  const bool scales = std::holds_alternative<LambOptions>(optimizer.options);
  if (scales) trust_.emplace(RangeRuns(layout, optimizer));
}

void StepExecutor::Add(const Contribution& contribution, const StepTerms& terms) {
  accumulator_.Add(Count(contribution, terms), parallel_);
}

void StepExecutor::Load(uint32_t gradients, uint64_t samples, absl::Span<const float> sum) {
  count_ = gradients;
  samples_ = samples;
  if (gradients > 0) accumulator_.Load(sum, parallel_);
}

Addend StepExecutor::Count(const Contribution& contribution, const StepTerms& terms) {
  const uint32_t samples = contribution.push->header().samples;
  const uint64_t staleness = contribution.staleness;
  samples_ += samples;
  ++count_;
  GradientWeight weight;
  if (terms.consistency.reduction == Reduction::kWeightedMean) {
    weight.parameters = weight.statistics = static_cast<float>(samples);
  }
  // A discounted statistic would be a smaller value, not a smaller change.
  if (terms.consistency.discount_stale) weight.parameters /= static_cast<float>(1 + staleness);
  const double gap = terms.gap_aware ? history_.GapSince(staleness) : 1;
  if (sgd_) weight.parameters /= static_cast<float>(gap);
  gap_shares_ += 1 / gap;
  lateness_ += static_cast<double>(history_.DecaysSince(staleness));
  return {&contribution.push->gradient(), weight};
}

// The terms of a step that the journal recorded are complete, and its contributions are not known.
void StepExecutor::DecideTerms() {
  const double count = std::max<uint32_t>(count_, 1);
  if (terms_.gap_aware && !sgd_) {
    for (double& rate : terms_.learning_rates) rate *= gap_shares_ / count;
  }
  if (terms_.ordered_momentum) {
    terms_.ordered = {since_decay_ >= terms_.workers, lateness_ / count};
  }
}

void StepExecutor::NoteDecay() {
  if (!terms_.ordered.has_value()) return;
  if (terms_.ordered->decays) {
    since_decay_ %= terms_.workers;  // a step may have more gradients than were missing
    ++decays_;
  }
  since_decay_ += count_;
}

absl::optional<uint64_t> StepExecutor::Make(const StepTerms& terms, const Contribution* last,
                                            absl::Span<const float> current, absl::Span<float> next,
                                            const WriteProgress& progress, uint64_t* checksum) {
  // The history has every step since it began, or it would not tell the age of a gradient.
  const bool remembers = terms.gap_aware || terms.ordered_momentum;
  if (!remembers) history_.Clear();
  if (remembers && history_.empty()) history_.Add(current, decays_);
  const absl::optional<uint64_t> bad = MakeStep(terms, last, current, next, progress, checksum);
  const absl::Span<const float> made = bad.has_value() ? current : next;
  if (remembers) history_.Add(made, decays_);
  norms_.Note(current, made);
  return bad;
}

absl::optional<uint64_t> StepExecutor::MakeStep(const StepTerms& terms, const Contribution* last,
                                                absl::Span<const float> current,
                                                absl::Span<float> next,
                                                const WriteProgress& progress, uint64_t* checksum) {
  if (checksum != nullptr) *checksum = 0;
  // The norm is known only after the last gradient is in the sum.
  if (last != nullptr && terms.clip_norm.has_value()) {
    Add(*last, terms);
    last = nullptr;
  }
  Making making;
  if (last != nullptr) making.last = Count(*last, terms);
  terms_ = terms;
  if (count_ == 0) {
    CopyTo(AsPiece(current), next);
    return absl::nullopt;
  }
  DecideTerms();
  const Divisors divisors = DivisorsOf(terms.consistency.reduction);
  std::vector<uint64_t> checksums(checksum == nullptr ? 0 : PartsOf(next.size()));
  making.statistics_divisor = divisors.statistics;
  making.current = current;
  making.next = next;
  making.learning_rates = terms_.learning_rates;
  making.slots = optimizer_->slots();
  making.checksums = absl::MakeSpan(checksums);
  OptimizerStep step;
  step.number = optimizer_steps_ + 1;
  step.divisor = Clipped(divisors.parameters, terms.clip_norm);
  step.learning_rates = terms_.learning_rates;
  step.ordered = terms_.ordered;
  optimizer_->Begin(step);
  const double sum =
      making.last.has_value() ? accumulator_.BoundWith(*making.last) : accumulator_.bound();
  bounds_.Begin(*optimizer_, sum, step.divisor, divisors.statistics);
  Foresee(making);
  if (making.bad != kNone) return making.bad;
  ForEachPartOf(making, progress,
                [&](uint64_t begin, uint64_t end) { MakePart(making, begin, end); });
  if (making.bad != kNone) return making.bad;
  if (checksum != nullptr) *checksum = Combined(checksums);
  bounds_.Commit();
  NoteDecay();
  ++optimizer_steps_;
  return absl::nullopt;
}

void StepExecutor::Clear() {
  accumulator_.Clear();
  count_ = 0;
  samples_ = 0;
  gap_shares_ = 0;
  lateness_ = 0;
}

StepExecutor::Divisors StepExecutor::DivisorsOf(Reduction reduction) const {
  const auto count = static_cast<float>(count_);
  switch (reduction) {
    case Reduction::kWeightedMean:
      return {static_cast<float>(samples_), static_cast<float>(samples_)};
    case Reduction::kSum:
      return {1, count};
    case Reduction::kMean:
      break;
  }
  return {count, count};
}

// Returns a divisor that keeps the gradient's norm within its bound.
float StepExecutor::Clipped(float divisor, const absl::optional<double>& clip_norm) const {
  if (!clip_norm.has_value()) return divisor;
  const double share = *clip_norm / (Norm() / divisor + kClipEpsilon);
  return share < 1 ? static_cast<float>(divisor / share) : divisor;
}

// The norm of the sum over all parameters. Parts are fixed and their partial sums are added in
// order, so that the result does not depend on the number of threads.
double StepExecutor::Norm() const {
  const absl::Span<const float> sum = accumulator_.sum();
  std::vector<double> squares(PartsOf(sum.size()));
  ForParts(parallel_, sum.size(), [&](size_t part, uint64_t begin, uint64_t end) {
    ForEachRun(runs_, begin, end, [&](RangeKind kind, uint64_t from, uint64_t to) {
      if (kind != RangeKind::kParameter) return;
      squares[part] += SumOfSquares(AsPiece(sum.subspan(from, to - from)));
    });
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

void StepExecutor::Making::Note(absl::optional<uint64_t> index) {
  uint64_t before = bad;
  while (index.value_or(kNone) < before && !bad.compare_exchange_weak(before, *index)) {
  }
}

void StepExecutor::Making::Check(uint64_t begin, absl::Span<const float> made) {
  const absl::optional<size_t> first = FindNotFinite(AsPiece(made));
  if (first.has_value()) Note(begin + *first);
}

void StepExecutor::Foresee(Making& making) {
  const bool sure = making.slots.empty() || bounds_.is_sure();
  if (sure && !trust_.has_value()) return;
  // The sum is read more than once, and must read the same each time.
  if (making.last.has_value() && making.last->gradient->foreign()) {
    accumulator_.Add(*making.last, parallel_);
    making.last.reset();
  }
  if (trust_.has_value()) {
    const auto update = [&](uint64_t begin, absl::Span<float> to) {
      MakePiece(making, begin, Pass::kTry, to);
      making.Check(begin, to);
    };
    trust_->Measure(making.current, making.learning_rates, parallel_, update);
    if (making.bad != kNone || (trust_->sure() && bounds_.sum_is_sure())) return;
  }
  ForEachPartOf(making, nullptr,
                [&](uint64_t begin, uint64_t end) { TryPart(making, begin, end); });
}

void StepExecutor::ForEachPartOf(const Making& making, const WriteProgress& progress,
                                 absl::FunctionRef<void(uint64_t begin, uint64_t end)> part) {
  const uint64_t size = making.next.size();
  const uint64_t report = progress ? kPartsPerReport * kPartElements : size;
  for (uint64_t begin = 0; begin < size; begin += report) {
    const uint64_t end = std::min(size, begin + report);
    ForParts(parallel_, end - begin,
             [&](size_t, uint64_t from, uint64_t to) { part(begin + from, begin + to); });
    if (progress && making.bad == kNone) progress(end);
  }
}

void StepExecutor::TryPart(Making& making, uint64_t begin, uint64_t end) {
  alignas(64) float scratch[kPiece];
  for (; begin < end && begin < making.bad; begin += kPiece) {
    const absl::Span<float> tried = absl::MakeSpan(scratch, std::min(kPiece, end - begin));
    MakePiece(making, begin, Pass::kTry, tried);
    if (trust_.has_value()) trust_->Apply(begin, making.current, tried);
    making.Check(begin, tried);
  }
}

void StepExecutor::MakePart(Making& making, uint64_t begin, uint64_t end) {
  const bool streams = making.next.size() >= kStreamedElements;
  PartChecksum checksum(making.checksums, begin);
  alignas(64) float made[kPiece];
  for (; begin < end; begin += kPiece) {
    const uint64_t size = std::min(kPiece, end - begin);
    const absl::Span<float> next = making.next.subspan(begin, size);
    const absl::Span<float> piece = streams ? absl::MakeSpan(made, size) : next;
    MakePiece(making, begin, Pass::kMake, piece);
    if (trust_.has_value()) trust_->Apply(begin, making.current, piece);
    if (bounds_.measures() && !bounds_.Measure(begin, piece, making.slots)) {
      making.Check(begin, piece);
    }
    checksum.Add(piece, making.slots, begin);
    if (streams) StreamTo(AsPiece(piece), next);
  }
  EndStreams();
}

void StepExecutor::MakePiece(Making& making, uint64_t begin, Pass pass, absl::Span<float> made) {
  alignas(64) float with_last[kPiece];
  absl::Span<const float> sum = accumulator_.sum().subspan(begin, made.size());
  if (making.last.has_value()) {
    accumulator_.SumWith(*making.last, begin, absl::MakeSpan(with_last, made.size()));
    sum = absl::MakeConstSpan(with_last, made.size());
  }
  const uint64_t end = begin + made.size();
  ForEachPart(group_runs_, begin, end, [&](const GroupRun& run, uint64_t from, uint64_t to) {
    const size_t size = to - from;
    const absl::Span<const float> part = sum.subspan(from - begin, size);
    const absl::Span<float> next = made.subspan(from - begin, size);
    const OptimizerPiece piece = {run.group, from, part, making.current.subspan(from, size), next};
    if (run.kind == RangeKind::kStatistic) {
      DivideTo(part, making.statistics_divisor, next);
    } else if (pass == Pass::kTry) {
      making.Note(optimizer_->Try(piece));
    } else {
      optimizer_->Apply(piece);
    }
  });
}

}  // namespace sluice
