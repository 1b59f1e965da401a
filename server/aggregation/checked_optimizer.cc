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

// The values that all parts of one step share. Several threads call Note() and Check().
struct CheckedOptimizer::Making {
  // Keeps the lowest index.
  void Note(absl::optional<uint64_t> index) {
    uint64_t before = bad;
    while (index.value_or(kNone) < before && !bad.compare_exchange_weak(before, *index)) {
    }
  }
  // Notes the first of `made`, the elements from `begin` on, that is not finite.
  void Check(uint64_t begin, absl::Span<const float> made) {
    const absl::optional<size_t> first = FindNotFinite(AsPiece(made));
    if (first.has_value()) Note(begin + *first);
  }

  VectorStep step;
  Accumulator& sum;
  std::vector<OptimizerSlot> slots;
  absl::Span<uint64_t> checksums;    // one for each part; empty: none are wanted
  std::atomic<uint64_t> bad{kNone};  // the first element that is not finite
};

CheckedOptimizer::CheckedOptimizer(const Layout& layout, const OptimizerConfig& config,
                                   Parallel& parallel)
    : group_runs_(Joined(RangeRuns(layout, config))),
      parallel_(parallel),
      optimizer_(MakeOptimizer(config, layout.size())) {
  const bool scales = std::holds_alternative<LambOptions>(config.options);
  if (scales) trust_.emplace(RangeRuns(layout, config));
}

absl::optional<uint64_t> CheckedOptimizer::Make(VectorStep step, Accumulator& sum,
                                                const WriteProgress& progress, uint64_t* checksum) {
  std::vector<uint64_t> checksums(checksum == nullptr ? 0 : PartsOf(step.next.size()));
  step.optimizer.number = steps_ + 1;
  optimizer_->Begin(step.optimizer);
  const double bound = step.last.has_value() ? sum.BoundWith(*step.last) : sum.bound();
  bounds_.Begin(*optimizer_, bound, step.optimizer.divisor, step.statistics_divisor);
  Making making{std::move(step), sum, optimizer_->slots(), absl::MakeSpan(checksums)};
  Foresee(making);
  if (making.bad != kNone) return making.bad;
  ForEachPartOf(making, progress,
                [&](uint64_t begin, uint64_t end) { MakePart(making, begin, end); });
  if (making.bad != kNone) return making.bad;
  if (checksum != nullptr) *checksum = Combined(checksums);
  bounds_.Commit();
  ++steps_;
  return absl::nullopt;
}

void CheckedOptimizer::Foresee(Making& making) {
  const bool sure = making.slots.empty() || bounds_.is_sure();
  if (sure && !trust_.has_value()) return;
  // The sum is read more than once, and must read the same each time.
  if (making.step.last.has_value() && making.step.last->gradient->foreign()) {
    making.sum.Add(*making.step.last, parallel_);
    making.step.last.reset();
  }
  if (trust_.has_value()) {
    const auto update = [&](uint64_t begin, absl::Span<float> to) {
      MakePiece(making, begin, Pass::kTry, to);
      making.Check(begin, to);
    };
    trust_->Measure(making.step.current, making.step.optimizer.learning_rates, parallel_, update);
    if (making.bad != kNone || (trust_->sure() && bounds_.sum_is_sure())) return;
  }
  ForEachPartOf(making, nullptr,
                [&](uint64_t begin, uint64_t end) { TryPart(making, begin, end); });
}

void CheckedOptimizer::ForEachPartOf(const Making& making, const WriteProgress& progress,
                                     absl::FunctionRef<void(uint64_t begin, uint64_t end)> part) {
  const uint64_t size = making.step.next.size();
  const uint64_t report = progress ? kPartsPerReport * kPartElements : size;
  for (uint64_t begin = 0; begin < size; begin += report) {
    const uint64_t end = std::min(size, begin + report);
    ForParts(parallel_, end - begin,
             [&](size_t, uint64_t from, uint64_t to) { part(begin + from, begin + to); });
    if (progress && making.bad == kNone) progress(end);
  }
}

void CheckedOptimizer::TryPart(Making& making, uint64_t begin, uint64_t end) {
  alignas(64) float scratch[kPiece];
  for (; begin < end && begin < making.bad; begin += kPiece) {
    const absl::Span<float> tried = absl::MakeSpan(scratch, std::min(kPiece, end - begin));
    MakePiece(making, begin, Pass::kTry, tried);
    if (trust_.has_value()) trust_->Apply(begin, making.step.current, tried);
    making.Check(begin, tried);
  }
}

void CheckedOptimizer::MakePart(Making& making, uint64_t begin, uint64_t end) {
  const absl::Span<float> to = making.step.next;
  const bool streams = to.size() >= kStreamedElements;
  PartChecksum checksum(making.checksums, begin);
  alignas(64) float made[kPiece];
  for (; begin < end; begin += kPiece) {
    const uint64_t size = std::min(kPiece, end - begin);
    const absl::Span<float> next = to.subspan(begin, size);
    const absl::Span<float> piece = streams ? absl::MakeSpan(made, size) : next;
    MakePiece(making, begin, Pass::kMake, piece);
    if (trust_.has_value()) trust_->Apply(begin, making.step.current, piece);
    if (bounds_.measures() && !bounds_.Measure(begin, piece, making.slots)) {
      making.Check(begin, piece);
    }
    checksum.Add(piece, making.slots, begin);
    if (streams) StreamTo(AsPiece(piece), next);
  }
  EndStreams();
}

void CheckedOptimizer::MakePiece(Making& making, uint64_t begin, Pass pass,
                                 absl::Span<float> made) {
  alignas(64) float with_last[kPiece];
  absl::Span<const float> sum = making.sum.sum().subspan(begin, made.size());
  if (making.step.last.has_value()) {
    making.sum.SumWith(*making.step.last, begin, absl::MakeSpan(with_last, made.size()));
    sum = absl::MakeConstSpan(with_last, made.size());
  }
  const absl::Span<const float> current = making.step.current.subspan(begin, made.size());
  const uint64_t end = begin + made.size();
  ForEachPart(group_runs_, begin, end, [&](const GroupRun& run, uint64_t from, uint64_t to) {
    const size_t at = from - begin;
    const size_t size = to - from;
    const OptimizerPiece piece = {run.group, from, sum.subspan(at, size), current.subspan(at, size),
                                  made.subspan(at, size)};
    if (run.kind == RangeKind::kStatistic) {
      DivideTo(piece.sum, making.step.statistics_divisor, piece.next);
    } else if (pass == Pass::kTry) {
      making.Note(optimizer_->Try(piece));
    } else {
      optimizer_->Apply(piece);
    }
  });
}

}  // namespace sluice
