#include "worker/client/worker_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "worker/client/cached_rows.h"
#include "worker/connection/call_retry.h"

namespace sluice {
namespace {

std::string Named(Step step, Incarnation incarnation) {
  return absl::StrCat("step ", step.value(), " of incarnation ", incarnation.value());
}

bool SameRequest(const PullRequest& a, const PullRequest& b) {
  return a.session == b.session && a.min_step == b.min_step;
}

std::vector<RowPull::Part> UnreadParts(const std::vector<RowIds>& rows) {
  std::vector<RowPull::Part> parts;
  for (std::vector<RowIds>& part : PartsOf(rows, kMaxPulledIds)) {
    parts.push_back({std::move(part), PullRequest(), nullptr, Step()});
  }
  return parts;
}

}  // namespace

void WorkerRows::Begin(const RowCacheOptions& options) {
  if (options.max_age == 0 || tables().empty() || cache_ != nullptr) return;
  cache_ = std::make_unique<RowCache>(tables(), options);
}

PullRequest WorkerRows::Request() const {
  PullRequest request;
  request.session = session_.welcome().session;
  // A server that came back may not reach the step of the parameters for a long time.
  request.min_step =
      session_.held().incarnation == session_.welcome().incarnation ? session_.held().step : Step();
  return request;
}

void WorkerRows::StartPart(RowPull::Part& part) {
  part.request = Request();
  part.pull = session_.StartRowPull(part.request, part.rows);
  part.number = session_.pulls();
}

// A session's end drops its pulls. Several servers take a session's pulls one after the other: the
// next drops those before it.
bool WorkerRows::IsDropped(const RowPull::Part& part) const {
  if (part.request.session != session_.welcome().session) return true;
  return session_.welcome().servers.size() > 1 && part.number != session_.pulls();
}

RowPull WorkerRows::Start(const std::vector<RowIds>& rows) {
  RowPull pull;
  pull.rows = rows;
  const bool sound = CheckTables(rows).ok();
  const bool cached = sound && cache_ != nullptr;
  if (cached) cache_->Use(session_.welcome().incarnation);
  pull.parts = UnreadParts(cached ? NotIn(*cache_, rows, Request().min_step) : rows);
  if (!pull.parts.empty() && sound && !session_.left()) StartPart(pull.parts.front());
  return pull;
}

absl::Status WorkerRows::CheckTables(const std::vector<RowIds>& rows) const {
  for (const RowIds& of_table : rows) {
    if (of_table.table < tables().size()) continue;
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat("rows of table ", of_table.table, " are pulled, and the model has ",
                     tables().size(), " tables, which are counted from 0"));
  }
  return absl::OkStatus();
}

uint64_t WorkerRows::SizeOf(const std::vector<RowPull::Part>& parts) const {
  uint64_t elements = 0;
  for (const RowPull::Part& part : parts) elements += ElementsOf(part.rows, tables());
  return elements;
}

absl::Status WorkerRows::CheckFinish(const RowPull& pull, absl::Span<float> to) const {
  if (session_.left()) {
    return absl::FailedPreconditionError(
        "rows are pulled after this worker has left the job; pull them before it leaves");
  }
  const absl::Status known = CheckTables(pull.rows);
  if (!known.ok()) return known;
  const uint64_t expected = ElementsOf(pull.rows, tables());
  if (to.size() == expected) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("the rows to pull have ", expected,
                                " elements, and there is memory for ", to.size()));
}

absl::Status WorkerRows::Finish(RowPull pull, absl::Span<float> to) {
  const absl::Status sound = CheckFinish(pull, to);
  if (!sound.ok()) return sound;
  for (const RowIds& of_table : pull.rows) counts_.given += of_table.ids.size();
  const bool all_sent = SizeOf(pull.parts) == to.size();
  return all_sent ? ReadParts(pull.parts, to) : ReadBesideCache(pull, to);
}

absl::Status WorkerRows::ReadParts(std::vector<RowPull::Part>& parts, absl::Span<float> to) {
  for (RowPull::Part& part : parts) {
    const absl::Span<float> rows = to.first(ElementsOf(part.rows, tables()));
    if (part.pull == nullptr || IsDropped(part)) StartPart(part);
    const absl::Status read = ReadPart(part, rows);
    if (!read.ok()) return read;
    part.pull = nullptr;
    for (const RowIds& of_table : part.rows) counts_.sent += of_table.ids.size();
    if (cache_ != nullptr) Keep(part, rows);
    to.remove_prefix(rows.size());
  }
  return absl::OkStatus();
}

