#include "worker/training/run_record.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace sluice {
namespace {

using nlohmann::ordered_json;

constexpr absl::Duration kRecordInterval = absl::Seconds(1);

// The fields with which every line begins.
ordered_json LineOf(const Place& place, absl::Time now, absl::Time began) {
  return {{"worker", place.index},
          {"workers", place.workers},
          {"time", absl::ToDoubleSeconds(now - absl::UnixEpoch())},
          {"seconds", absl::ToDoubleSeconds(now - began)}};
}

// Flushes, so that a line is one call of write(), and those of several workers do not mix.
void Append(const ordered_json& line, std::ostream& file) {
  file << line.dump() + "\n" << std::flush;
}

}  // namespace

RunRecord::RunRecord(const std::string& path, const Clock& clock)
    : path_(path), file_(path, std::ios::app), clock_(clock) {}

absl::StatusOr<std::unique_ptr<RunRecord>> RunRecord::Open(const std::string& path,
                                                           const Clock& clock) {
  auto record = absl::WrapUnique(new RunRecord(path, clock));
  const absl::Status status = record->status();
  if (!status.ok()) return status;
  return record;
}

void RunRecord::Begin(const Place& place) {
  place_ = place;
  began_ = written_ = clock_.Now();
}

absl::Status RunRecord::status() const {
  if (file_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path_, "; give --json another file"));
}

void RunRecord::Note(int epoch, const LearnReport& report, int64_t samples) {
  ++batches_;
  samples_ += samples;
  loss_sum_ += report.loss;
  staleness_sum_ += static_cast<double>(report.staleness);
  exchange_ += report.exchange;
  epoch_ = epoch;
  step_ = report.step;
  if (clock_.Now() - written_ >= kRecordInterval) Write();
}

void RunRecord::Finish() {
  if (batches_ > 0) Write();
}

void RunRecord::AddTest(const TestResult& test) {
  ordered_json line = LineOf(place_, clock_.Now(), began_);
  line["step"] = step_.value();
  line["test_samples"] = test.samples;
  line["test_loss"] = test.loss;
  if (!test.metrics.empty()) {
    const Metric& metric = test.metrics.front();
    line[absl::StrReplaceAll(absl::StrCat("test_", metric.name), {{" ", "_"}})] = metric.value;
  }
  Append(line, file_);
}

void RunRecord::Write() {
  const absl::Time now = clock_.Now();
  const auto batches = static_cast<double>(batches_);
  ordered_json line = LineOf(place_, now, began_);
  line["epoch"] = epoch_ + 1;
  line["step"] = step_.value();
  line["samples"] = samples_;
  line["loss"] = loss_sum_ / batches;
  line["staleness"] = staleness_sum_ / batches;
  line["exchange"] = absl::ToDoubleSeconds(exchange_);
  Append(line, file_);
  written_ = now;
  batches_ = samples_ = 0;
  loss_sum_ = staleness_sum_ = 0;
  exchange_ = absl::ZeroDuration();
}

}  // namespace sluice
