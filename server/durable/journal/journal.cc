#include "server/durable/journal/journal.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/thread_name.h"
#include "common/checkpoint/numbered_name.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/format/saved_state.h"
#include "server/durable/journal/journal_format.h"
#include "server/durable/journal/row_sums_format.h"

namespace sluice {
namespace {

constexpr char kPrefix[] = "journal-";
// The time between two attempts to write.
constexpr absl::Duration kPatience = absl::Milliseconds(200);
// The exit code of a process that could not sync its journal.
constexpr int kNotSynced = 6;

}  // namespace

void EndUnsynced(const absl::Status& why) {
  LOG(ERROR) << why.message() << "; start the server again";
  std::_Exit(kNotSynced);
}

std::string SegmentName::FileName() const {
  return NumberedName(kPrefix, {incarnation, after}, PlaceSuffix(place.stripe, place.stripes));
}

absl::optional<SegmentName> SegmentName::Parse(absl::string_view file_name) {
  SegmentName name;
  const auto found = FindPlaceSuffix(file_name);
  if (found.has_value()) name.place = {found->first, found->second};
  const auto numbers =
      ParseNumberedName(kPrefix, file_name, PlaceSuffix(name.place.stripe, name.place.stripes));
  if (!numbers.has_value()) return absl::nullopt;
  name.incarnation = numbers->first;
  name.after = numbers->second;
  return name;
}

bool operator<(const SegmentName& a, const SegmentName& b) {
  return std::make_pair(a.incarnation, a.after) < std::make_pair(b.incarnation, b.after);
}

absl::StatusOr<std::vector<SegmentName>> SegmentsIn(FileSystem& files,
                                                    const std::string& directory) {
  const auto names = files.List(directory);
  if (!names.ok()) return names.status();
  std::vector<SegmentName> segments;
  for (const std::string& name : *names) {
    const auto segment = SegmentName::Parse(name);
    if (segment.has_value()) segments.push_back(*segment);
  }
  std::sort(segments.begin(), segments.end());
  return segments;
}

absl::StatusOr<std::vector<SegmentName>> SegmentsIn(FileSystem& files, const std::string& directory,
                                                    StripePlace place) {
  auto segments = SegmentsIn(files, directory);
  if (!segments.ok()) return segments;
  const auto others =
      std::remove_if(segments->begin(), segments->end(),
                     [&](const SegmentName& segment) { return !(segment.place == place); });
  segments->erase(others, segments->end());
  return segments;
}

void RemoveSegmentsUpTo(FileSystem& files, const std::string& directory, StripePlace place,
                        Incarnation incarnation, Step step) {
  const auto segments = SegmentsIn(files, directory, place);
  if (!segments.ok()) return;
  for (size_t i = 0; i + 1 < segments->size(); ++i) {
    const SegmentName& next = (*segments)[i + 1];
    const bool same_incarnation = next.incarnation == incarnation;
    if (next.incarnation > incarnation || (same_incarnation && next.after > step)) return;
    files.Remove(directory + "/" + (*segments)[i].FileName()).IgnoreError();
  }
}

Journal::Journal(FileSystem& files, std::string directory, Incarnation incarnation,
                 JournalListener listener, StripePlace place)
    : files_(files),
      directory_(std::move(directory)),
      incarnation_(incarnation),
      place_(place),
      listener_(std::move(listener)),
      thread_([this] {
        NameThisThread("sluice-journal");
        Work();
      }) {}

Journal::~Journal() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
    work_.SignalAll();
  }
  end_.Raise();
  thread_.join();
}

void Journal::Append(const StepRecord& record, absl::Span<const float> sum,
                     absl::Span<const TableSums> rows) {
  Entry entry;
  entry.step = record.step;
  entry.state = EncodeSavedStep(record, CountsOf(rows));
  entry.rows = EncodeRowSums(rows);
  {
    absl::MutexLock lock(&mu_);
    entry.sum = std::move(spare_);
    spare_ = FloatBuffer();
    entry.begins_segment = std::exchange(begins_segment_, false);
  }
  if (entry.sum.size() != sum.size()) entry.sum = FloatBuffer(sum.size());
  std::copy(sum.begin(), sum.end(), entry.sum.span().begin());
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  entries_.push_back(std::move(entry));
  work_.Signal();
}

void Journal::Flush() {
  absl::MutexLock lock(&mu_);
  while (!Settled()) settled_.Wait(&mu_);
}

