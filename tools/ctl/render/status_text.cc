#include "tools/ctl/render/status_text.h"

#include <array>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/wire/settings.h"
#include "server/observe/readings.h"
#include "server/policy/mode_options.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

// The word of an enum in the server's flags: "weighted-mean" for WEIGHTED_MEAN.
std::string FlagWord(absl::string_view name) {
  std::string word = absl::AsciiStrToLower(name);
  for (char& letter : word) {
    if (letter == '_') letter = '-';
  }
  return word;
}

std::string StepWaitText(const v1::Consistency& consistency) {
  if (!consistency.has_max_step_wait()) return "";
  return absl::StrCat("; a worker may delay a step for ",
                      TimeText(FromProto(consistency.max_step_wait())), ", then ",
                      FlagWord(v1::StepWaitAction_Name(consistency.on_max_step_wait())));
}

std::string OptimizerText(const v1::ServerState& state) {
  if (!state.has_optimizer()) return "not known yet, the first worker brings it";
  const auto* const field = v1::OptimizerConfig::descriptor()->FindFieldByNumber(
      static_cast<int>(state.optimizer().optimizer_case()));
  const std::string name = field == nullptr ? "unknown" : field->name();
  const std::string rate = absl::StrFormat("learning rate %.6g", state.learning_rate());
  const std::string schedule =
      FlagWord(v1::LearningRateSchedule::Kind_Name(state.schedule().kind()));
  return absl::StrCat(name, ", ", rate, ", schedule ", schedule);
}

std::string StepRateText(const v1::ServerState& state) {
  if (!state.has_mean_step_time()) return "no step yet";
  const absl::Duration mean = FromProto(state.mean_step_time());
  const double rate = mean > absl::ZeroDuration() ? 1 / absl::ToDoubleSeconds(mean) : 0;
  return absl::StrCat(RateText(rate), " steps/s on average (", TimeText(mean),
                      " each); the last was ", TimeText(FromProto(state.since_last_step())),
                      " ago");
}

std::string GradientsText(const v1::StepState& step) {
  std::string text =
      absl::StrCat(step.accumulated(), " of ", CountText(step.required(), "gradient"));
  if (step.skipped() > 0) absl::StrAppend(&text, ", ", step.skipped(), " skipped");
  if (step.has_waiting()) {
    absl::StrAppend(&text, ", waiting for ", TimeText(FromProto(step.waiting())));
  }
  return text;
}

std::string PushesText(const v1::PushCounters& pushes) {
  return absl::StrCat(pushes.received(), " received: ", pushes.accepted(), " accepted, ",
                      pushes.stale(), " stale, ", pushes.skipped(), " skipped, ",
                      pushes.duplicate(), " duplicate, ", pushes.rejected(), " rejected, ",
                      pushes.aborted(), " aborted, ", pushes.in_progress(), " in progress");
}

// With several servers the bytes of the sockets are those of the first one: `sluicectl servers` has
// each server's.
std::string TrafficText(const v1::ServerState& state, uint64_t bytes, uint64_t wire) {
  const std::string tensors = absl::StrCat(BytesText(bytes), " of tensors");
  if (state.servers() > 1) return tensors;
  return absl::StrCat(tensors, ", ", BytesText(wire), " through sockets (", ShareText(wire, bytes),
                      ")");
}

std::string CheckpointText(const v1::ServerState& state) {
  if (!state.has_last_checkpoint()) return "none saved by this server process";
  return absl::StrCat("step ", state.last_checkpoint().step(), ", saved ",
                      TimeText(FromProto(state.last_checkpoint().since())), " ago");
}

// Results in the order of their names.
std::string MeasuredText(const v1::ServerState& state) {
  if (!state.has_measurement()) return "nothing reported to this server process";
  const v1::LastMeasurement& measured = state.measurement();
  const std::map<std::string, double> results(measured.results().begin(), measured.results().end());
  std::vector<std::string> texts;
  for (const auto& [name, value] : results) {
    texts.push_back(absl::StrFormat("%s %.6g", Printable(name), value));
  }
  return absl::StrCat("step ", measured.step(), ": ", absl::StrJoin(texts, ", "));
}

std::string WarningsText(const v1::ServerState& state) {
  if (state.warnings().empty()) return LabelLine("warnings", "none");
  std::string text;
  for (const v1::TrainingWarning& warning : state.warnings()) {
    const std::string over =
        warning.has_over() ? absl::StrCat(" (over since step ", warning.over(), ")") : "";
    absl::StrAppend(&text, LabelLine("warning", absl::StrCat(Printable(warning.text()), over)));
  }
  return text;
}

std::string PhaseText(v1::ServerPhase phase) { return v1::ServerPhase_Name(phase); }

}  // namespace

std::string RulesText(const v1::Consistency& message) {
  const auto consistency = FromProto(message);
  if (!consistency.ok()) {
    return absl::StrCat("unknown to this program (", Printable(consistency.status().message()),
                        ")");
  }
  std::string text =
      absl::StrCat(DescribeMode(*consistency), "; ", ReductionName(consistency->reduction),
                   ", in the order of ", ReductionOrderName(consistency->order));
  if (message.discount_stale()) absl::StrAppend(&text, ", stale gradients discounted");
  if (message.inconsistent_reads()) absl::StrAppend(&text, ", inconsistent reads");
  return absl::StrCat(text, StepWaitText(message));
}

