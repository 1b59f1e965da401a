#include "tools/ping/measure.h"

#include <glog/logging.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "common/encoding/encoding.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/encoding_trial.h"
#include "common/encoding/transforms/builtin_transforms.h"

namespace sluice {
namespace {

constexpr int kRoundTrips = 200;
// A server lets a probe move 16 GiB, which takes four seconds over a fast unix socket.
constexpr absl::Duration kLongestFlow = absl::Seconds(2);
constexpr double kShareOfRoundTrips = 0.1;  // of the time
constexpr int kConnections[] = {1, 2, 4, 8};

constexpr int kTrials = 3;
constexpr uint64_t kMostTried = uint64_t{4} << 20;        // values
constexpr uint64_t kElementsOfPiece = uint64_t{1} << 18;  // a chunk of 1 MiB

struct Candidate {
  const char* name;
  bool keeps_accuracy;  // beyond noise, as the figures of tools/bench say
};

constexpr Candidate kCandidates[] = {
    {"float32", true}, {"float16", true},     {"bfloat16", true},
    {"int8", true},    {"top-k:0.01", false}, {"sign", false},
};

// The same values on each machine.
std::vector<float> NormalValues(uint64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.01F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<PlannedChunk> PlanOf(uint64_t elements) {
  std::vector<PlannedChunk> plan;
  for (uint64_t begin = 0; begin < elements; begin += kElementsOfPiece) {
    PlannedChunk chunk;
    chunk.begin = begin;
    chunk.end = std::min(begin + kElementsOfPiece, elements);
    chunk.awaits_choice = true;
    plan.push_back(chunk);
  }
  return plan;
}

// The least of several trials: other programs of this machine can only add to it.
EncodingCost TryOften(const Encoding& encoding, absl::Span<const float> values,
                      const Clock& clock) {
  const std::vector<PlannedChunk> plan = PlanOf(values.size());
  EncodingCost least;
  for (int i = 0; i < kTrials; ++i) {
    const EncodingCost cost =
        TryEncoding(encoding, plan, values, /*feedback=*/true, BuiltinTransforms(), clock).cost;
    if (i == 0) least = cost;
    least.encode = std::min(least.encode, cost.encode);
    least.decode = std::min(least.decode, cost.decode);
  }
  return least;
}

EncodingCost Scaled(const EncodingCost& cost, double factor) {
  return {static_cast<uint64_t>(static_cast<double>(cost.bytes) * factor), cost.encode * factor,
          cost.decode * factor};
}

}  // namespace

RoundTripTimes Summarize(std::vector<absl::Duration> times) {
  std::sort(times.begin(), times.end());
  const size_t last = times.size() - 1;
  return {times.front(), times[last / 2], times[last * 99 / 100]};
}

absl::StatusOr<PathReport> MeasurePath(GrpcProbe& probe, bool is_unix, absl::Duration time) {
  PathReport report;
  auto server = probe.Ask();
  if (!server.ok()) return server.status();
  report.server = *std::move(server);
  const auto times = probe.RoundTrips(kRoundTrips, time * kShareOfRoundTrips);
  if (!times.ok()) return times.status();
  report.round_trip = Summarize(*times);
  const size_t counts = is_unix ? 1 : std::size(kConnections);
  const absl::Duration each =
      std::min(time * (1 - kShareOfRoundTrips) / (2 * static_cast<int64_t>(counts)), kLongestFlow);
  for (size_t i = 0; i < counts; ++i) {
    const auto push = probe.Push(kConnections[i], each);
    if (!push.ok()) return push.status();
    const auto pull = probe.Pull(kConnections[i], each);
    if (!pull.ok()) return pull.status();
    report.rates.push_back({kConnections[i], push->rate(), pull->rate()});
  }
  return report;
}

std::vector<PricedEncoding> PriceEncodings(uint64_t elements, const Clock& clock) {
  const uint64_t tried = std::min(elements, kMostTried);
  const std::vector<float> values = NormalValues(tried);
  const double factor = static_cast<double>(elements) / static_cast<double>(tried);
  std::vector<PricedEncoding> priced;
  for (const Candidate& candidate : kCandidates) {
    const auto encoding = ParseEncoding(candidate.name);
    CHECK(encoding.ok()) << encoding.status();
    const EncodingCost cost = TryOften(*encoding, values, clock);
    priced.push_back({candidate.name, Scaled(cost, factor), candidate.keeps_accuracy});
  }
  return priced;
}

}  // namespace sluice
