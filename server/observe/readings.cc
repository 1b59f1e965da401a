#include "server/observe/readings.h"

#include <cmath>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "common/wire/settings.h"
#include "server/policy/mode_options.h"
#include "server/state/push_counters.h"

namespace sluice {

double Seconds(const google::protobuf::Duration& duration) {
  return absl::ToDoubleSeconds(FromProto(duration));
}

std::string TimeWords(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < 1) return absl::StrFormat("%.2g s", absl::ToDoubleSeconds(duration));
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, " min ", seconds % 60, " s");
  return absl::StrCat(seconds / 3600, " h ", seconds / 60 % 60, " min");
}

std::string NumberWords(double number) {
  return std::abs(number) < 999.5 ? absl::StrFormat("%.3g", number)
                                  : absl::StrFormat("%.0f", number);
}

std::string BytesWords(uint64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  double value = static_cast<double>(bytes) / 1000;
  const char* const* unit = std::begin(kUnits);
  for (; value >= 999.5 && unit + 1 != std::end(kUnits); ++unit) value /= 1000;
  return absl::StrFormat("%.*f %s", value < 99.95 ? 1 : 0, value, *unit);
}

std::string WorkersWords(uint64_t count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

std::string StalledWords(const v1::StalledWorker& worker) {
  return absl::StrCat(Shown(worker.worker()), " has sent no gradient for ",
                      TimeWords(FromProto(worker.since_last_push())), "; it usually needs ",
                      TimeWords(FromProto(worker.usual())));
}

std::string AwaitedWords(const v1::ServerState& state) {
  constexpr int kMostNamed = 3;
  if (state.has_awaited_server()) {
    return absl::StrCat("server ", state.awaited_server().index(), " of ", state.servers());
  }
  const v1::StepState& step = state.current();
  std::vector<std::string> all;
  for (const v1::AwaitedWorker& worker : step.awaited()) {
    if (all.size() == kMostNamed) break;
    std::string text = absl::StrCat(Shown(worker.worker()), " (last seen ",
                                    TimeWords(FromProto(worker.since_last_seen())), " ago");
    if (worker.lag() > 1) absl::StrAppend(&text, ", lag ", worker.lag());
    if (worker.bytes_arrived() > 0) {
      absl::StrAppend(&text, ", ", BytesWords(worker.bytes_arrived()), " of its push here");
    }
    all.push_back(absl::StrCat(text, ")"));
  }
  const auto told = static_cast<uint32_t>(all.size()) + step.absent();
  if (step.missing() > told) {
    const uint32_t more = step.missing() - told;
    all.push_back(all.empty() ? WorkersWords(more) : absl::StrCat(more, " more"));
  }
  if (step.absent() > 0) {
    all.push_back(absl::StrCat(WorkersWords(step.absent()), " still to join"));
  }
  if (all.empty() && step.has_waiting() && step.required() > step.accumulated()) {
    const uint32_t more = step.required() - step.accumulated();
    all.push_back(absl::StrCat(more, more == 1 ? " more gradient" : " more gradients"));
  }
  return absl::StrJoin(all, ", ");
}

std::string TrainedWords(const v1::ServerState& state) {
  if (!state.has_since_last_step()) return "";
  const absl::Duration trained =
      FromProto(state.since_initialized()) - FromProto(state.since_last_step());
  return absl::StrCat(", ", TimeWords(trained),
                      state.incarnation() > 1 ? " after this server went on" : " after it began");
}

std::string PhaseName(v1::ServerPhase phase) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(v1::ServerPhase_Name(phase)), {{"_", " "}});
}

std::string WarningName(v1::WarningKind kind) {
  return absl::AsciiStrToLower(v1::WarningKind_Name(kind));
}

std::string VerdictName(v1::Verdict::Kind kind) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(v1::Verdict::Kind_Name(kind)), {{"_", " "}});
}

std::string ModeName(const v1::Consistency& consistency) {
  return absl::AsciiStrToLower(v1::ConsistencyMode_Name(consistency.mode()));
}

std::string RulesWords(const v1::Consistency& consistency) {
  const auto rules = FromProto(consistency);
  return rules.ok() ? DescribeMode(*rules) : "unknown";
}

// The options' field has the optimizer's name.
std::string OptimizerName(const v1::OptimizerConfig& optimizer) {
  const auto* const field = v1::OptimizerConfig::descriptor()->FindFieldByNumber(
      static_cast<int>(optimizer.optimizer_case()));
  return field == nullptr ? "" : field->name();
}

bool IsConstant(const v1::LearningRateSchedule& schedule) {
  const auto known = FromProto(schedule);
  return known.ok() && known->is_constant();
}

std::vector<std::pair<const char*, uint64_t>> Dispositions(const v1::PushCounters& pushes) {
  return {{"accepted", pushes.accepted()}, {"stale", pushes.stale()},
          {"skipped", pushes.skipped()},   {"duplicate", pushes.duplicate()},
          {"rejected", pushes.rejected()}, {"aborted", pushes.aborted()}};
}

std::vector<uint64_t> StalenessCounts(const v1::Staleness& staleness) {
  std::vector<uint64_t> counts(StalenessHistogram::kLast + 1);
  for (const v1::StalenessCount& one : staleness.histogram()) {
    counts.at(one.staleness()) = one.count();
  }
  return counts;
}

Results MeasuredResults(const v1::ServerState& state) {
  const auto& results = state.measurement().results();
  return {results.begin(), results.end()};
}

absl::optional<double> SecondsAwaited(const v1::ServerState& state, const v1::Server& server) {
  const v1::AwaitedServer& awaited = state.awaited_server();
  if (!state.has_awaited_server() || awaited.index() != server.index()) return absl::nullopt;
  return Seconds(awaited.since());
}

WireTotals WireTotalsOf(const v1::ServerState& state, const std::vector<v1::Server>& servers) {
  if (servers.size() < 2) return {state.wire_bytes_received(), state.wire_bytes_sent()};
  WireTotals totals;
  for (const v1::Server& server : servers) {
    totals.received += server.wire_bytes_received();
    totals.sent += server.wire_bytes_sent();
  }
  return totals;
}

}  // namespace sluice
