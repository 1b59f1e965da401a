#include "server/aggregation/checked_optimizer.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_copy.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

constexpr uint64_t kNone = UINT64_MAX;
// Parts between two calls of WriteProgress.
constexpr uint64_t kPartsPerReport = 4;
// Elements that the optimizer gets at once. They stay in the first-level cache between the addition
// of the last gradient, the optimizer, and the write. Checksums depend on it.
constexpr uint64_t kPiece = 2048;

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

CheckedOptimizer::CheckedOptimizer(const Layout& layout, uint64_t unit,
                                   const OptimizerConfig& config, Accumulator& sum,
                                   Parallel& parallel, std::unique_ptr<ProgramOptimizer> program)
    : group_runs_(Joined(RangeRuns(layout, config))), parallel_(parallel), sum_(sum), bad_(kNone) {
  if (program != nullptr) {
    auto whole = std::make_unique<WholeOptimizer>(std::move(program), layout.size());
    whole_ = whole.get();
    optimizer_ = std::move(whole);
  } else {
    optimizer_ = MakeOptimizer(config, layout.size());
  }
  const bool scales = std::holds_alternative<LambOptions>(config.options);
  if (scales) trust_.emplace(RangeRuns(layout, config), unit);
}

void CheckedOptimizer::Begin(VectorStep step) {
  step_ = std::move(step);
  step_.optimizer.number = steps_ + 1;
  rates_are_sure_ = true;
  bad_ = kNone;
  failure_ = absl::OkStatus();
  optimizer_->Begin(step_.optimizer);
  const double bound = step_.last.has_value() ? sum_.BoundWith(*step_.last) : sum_.bound();
  bounds_.Begin(*optimizer_, bound, step_.optimizer.divisor,
                bound / step_.statistics_divisor + LargestKept());
}

// The largest magnitude of a running mean before the step, of which at most all is kept.
double CheckedOptimizer::LargestKept() const {
  float largest = 0;
  for (const RunningMean& mean : step_.running_means) {
    const auto values = step_.current.subspan(mean.begin, mean.end - mean.begin);
    largest = std::max(largest, LargestMagnitude(AsPiece(values)));
  }
  return largest;
}

std::vector<TrustSquares> CheckedOptimizer::MeasureUpdates() {
  AddLastIfForeign();
  return trust_->Measure(step_.current, parallel_, [this](uint64_t begin, absl::Span<float> to) {
    MakePiece(begin, Pass::kTry, to);
    Check(begin, to);
  });
}

void CheckedOptimizer::SetRates(TrustRates rates) {
  rates_are_sure_ = rates.sure;
  trust_->SetRates(std::move(rates.rates));
}

// LAMB's updates are finite, so its parameters are, if its rates are sure.
bool CheckedOptimizer::IsSure() const {
  return trust_.has_value() ? rates_are_sure_ && bounds_.sum_is_sure() : bounds_.is_sure();
}

// The sum is read more than once, and must read the same each time.
void CheckedOptimizer::AddLastIfForeign() {
  if (!step_.last.has_value() || !step_.last->gradient->foreign()) return;
  sum_.Add(*step_.last, parallel_);
  step_.last.reset();
}

void CheckedOptimizer::StepWhole() {
  AddLastIfForeign();
  const absl::Span<float> gradient = whole_->gradient();
  const absl::Span<float> parameters = whole_->parameters();
  ForParts(parallel_, gradient.size(), [&](size_t, uint64_t begin, uint64_t end) {
    const absl::Span<float> part = gradient.subspan(begin, end - begin);
    sum_.SumWith(step_.last, begin, part);
    DivideTo(part, step_.optimizer.divisor, part);
    CopyTo(AsPiece(step_.current.subspan(begin, end - begin)),
           parameters.subspan(begin, end - begin));
  });
  failure_ = whole_->Step();
  if (!failure_.ok()) Note(0);
}

absl::optional<uint64_t> CheckedOptimizer::Foresee() {
  if (whole_ != nullptr) StepWhole();
  if (!IsSure() && bad_ == kNone) {
    AddLastIfForeign();
    ForEachPartOf(nullptr, [this](uint64_t begin, uint64_t end) { TryPart(begin, end); });
  }
  return bad();
}

absl::optional<uint64_t> CheckedOptimizer::bad() const {
  return bad_ == kNone ? absl::nullopt : absl::optional<uint64_t>(bad_);
}

