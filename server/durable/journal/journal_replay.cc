#include "server/durable/journal/journal_replay.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/stripes.h"
#include "server/durable/journal/row_sums_format.h"

namespace sluice {
namespace {

// The last step of `incarnation` that all later incarnations have found.
absl::optional<Step> LastFound(const IncarnationBegins& begins, Incarnation incarnation) {
  absl::optional<Step> last;
  for (auto later = begins.upper_bound(incarnation); later != begins.end(); ++later) {
    last = std::min(last.value_or(later->second), later->second);
  }
  return last;
}

absl::Status Gap(const std::string& path, Step found, Step reached) {
  return absl::DataLossError(absl::StrCat(
      path, " continues with step ", found.value(), ", but only step ", reached.value(),
      " can be repeated from the files before it; restore the damaged files from a copy"));
}

// Says what to do about steps that another build must make again.
absl::Status ForAnotherBuild(const std::string& path, Step checkpoint, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": ", why,
      "; start the server that wrote it with this directory once more: it saves a ",
      "checkpoint, from which this server continues. Or remove the files journal-* and kept, to ",
      "continue from step ", checkpoint.value(), " without the later steps"));
}

// Whether the record has all terms of its step.
absl::Status CheckTerms(const std::string& path, const JournaledStep& step,
                        const OptimizerConfig& optimizer) {
  const uint64_t number = step.record.step.value();
  if (!step.complete) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", number, " is of format 1, which does not hold all terms that it was made with"));
  }
  const size_t found = step.record.terms.learning_rates.size();
  const size_t rates = RatesOf(optimizer);
  if (found != rates) {
    return absl::DataLossError(absl::StrCat(path, " has ", found, " learning rates for step ",
                                            number, ", expected ", rates));
  }
  const absl::Status fits = CheckChanged(optimizer, step.record.terms.changed);
  if (fits.ok()) return fits;
  return absl::DataLossError(absl::StrCat(path, ", step ", number, ": ", fits.message()));
}

}  // namespace

JournalStart StartAfter(const ShardCheckpoint& checkpoint, const IncarnationBegins& begins,
                        uint32_t servers) {
  const uint64_t elements = Stripes(checkpoint.layout->size(), servers).SizeOf(0);
  return {checkpoint.incarnations.current(), checkpoint.step, begins, {0, servers}, elements,
          WidthsOf(*checkpoint.layout)};
}

absl::StatusOr<std::unique_ptr<JournalCursor>> JournalCursor::Open(FileSystem& files,
                                                                   std::string directory,
                                                                   JournalStart start) {
  auto segments = SegmentsIn(files, directory, start.place);
  if (!segments.ok()) return segments.status();
  auto cursor = absl::WrapUnique(new JournalCursor(files, std::move(directory), std::move(start)));
  std::reverse(segments->begin(), segments->end());
  cursor->segments_ = *std::move(segments);
  return cursor;
}

absl::StatusOr<absl::optional<JournaledStep>> JournalCursor::Next() {
  for (;;) {
    if (reader_ != nullptr) {
      auto next = NextOfSegment();
      if (!next.ok() || next->has_value()) return next;
    }
    if (segments_.empty()) return absl::optional<JournaledStep>();
    const absl::Status opened = OpenNext();
    if (!opened.ok()) return opened;
  }
}

absl::Status JournalCursor::OpenNext() {
  const SegmentName segment = segments_.back();
  segments_.pop_back();
  last_ = LastFound(start_.begins, segment.incarnation);
  const bool lost = last_.has_value() && segment.after >= *last_;
  if (segment.incarnation < start_.incarnation || lost) return absl::OkStatus();
  path_ = absl::StrCat(directory_, "/", segment.FileName());
  if (segment.after > reached_) return Gap(path_, segment.after.Next(), reached_);
  auto file = files_.Open(path_);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  reader_ = std::make_unique<JournalReader>(*file_, start_.elements, start_.widths);
  return absl::OkStatus();
}

// Skips the steps up to reached_.
absl::StatusOr<absl::optional<JournaledStep>> JournalCursor::NextOfSegment() {
  for (;;) {
    auto next = reader_->Next();
    if (!next.ok() && !absl::IsDataLoss(next.status())) return next;
    LOG_IF(WARNING, !next.ok()) << path_ << " ends with step " << reached_ << ": "
                                << next.status().message();
    const bool ends =
        !next.ok() || !next->has_value() || (last_.has_value() && (*next)->record.step > *last_);
    if (ends) {
      reader_ = nullptr;
      return absl::optional<JournaledStep>();
    }
    const Step found = (*next)->record.step;
    if (found <= reached_) continue;
    if (found != reached_.Next()) return Gap(path_, found, reached_);
    reached_ = found;
    return next;
  }
}

absl::StatusOr<Step> ReplayJournal(FileSystem& files, const std::string& directory,
                                   const JournalStart& start, const ShardCheckpoint& checkpoint,
                                   Step last, const StepReplay& replay) {
  const auto cursor = JournalCursor::Open(files, directory, start);
  if (!cursor.ok()) return cursor.status();
  JournalCursor& journal = **cursor;
  while (journal.reached() < last) {
    const auto step = journal.Next();
    absl::Status replayed = step.status();
    if (replayed.ok() && !step->has_value()) break;
    if (replayed.ok()) {
      replayed = CheckTerms(journal.path(), **step, checkpoint.optimizer);
    }
    if (replayed.ok()) replayed = replay(**step);
    if (absl::IsFailedPrecondition(replayed)) {
      return ForAnotherBuild(journal.path(), checkpoint.step, replayed.message());
    }
    if (!replayed.ok()) return replayed;
  }
  return journal.reached();
}

}  // namespace sluice
