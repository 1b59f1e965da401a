// Prints the results of evaluations: a line for people, and a JSON record for programs.

#ifndef SLUICE_TOOLS_EVALUATE_EVALUATION_REPORT_H_
#define SLUICE_TOOLS_EVALUATE_EVALUATION_REPORT_H_

#include <cstdint>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/evaluate/parameter_source.h"
#include "worker/training/evaluation.h"

namespace sluice {

// Returns the record of one evaluation, for example
// {"step":20,"incarnation":1,"source":"127.0.0.1:7070","samples":10000,"loss":0.25,"top1":0.9,
// "top5":0.99}. A model that classifies nothing has other metrics, or none. A number that is
// unknown or not finite is null.
std::string RecordOf(const ParametersId& id, const TestResult& result);

// The program makes one report and uses it from one thread.
class EvaluationReport {
 public:
  // The report writes to `out`, which must outlive it. It also appends one record a line to the
  // file `json`, unless that name is empty. Returns UNAVAILABLE if the file cannot be written.
  static absl::StatusOr<std::unique_ptr<EvaluationReport>> Open(std::ostream& out,
                                                                const std::string& json);

  // Prints one evaluation, which took `time`. Returns UNAVAILABLE if the file cannot be written.
  absl::Status Add(const ParametersId& id, const TestResult& result, absl::Duration time);

  // Prints the number of evaluations and the best one. Returns FAILED_PRECONDITION if there were
  // none.
  absl::Status Finish();

 private:
  EvaluationReport(std::ostream& out, std::string path) : out_(out), path_(std::move(path)) {}

  std::ostream& out_;
  const std::string path_;
  std::ofstream json_;
  uint64_t evaluations_ = 0;
  ParametersId best_;  // the first one with the highest first metric, or the least loss if none
  Metric best_metric_;
};

}  // namespace sluice

#endif  // SLUICE_TOOLS_EVALUATE_EVALUATION_REPORT_H_