void CheckedOptimizer::Make(const WriteProgress& progress, uint64_t* checksum) {
  if (whole_ != nullptr) whole_->Commit();
  std::vector<uint64_t> checksums(checksum == nullptr ? 0 : PartsOf(step_.next.size()));
  ForEachPartOf(progress, [&](uint64_t begin, uint64_t end) {
    MakePart(begin, end, absl::MakeSpan(checksums));
  });
  if (checksum != nullptr) *checksum = Combined(checksums);
  bounds_.Commit();
  ++steps_;
}

// Keeps the lowest index.
void CheckedOptimizer::Note(absl::optional<uint64_t> index) {
  uint64_t before = bad_;
  while (index.value_or(kNone) < before && !bad_.compare_exchange_weak(before, *index)) {
  }
}

void CheckedOptimizer::Check(uint64_t begin, absl::Span<const float> made) {
  const absl::optional<size_t> first = FindNotFinite(AsPiece(made));
  if (first.has_value()) Note(begin + *first);
}

void CheckedOptimizer::ForEachPartOf(const WriteProgress& progress,
                                     absl::FunctionRef<void(uint64_t begin, uint64_t end)> part) {
  const uint64_t size = step_.next.size();
  const uint64_t report = progress ? kPartsPerReport * kPartElements : size;
  for (uint64_t begin = 0; begin < size; begin += report) {
    const uint64_t end = std::min(size, begin + report);
    ForParts(parallel_, end - begin,
             [&](size_t, uint64_t from, uint64_t to) { part(begin + from, begin + to); });
    if (progress) progress(end);
  }
}

void CheckedOptimizer::TryPart(uint64_t begin, uint64_t end) {
  alignas(64) float scratch[kPiece];
  for (; begin < end && begin < bad_; begin += kPiece) {
    const absl::Span<float> tried = absl::MakeSpan(scratch, std::min(kPiece, end - begin));
    MakePiece(begin, Pass::kTry, tried);
    if (trust_.has_value()) trust_->Apply(begin, step_.current, tried);
    Check(begin, tried);
  }
}

void CheckedOptimizer::MakePart(uint64_t begin, uint64_t end, absl::Span<uint64_t> checksums) {
  const std::vector<OptimizerSlot> slots = optimizer_->slots();
  const bool streams = step_.next.size() >= kStreamedElements;
  PartChecksum checksum(checksums, begin);
  alignas(64) float made[kPiece];
  for (; begin < end; begin += kPiece) {
    const uint64_t size = std::min(kPiece, end - begin);
    const absl::Span<float> next = step_.next.subspan(begin, size);
    const absl::Span<float> piece = streams ? absl::MakeSpan(made, size) : next;
    MakePiece(begin, Pass::kMake, piece);
    if (trust_.has_value()) trust_->Apply(begin, step_.current, piece);
    if (bounds_.measures()) bounds_.Measure(begin, piece, slots);
    checksum.Add(piece, slots, begin);
    if (streams) StreamTo(AsPiece(piece), next);
  }
  EndStreams();
}

void CheckedOptimizer::MakePiece(uint64_t begin, Pass pass, absl::Span<float> made) {
  // A copy, since the sum may lie where `made` does.
  alignas(64) float copy[kPiece];
  sum_.SumWith(step_.last, begin, absl::MakeSpan(copy, made.size()));
  const auto sum = absl::MakeConstSpan(copy, made.size());
  const absl::Span<const float> current = step_.current.subspan(begin, made.size());
  const uint64_t end = begin + made.size();
  ForEachPart(group_runs_, begin, end, [&](const GroupRun& run, uint64_t from, uint64_t to) {
    const size_t at = from - begin;
    const size_t size = to - from;
    const OptimizerPiece piece = {run.group, from, sum.subspan(at, size), current.subspan(at, size),
                                  made.subspan(at, size)};
    if (run.kind == RangeKind::kStatistic) {
      DivideTo(piece.sum, step_.statistics_divisor, piece.next);
    } else if (pass == Pass::kTry) {
      Note(optimizer_->Try(piece));
    } else {
      optimizer_->Apply(piece);
    }
  });
  const auto keep = [&](const RunningMean& mean, uint64_t from, uint64_t to) {
    const size_t at = from - begin;
    const size_t size = to - from;
    AddScaledTo(AsPiece(current.subspan(at, size)), mean.decay, made.subspan(at, size));
  };
  ForEachRunningMean(step_.running_means, begin, end, keep);
}

}  // namespace sluice