std::string PresencesText(const v1::ListWorkersResponse& workers) {
  std::array<int, v1::WorkerPresence_ARRAYSIZE> counts = {};
  for (const v1::Worker& worker : workers.workers()) {
    if (v1::WorkerPresence_IsValid(worker.presence())) ++counts.at(worker.presence());
  }
  return absl::StrCat(counts[v1::PRESENT], " present, ", counts[v1::LOST], " lost, ",
                      counts[v1::LEFT], " left, ", counts[v1::EVICTED], " evicted");
}

std::string AwaitedText(const v1::ServerState& state) {
  const std::string awaited = AwaitedWords(state);
  if (awaited.empty()) return "nobody";
  if (!state.has_awaited_server()) return awaited;
  return absl::StrCat(awaited, " (for ", TimeText(FromProto(state.awaited_server().since())), ")");
}

std::string HeadLine(const v1::ServerState& state, const std::string& address) {
  return absl::StrCat("job ", Printable(state.job_id()), " at ", Printable(address), ": ",
                      PhaseText(state.phase()), ", step ", state.step(), ", incarnation ",
                      state.incarnation(), ", up ", TimeText(FromProto(state.uptime())), "\n");
}

std::string VerdictText(const v1::ServerState& state) {
  if (!state.has_verdict()) return "none from a server of this version";
  return absl::StrCat(v1::Verdict::Kind_Name(state.verdict().kind()), ": ",
                      Printable(state.verdict().text()));
}

std::string StatusText(const v1::ServerState& state, const v1::ListWorkersResponse& workers,
                       const std::string& address) {
  const v1::Staleness& staleness = state.staleness();
  return absl::StrCat(
      HeadLine(state, address), LabelLine("verdict", VerdictText(state)),
      LabelLine("rules", RulesText(state.consistency())),
      LabelLine("optimizer", OptimizerText(state)), LabelLine("rate", StepRateText(state)),
      LabelLine("workers", absl::StrCat(PresencesText(workers), "; ",
                                        CountText(state.observers(), "observer"))),
      LabelLine("this step", GradientsText(state.current())),
      LabelLine("awaited", AwaitedText(state)), LabelLine("pushes", PushesText(state.pushes())),
      LabelLine("staleness",
                absl::StrFormat("mean %.2f, most %d", staleness.mean(), staleness.max())),
      LabelLine("received",
                TrafficText(state, state.bytes_received(), state.wire_bytes_received())),
      LabelLine("sent", TrafficText(state, state.bytes_sent(), state.wire_bytes_sent())),
      LabelLine("model", absl::StrCat(CountText(state.tensors(), "tensor"), ", ",
                                      CountText(state.elements(), "element"), ", ",
                                      BytesText(state.elements() * sizeof(float)))),
      LabelLine("measured", MeasuredText(state)), LabelLine("checkpoint", CheckpointText(state)),
      WarningsText(state));
}

std::string WatchLine(const v1::ServerState& state) {
  std::string line = absl::StrCat(
      PhaseText(state.phase()), " step ", state.step(), ": ", CountText(state.workers(), "worker"),
      ", ", GradientsText(state.current()), ", awaited: ", AwaitedText(state));
  for (const v1::TrainingWarning& warning : state.warnings()) {
    if (!warning.has_over()) absl::StrAppend(&line, ", ", v1::WarningKind_Name(warning.kind()));
  }
  if (!state.has_verdict()) return absl::StrCat(line, "\n");
  return absl::StrCat(line, "; ", v1::Verdict::Kind_Name(state.verdict().kind()), "\n");
}

std::string PolicyText(const v1::ServerState& state) {
  std::string text = absl::StrCat(LabelLine("rules", RulesText(state.consistency())),
                                  LabelLine("optimizer", OptimizerText(state)));
  if (!state.has_staleness_rules()) return text;
  const v1::StalenessRules& rules = state.staleness_rules();
  std::vector<std::string> used;
  if (rules.discount_stale()) used.emplace_back("discount-stale");
  if (rules.gap_aware()) used.emplace_back("gap-aware");
  if (rules.ordered_momentum()) used.emplace_back("ordered-momentum");
  if (rules.divided_momentum()) used.emplace_back("divided-momentum");
  absl::StrAppend(
      &text, LabelLine("stale", absl::StrCat(used.empty() ? "no rule" : absl::StrJoin(used, ", "),
                                             ": ", Printable(rules.reason()))));
  return text;
}

std::string PolicySetText(const v1::SetPolicyResponse& response) {
  std::string text =
      absl::StrCat("from step ", response.step(), " on: ", RulesText(response.consistency()), "\n");
  if (response.ignored().empty()) return text;
  return absl::StrCat(text, "without effect in these rules: ",
                      Printable(absl::StrJoin(response.ignored(), ", ")), "\n");
}

}  // namespace sluice
