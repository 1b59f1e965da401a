#include "worker/training/run_record.h"

#include <nlohmann/json.hpp>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

using nlohmann::ordered_json;

constexpr absl::Duration kRecordInterval = absl::Seconds(1);

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

void RunRecord::AddTest(const Evaluation& test) {
  const absl::Time now = clock_.Now();
  const ordered_json line = {{"worker", place_.index},
                             {"workers", place_.workers},
                             {"time", absl::ToDoubleSeconds(now - absl::UnixEpoch())},
                             {"seconds", absl::ToDoubleSeconds(now - began_)},
                             {"step", step_.value()},
                             {"test_samples", test.samples},
                             {"test_loss", test.loss},
                             {"test_accuracy", test.top1}};
  file_ << line.dump() + "\n" << std::flush;
}

// One call of write(), so that the lines of several workers do not mix.
void RunRecord::Write() {
  const absl::Time now = clock_.Now();
  const auto batches = static_cast<double>(batches_);
  const ordered_json line = {{"worker", place_.index},
                             {"workers", place_.workers},
                             {"time", absl::ToDoubleSeconds(now - absl::UnixEpoch())},
                             {"seconds", absl::ToDoubleSeconds(now - began_)},
                             {"epoch", epoch_ + 1},
                             {"step", step_.value()},
                             {"samples", samples_},
                             {"loss", loss_sum_ / batches},
                             {"staleness", staleness_sum_ / batches},
                             {"exchange", absl::ToDoubleSeconds(exchange_)}};
  file_ << line.dump() + "\n" << std::flush;
  written_ = now;
  batches_ = samples_ = 0;
  loss_sum_ = staleness_sum_ = 0;
  exchange_ = absl::ZeroDuration();
}

}  // namespace sluice
