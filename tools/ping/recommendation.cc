#include "tools/ping/recommendation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice {
namespace {

constexpr uint64_t kElementsOfChunk = uint64_t{1} << 18;  // 1 MiB

// Whether `other` is so much faster that it is worth its flags.
bool IsWorth(const RoundEstimate& other, const RoundEstimate& simple) {
  return other.total < simple.total * (1 - kWorthAFlag);
}

const RoundEstimate& Fastest(const std::vector<RoundEstimate>& rounds) {
  const RoundEstimate* fastest = &rounds.front();
  for (const RoundEstimate& round : rounds) {
    if (round.keeps_accuracy && round.total < fastest->total) fastest = &round;
  }
  return *fastest;
}

// The first one that the fastest does not beat by enough.
const RoundEstimate& Simplest(const std::vector<RoundEstimate>& rounds) {
  const RoundEstimate& fastest = Fastest(rounds);
  for (const RoundEstimate& round : rounds) {
    if (round.keeps_accuracy && !IsWorth(fastest, round)) return round;
  }
  return fastest;
}

const RoundEstimate& With(const std::vector<RoundEstimate>& rounds, const std::string& encoding,
                          int connections) {
  return *std::find_if(rounds.begin(), rounds.end(), [&](const RoundEstimate& round) {
    return round.encoding == encoding && round.connections == connections;
  });
}

std::string Saved(const RoundEstimate& without, const RoundEstimate& with) {
  const double share = 1 - absl::FDivDuration(with.total, without.total);
  return absl::StrFormat("%.0f %% of a round", 100 * share);
}

std::string Why(const MeasuredPath& path, const std::vector<RoundEstimate>& rounds,
                const RoundEstimate& best) {
  if (path.shares_memory) {
    return "the server reads plain gradients from this machine's memory, and encoded ones would go "
           "through the socket";
  }
  const std::string& plain = rounds.front().encoding;
  const int one = rounds.front().connections;
  const std::string encoding =
      best.encoding == plain
          ? "no encoding that keeps the accuracy saves more than 5 % of a round here"
          : absl::StrCat(best.encoding, " saves ",
                         Saved(With(rounds, plain, best.connections), best),
                         " against unencoded gradients");
  if (path.rates.size() == 1) return encoding;
  return absl::StrCat(
      encoding, ", and ",
      best.connections == one
          ? "more connections are not faster by that much"
          : absl::StrCat(best.connections, " connections save ",
                         Saved(With(rounds, best.encoding, one), best), " against one"));
}

}  // namespace

RoundEstimate EstimateRound(const PathRate& rate, const PricedEncoding& encoding,
                            absl::Duration round_trip, uint64_t elements) {
  const uint64_t chunks = (elements + kElementsOfChunk - 1) / kElementsOfChunk;
  const EncodingCost plain = {elements * sizeof(float), {}, {}};
  RoundEstimate round;
  round.connections = rate.connections;
  round.encoding = encoding.name;
  round.keeps_accuracy = encoding.keeps_accuracy;
  round.push = TimeOnItsWay(encoding.cost, rate.push, chunks, Pipeline::kThroughout);
  round.pull = TimeOnItsWay(plain, rate.pull, chunks, Pipeline::kThroughout);
  round.total = round.push + round.pull + round_trip;
  return round;
}

Recommendation Recommend(const MeasuredPath& path, const std::vector<PricedEncoding>& encodings,
                         uint64_t elements) {
  Recommendation result;
  for (const PricedEncoding& encoding : encodings) {
    for (const PathRate& rate : path.rates) {
      result.rounds.push_back(EstimateRound(rate, encoding, path.round_trip, elements));
    }
  }
  result.best = path.shares_memory ? result.rounds.front() : Simplest(result.rounds);
  result.why = Why(path, result.rounds, result.best);
  return result;
}

}  // namespace sluice
