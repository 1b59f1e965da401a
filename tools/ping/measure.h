// Measures a server's path, and what encodings cost on this machine.

#ifndef SLUICE_TOOLS_PING_MEASURE_H_
#define SLUICE_TOOLS_PING_MEASURE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "tools/ping/recommendation.h"
#include "worker/connection/grpc/probe.h"

namespace sluice {

struct RoundTripTimes {
  absl::Duration least;
  absl::Duration median;
  absl::Duration p99;
};

// Of at least one time.
RoundTripTimes Summarize(std::vector<absl::Duration> times);

struct PathReport {
  ProbedServer server;
  RoundTripTimes round_trip;
  std::vector<PathRate> rates;  // with 1, 2, 4 and 8 connections; through a unix socket with 1
};

// Takes about `time`.
absl::StatusOr<PathReport> MeasurePath(GrpcProbe& probe, bool is_unix, absl::Duration time);

// What encoding and decoding `elements` normally distributed values costs on this machine, for
// float32 and each encoding in question; error feedback counts as encoding. The estimate comes from
// 4 Mi values, or `elements` if they are fewer.
std::vector<PricedEncoding> PriceEncodings(uint64_t elements, const Clock& clock);

}  // namespace sluice

#endif  // SLUICE_TOOLS_PING_MEASURE_H_
