#include "tools/bench/crowds/crowd_check.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace sluice::bench {
namespace {

using ClosingTable = std::map<std::string, std::string>;

uint64_t CountIn(const ClosingTable& rows, const std::string& name) {
  uint64_t count = 0;
  const auto row = rows.find(name);
  return row != rows.end() && absl::SimpleAtoi(row->second, &count) ? count : 0;
}

// Every worker that stays contributes once to each step of these modes, until it leaves.
bool StepsNeedAll(absl::string_view mode) { return mode == "sync"; }

std::string Differs(absl::string_view what, uint64_t counted, uint64_t expected) {
  return absl::StrCat("the server counted ", counted, " ", what, ", expected ", expected);
}

}  // namespace

std::string WhatIsWrong(const ClosingTable& rows, absl::string_view mode, const CrowdTotals& totals,
                        SomeWere killed) {
  if (rows.empty()) return "the server ended without its closing table";
  const uint64_t received = CountIn(rows, "pushes received");
  const uint64_t accepted = CountIn(rows, "accepted");
  const uint64_t stale = CountIn(rows, "stale");
  uint64_t sum = accepted + stale;
  for (const char* other : {"skipped", "duplicate", "rejected", "aborted", "in progress"}) {
    sum += CountIn(rows, other);
  }
  if (received != sum) return Differs("pushes received", received, sum);
  const bool more_may_count = killed == SomeWere::kKilled;
  if (accepted < totals.accepted || (accepted > totals.accepted && !more_may_count)) {
    return Differs("accepted", accepted, totals.accepted);
  }
  if (stale < totals.stale || (stale > totals.stale && !more_may_count)) {
    return Differs("stale", stale, totals.stale);
  }
  if (totals.others > 0) return absl::StrCat(totals.others, " pushes were duplicate or skipped");
  const uint64_t steps = StepsNeedAll(mode) ? totals.most_rounds : accepted;
  const uint64_t made = CountIn(rows, "steps");
  return made == steps ? "" : Differs("steps", made, steps);
}

}  // namespace sluice::bench
