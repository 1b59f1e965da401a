// Which flags make a round fastest on a measured path. Pure arithmetic.

#ifndef SLUICE_TOOLS_PING_RECOMMENDATION_H_
#define SLUICE_TOOLS_PING_RECOMMENDATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/encoding/encoding_chooser.h"

namespace sluice {

// The path with so many connections, in bytes per second; more than 0.
struct PathRate {
  int connections = 1;
  double push = 0;
  double pull = 0;
};

// What an encoding costs for the whole model.
struct PricedEncoding {
  std::string name;             // as --push-encoding takes it
  EncodingCost cost;            // of `float32`: only bytes
  bool keeps_accuracy = false;  // training with it ends as well as without, beyond noise
};

struct MeasuredPath {
  absl::Duration round_trip;
  std::vector<PathRate> rates;  // at least one, in order of connections
  bool shares_memory = false;   // plain tensors do not go through the connections at all
};

// A round: the push of a gradient, then the pull of plain parameters.
struct RoundEstimate {
  int connections = 1;
  std::string encoding;
  absl::Duration push;  // until the server has decoded all of it
  absl::Duration pull;
  absl::Duration total;  // with one round trip, and without the optimizer's step
  bool keeps_accuracy = false;
};

struct Recommendation {
  std::vector<RoundEstimate> rounds;  // by encoding, then by connections
  RoundEstimate best;
  std::string why;  // one sentence
};

// A flag is recommended if it saves more than this share of a round.
inline constexpr double kWorthAFlag = EncodingChooser::kWorthAChange;

// `rate` and `encoding` for a model of `elements` elements.
RoundEstimate EstimateRound(const PathRate& rate, const PricedEncoding& encoding,
                            absl::Duration round_trip, uint64_t elements);

// Of the encodings that keep the accuracy, with any number of connections, the fastest. One that is
// listed earlier, and fewer connections, win if the fastest saves no more than kWorthAFlag. The
// first encoding is plain; at least one element.
Recommendation Recommend(const MeasuredPath& path, const std::vector<PricedEncoding>& encodings,
                         uint64_t elements);

}  // namespace sluice

#endif  // SLUICE_TOOLS_PING_RECOMMENDATION_H_
