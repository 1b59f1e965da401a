#include "tools/evaluate/evaluation_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace sluice {
namespace {

using nlohmann::ordered_json;

constexpr char kLoss[] = "loss";

template <typename Number>
ordered_json JsonOf(const absl::optional<Number>& number) {
  return number.has_value() ? ordered_json(number->value()) : ordered_json();
}

// Returns "step 20", or the source if the step is unknown.
std::string NameOf(const ParametersId& id) {
  return id.step.has_value() ? absl::StrCat("step ", id.step->value()) : id.source;
}

// "top1", "area_under_curve".
std::string KeyOf(const Metric& metric) {
  return absl::StrReplaceAll(metric.shown, {{"-", ""}, {" ", "_"}});
}

std::string TextOf(const Metric& metric) {
  return absl::StrFormat("%s %.4f", metric.shown, metric.value);
}

// What evaluations are compared by.
Metric MainOf(const TestResult& result) {
  if (!result.metrics.empty()) return result.metrics.front();
  return {"loss", kLoss, result.loss};
}

bool IsBetter(const Metric& a, const Metric& b) {
  return a.shown == kLoss ? a.value < b.value : a.value > b.value;
}

}  // namespace

std::string RecordOf(const ParametersId& id, const TestResult& result) {
  ordered_json record = {{"step", JsonOf(id.step)},
                         {"incarnation", JsonOf(id.incarnation)},
                         {"source", id.source},
                         {"samples", result.samples},
                         {"loss", result.loss}};
  for (const Metric& metric : result.metrics) record[KeyOf(metric)] = metric.value;
  // A path may hold any bytes.
  return record.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

absl::StatusOr<std::unique_ptr<EvaluationReport>> EvaluationReport::Open(std::ostream& out,
                                                                         const std::string& json) {
  std::unique_ptr<EvaluationReport> report(new EvaluationReport(out, json));
  if (json.empty()) return report;
  report->json_.open(json, std::ios::app);
  if (report->json_) return report;
  return absl::UnavailableError(absl::StrCat("cannot write ", json, "; give --json another file"));
}

absl::Status EvaluationReport::Add(const ParametersId& id, const TestResult& result,
                                   absl::Duration time) {
  out_ << absl::StrFormat("%s  loss %.4f", NameOf(id), result.loss);
  for (const Metric& metric : result.metrics) out_ << "  " << TextOf(metric);
  out_ << absl::StrFormat("  %.2f s\n", absl::ToDoubleSeconds(time)) << std::flush;
  const Metric metric = MainOf(result);
  if (evaluations_++ == 0 || IsBetter(metric, best_metric_)) {
    best_ = id;
    best_metric_ = metric;
  }
  if (path_.empty()) return absl::OkStatus();
  json_ << RecordOf(id, result) << "\n" << std::flush;
  return json_ ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path_));
}

absl::Status EvaluationReport::Finish() {
  if (evaluations_ == 0) {
    return absl::FailedPreconditionError("there was nothing to evaluate");
  }
  out_ << absl::StrFormat("evaluations %d, the best at %s: %s\n", evaluations_, NameOf(best_),
                          TextOf(best_metric_))
       << std::flush;
  return absl::OkStatus();
}

}  // namespace sluice
