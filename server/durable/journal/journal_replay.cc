#include "server/durable/journal/journal_replay.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/durable/journal/journal.h"

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
absl::Status CheckTerms(const std::string& path, const JournaledStep& step, size_t rates) {
  const uint64_t number = step.record.step.value();
  if (!step.complete) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", number, " is of format 1, which does not hold all terms that it was made with"));
  }
  const size_t found = step.record.terms.learning_rates.size();
  if (found == rates) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", found, " learning rates for step ", number,
                                          ", expected ", rates));
}

// Replays the segment's steps after `reached`, up to `last`, and advances `reached`. Each record
// has `rates` learning rates.
absl::Status ReplaySegment(const std::string& path, JournalReader& reader, size_t rates,
                           const absl::optional<Step>& last, Step* reached,
                           const ReplayStep& replay) {
  for (;;) {
    const auto next = reader.Next();
    if (!next.ok() && !absl::IsDataLoss(next.status())) return next.status();
    if (!next.ok()) {
      LOG(WARNING) << path << " ends with step " << *reached << ": " << next.status().message();
      return absl::OkStatus();
    }
    if (!next->has_value()) return absl::OkStatus();
    const JournaledStep& step = **next;
    if (step.record.step <= *reached) continue;
    if (last.has_value() && step.record.step > *last) return absl::OkStatus();
    if (step.record.step != reached->Next()) return Gap(path, step.record.step, *reached);
    absl::Status replayed = CheckTerms(path, step, rates);
    if (replayed.ok()) replayed = replay(step);
    if (!replayed.ok()) return replayed;
    *reached = step.record.step;
  }
}

}  // namespace

absl::StatusOr<Step> ReplayJournal(FileSystem& files, const std::string& directory,
                                   const IncarnationBegins& begins,
                                   const ShardCheckpoint& checkpoint, const ReplayStep& replay) {
  const auto segments = SegmentsIn(files, directory);
  if (!segments.ok()) return segments.status();
  Step reached = checkpoint.step;
  for (const SegmentName& segment : *segments) {
    const absl::optional<Step> last = LastFound(begins, segment.incarnation);
    const bool lost = last.has_value() && segment.after >= *last;
    if (segment.incarnation < checkpoint.incarnations.current() || lost) continue;
    const std::string path = absl::StrCat(directory, "/", segment.FileName());
    if (segment.after > reached) return Gap(path, segment.after.Next(), reached);
    const auto file = files.Open(path);
    if (!file.ok()) return file.status();
    JournalReader reader(**file, checkpoint.layout->size());
    const absl::Status replayed =
        ReplaySegment(path, reader, checkpoint.optimizer.groups.size() + 1, last, &reached, replay);
    if (absl::IsFailedPrecondition(replayed)) {
      return ForAnotherBuild(path, checkpoint.step, replayed.message());
    }
    if (!replayed.ok()) return replayed;
  }
  return reached;
}

}  // namespace sluice