void Journal::BeginSegment() {
  absl::MutexLock lock(&mu_);
  begins_segment_ = true;
}

void Journal::Work() {
  for (;;) {
    std::deque<Entry> entries = TakeEntries();
    if (entries.empty()) return;
    const Step last = entries.back().step;
    const bool durable = MakeDurable(entries);
    // Before anybody is told: the next pushes may need the memory.
    FreeEntries(std::move(entries));
    if (durable) {
      ReportJournalError(absl::OkStatus());
      listener_.durable(last);
    }
    FinishBatch(durable);
    if (!durable) return;
  }
}

// Waits for entries and returns all of them; none at the end.
std::deque<Journal::Entry> Journal::TakeEntries() {
  std::deque<Entry> entries;
  absl::MutexLock lock(&mu_);
  while (!ends_ && entries_.empty()) work_.Wait(&mu_);
  entries.swap(entries_);
  busy_ = !entries.empty();
  return entries;
}

void Journal::FreeEntries(std::deque<Entry> entries) {
  absl::MutexLock lock(&mu_);
  spare_ = std::move(entries.back().sum);
}

void Journal::FinishBatch(bool durable) {
  absl::MutexLock lock(&mu_);
  busy_ = false;
  settled_.SignalAll();
  if (durable) return;
  // A later step cannot be replayed without these.
  stopped_ = true;
  entries_.clear();
}

// Returns whether they are durable.
bool Journal::MakeDurable(const std::deque<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (!WriteWhenPossible(entry)) return false;
  }
  return NoteSync(SyncSteps()).ok();
}

absl::Status Journal::SyncSteps() {
  const SpanTimer timer(listener_.on_span, RealClock(), ServerSpan::kJournalSync);
  return segment_->Sync();
}

// Returns whether the entry is written. It tries until it is, unless the journal ends or a sync
// fails.
bool Journal::WriteWhenPossible(const Entry& entry) {
  for (;;) {
    const absl::Status written = Write(entry);
    if (written.ok()) return true;
    if (sync_failed_ || !WaitOutJournalError(written)) return false;
  }
}

// After an error, a part of the entry may be in the file; the next attempt cuts it off.
absl::Status Journal::Write(const Entry& entry) {
  if (segment_ == nullptr || entry.begins_segment) {
    const absl::Status opened = OpenSegment(Step(entry.step.value() - 1));
    if (!opened.ok()) return opened;
  }
  const JournalFrame frame = FrameOf(entry.state, entry.sum.span(), entry.rows);
  absl::Status written = segment_->Truncate(segment_bytes_);
  uint64_t bytes = 0;
  for (const absl::string_view part :
       {absl::string_view(frame.head), BytesOf(entry.sum.span()), absl::string_view(entry.rows),
        absl::string_view(frame.tail)}) {
    if (written.ok() && !part.empty()) written = segment_->Append(part);
    bytes += part.size();
  }
  if (!written.ok()) return written;
  segment_bytes_ += bytes;
  return absl::OkStatus();
}

// Syncs the segment before it too.
absl::Status Journal::OpenSegment(Step after) {
  if (segment_ != nullptr) {
    const absl::Status synced = NoteSync(segment_->Sync());
    if (!synced.ok()) return synced;
  }
  auto file = files_.Create(directory_ + "/" + SegmentName{incarnation_, after, place_}.FileName());
  if (!file.ok()) return file.status();
  const absl::Status synced = NoteSync(files_.SyncDirectory(directory_));
  if (!synced.ok()) return synced;
  segment_ = *std::move(file);
  segment_bytes_ = 0;
  return absl::OkStatus();
}

// A failed sync must not be repeated, see WritableFile.
absl::Status Journal::NoteSync(const absl::Status& synced) {
  if (!synced.ok()) {
    sync_failed_ = true;
    listener_.fatal(synced);
  }
  return synced;
}

void Journal::ReportJournalError(const absl::Status& status) {
  bool news = false;
  {
    absl::MutexLock lock(&mu_);
    news = journal_error_.ok() != status.ok();
    journal_error_ = status;
    settled_.SignalAll();
  }
  if (news) listener_.journal_error(status);
}

// Returns whether to try again.
bool Journal::WaitOutJournalError(const absl::Status& status) {
  ReportJournalError(status);
  return !end_.WaitFor(kPatience);
}

}  // namespace sluice