absl::Status WorkerRows::ReadWhole(std::vector<RowPull::Part>& parts, std::vector<float>* to) {
  to->resize(SizeOf(parts));
  return ReadParts(parts, absl::MakeSpan(*to));
}

absl::Status WorkerRows::ReadPart(RowPull::Part& part, absl::Span<float> to) {
  for (int failures = 0;;) {
    const absl::Status read = ReadOnce(part, to);
    if (read.ok()) return read;
    if (!absl::IsDeadlineExceeded(read) && failures++ == kMaxRejoins) return read;
    if (IsLost(read)) {
      LOG(WARNING) << session_.worker() << " joins again: " << read.message();
      const absl::Status rejoined = session_.Rejoin();
      if (!rejoined.ok()) return rejoined;
    } else if (!IsCorrupt(read) && !absl::IsDeadlineExceeded(read)) {
      return read;
    }
    StartPart(part);
  }
}

// Whether rows that came with that header fit the parameters that this worker holds. Where it uses
// rows again, they may be as old when they come.
bool WorkerRows::AreLateEnough(const PullHeader& rows) const {
  if (rows.incarnation != session_.welcome().incarnation) return false;
  const PullHeader& held = session_.held();
  if (rows.incarnation != held.incarnation || rows.step >= held.step) return true;
  return cache_ != nullptr && held.step.value() - rows.step.value() <= cache_->max_age();
}

// Rows that were asked for before this worker took its latest step, or in an earlier session, may
// be of an earlier step or of a server's earlier incarnation: then they are asked for once more.
absl::Status WorkerRows::ReadOnce(RowPull::Part& part, absl::Span<float> to) {
  auto header = part.pull->Read(to);
  if (header.ok() && !AreLateEnough(*header) && !SameRequest(part.request, Request())) {
    StartPart(part);
    header = part.pull->Read(to);
  }
  if (header.ok()) part.step = header->step;
  if (!header.ok() || AreLateEnough(*header)) return header.status();
  const std::string found = absl::StrCat(
      "the server sent rows of ", Named(header->step, header->incarnation), ", expected ",
      Named(part.request.min_step, session_.welcome().incarnation), " or later");
  if (header->incarnation != session_.welcome().incarnation) return absl::UnavailableError(found);
  return absl::InternalError(found);
}

void WorkerRows::Keep(const RowPull::Part& part, absl::Span<const float> rows) {
  cache_->Use(session_.welcome().incarnation);
  for (const RowIds& of_table : part.rows) {
    const uint64_t size = of_table.ids.size() * tables()[of_table.table].width;
    cache_->Put(of_table.table, of_table.ids, rows.first(size), part.step);
    rows.remove_prefix(size);
  }
}

// What the cache had when the pull began may be too old by now, or have lost its place: that is
// pulled after all.
absl::Status WorkerRows::ReadBesideCache(RowPull& pull, absl::Span<float> to) {
  std::vector<float> sent;
  const absl::Status read = ReadWhole(pull.parts, &sent);
  if (!read.ok()) return read;
  cache_->Use(session_.welcome().incarnation);
  const RowGaps gaps =
      FillRows(pull.rows, RowsSent(pull.parts, sent), *cache_, Request().min_step, to);
  std::vector<RowPull::Part> parts = UnreadParts(gaps.rows);
  const absl::Status filled = ReadWhole(parts, &sent);
  if (!filled.ok()) return filled;
  auto from = sent.begin();
  for (const absl::Span<float> place : gaps.places) {
    std::copy_n(from, place.size(), place.begin());
    from += static_cast<ptrdiff_t>(place.size());
  }
  return absl::OkStatus();
}

void WorkerRows::LogReuse() const {
  if (cache_ == nullptr) return;
  LOG(INFO) << session_.worker() << " used " << counts_.given - counts_.sent << " of "
            << counts_.given << " rows again that it had pulled before";
}

}  // namespace sluice
