// Compares what a server has counted with what its workers were answered.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_CROWD_CHECK_H_
#define SLUICE_TOOLS_BENCH_CROWDS_CROWD_CHECK_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "tools/bench/crowds/crowd.h"

namespace sluice::bench {

enum class SomeWere { kNotKilled, kKilled };

// `rows` are those of the closing table (tests/testing/process/launch.h). Returns an empty string,
// or what is wrong: received must be the sum of the other counters; accepted and stale must be what
// the workers were told, or more if some were killed; and the steps must follow from that by the
// rules of the mode.
std::string WhatIsWrong(const std::map<std::string, std::string>& rows, absl::string_view mode,
                        const CrowdTotals& totals, SomeWere killed);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_CROWD_CHECK_H_
