#include "tools/evaluate/evaluation_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice {
namespace {

using nlohmann::ordered_json;

template <typename Number>
ordered_json JsonOf(const absl::optional<Number>& number) {
  return number.has_value() ? ordered_json(number->value()) : ordered_json();
}

// Returns "step 20", or the source if the step is unknown.
std::string NameOf(const ParametersId& id) {
  return id.step.has_value() ? absl::StrCat("step ", id.step->value()) : id.source;
}

}  // namespace

std::string RecordOf(const ParametersId& id, const Evaluation& evaluation) {
  const ordered_json record = {{"step", JsonOf(id.step)}, {"incarnation", JsonOf(id.incarnation)},
                               {"source", id.source},     {"samples", evaluation.samples},
                               {"loss", evaluation.loss}, {"top1", evaluation.top1},
                               {"top5", evaluation.top5}};
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

absl::Status EvaluationReport::Add(const ParametersId& id, const Evaluation& evaluation,
                                   absl::Duration time) {
  out_ << absl::StrFormat("%s  loss %.4f  top-1 %.4f  top-5 %.4f  %.2f s\n", NameOf(id),
                          evaluation.loss, evaluation.top1, evaluation.top5,
                          absl::ToDoubleSeconds(time))
       << std::flush;
  if (evaluations_++ == 0 || evaluation.top1 > best_top1_) {
    best_ = id;
    best_top1_ = evaluation.top1;
  }
  if (path_.empty()) return absl::OkStatus();
  json_ << RecordOf(id, evaluation) << "\n" << std::flush;
  return json_ ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path_));
}

absl::Status EvaluationReport::Finish() {
  if (evaluations_ == 0) {
    return absl::FailedPreconditionError("there was nothing to evaluate");
  }
  out_ << absl::StrFormat("evaluations %d, the best at %s: top-1 %.4f\n", evaluations_,
                          NameOf(best_), best_top1_)
       << std::flush;
  return absl::OkStatus();
}

}  // namespace sluice
