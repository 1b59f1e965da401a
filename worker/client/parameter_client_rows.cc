// The part of ParameterClient that pulls rows.

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "worker/client/cached_rows.h"
#include "worker/client/parameter_client.h"
#include "worker/connection/call_retry.h"

namespace sluice {
namespace {

std::string Named(Step step, Incarnation incarnation) {
  return absl::StrCat("step ", step.value(), " of incarnation ", incarnation.value());
}

bool SameRequest(const PullRequest& a, const PullRequest& b) {
  return a.session == b.session && a.min_step == b.min_step;
}

// Whether each value is sent, nearly as it is.
bool SuitsRows(const Encoding& encoding) {
  switch (encoding.transform) {
    case ValueTransform::kFloat32:
    case ValueTransform::kFloat16:
    case ValueTransform::kBfloat16:
    case ValueTransform::kInt8:
      return true;
    default:
      return false;
  }
}

std::vector<RowPull::Part> UnreadParts(const std::vector<RowIds>& rows) {
  std::vector<RowPull::Part> parts;
  for (std::vector<RowIds>& part : PartsOf(rows, kMaxPulledIds)) {
    parts.push_back({std::move(part), PullRequest(), nullptr, Step()});
  }
  return parts;
}

}  // namespace

void ParameterClient::SetRows(RowGradients rows) {
  const EncodingChoice& choice = encoding_.choice;
  if (!choice.automatic() && SuitsRows(choice.encoding)) {
    for (RowGradient& gradient : rows) gradient.encoding = choice.encoding;
  }
  rows_ = std::make_shared<const RowGradients>(std::move(rows));
}

PullRequest ParameterClient::RowRequest() const {
  PullRequest request;
  request.session = welcome_.session;
  // A server that came back may not reach the step of the parameters for a long time.
  request.min_step = incarnation_ == welcome_.incarnation ? step_ : Step();
  return request;
}

void ParameterClient::StartPart(RowPull::Part& part) {
  part.request = RowRequest();
  part.pull = connection_->StartRowPull(part.request, part.rows);
  part.number = ++pulls_;
}

// A session's end drops its pulls. Several servers take a session's pulls one after the other: the
// next drops those before it.
bool ParameterClient::IsDropped(const RowPull::Part& part) const {
  if (part.request.session != welcome_.session) return true;
  return welcome_.servers.size() > 1 && part.number != pulls_;
}

RowPull ParameterClient::StartRows(const std::vector<RowIds>& rows) {
  RowPull pull;
  pull.rows = rows;
  const bool sound = CheckTables(rows).ok();
  const bool cached = sound && row_cache_ != nullptr;
  if (cached) row_cache_->Use(welcome_.incarnation);
  pull.parts = UnreadParts(cached ? NotIn(*row_cache_, rows, RowRequest().min_step) : rows);
  if (!pull.parts.empty() && sound && !left_) StartPart(pull.parts.front());
  return pull;
}

absl::Status ParameterClient::PullRows(const std::vector<RowIds>& rows, absl::Span<float> to) {
  return FinishRows(StartRows(rows), to);
}

absl::Status ParameterClient::CheckTables(const std::vector<RowIds>& rows) const {
  for (const RowIds& of_table : rows) {
    if (of_table.table < tables().size()) continue;
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat("rows of table ", of_table.table, " are pulled, and the model has ",
                     tables().size(), " tables, which are counted from 0"));
  }
  return absl::OkStatus();
}

uint64_t ParameterClient::SizeOf(const std::vector<RowPull::Part>& parts) const {
  uint64_t elements = 0;
  for (const RowPull::Part& part : parts) elements += ElementsOf(part.rows, tables());
  return elements;
}

absl::Status ParameterClient::CheckFinish(const RowPull& pull, absl::Span<float> to) const {
  if (left_) {
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

absl::Status ParameterClient::FinishRows(RowPull pull, absl::Span<float> to) {
  const absl::Status sound = CheckFinish(pull, to);
  if (!sound.ok()) return sound;
  for (const RowIds& of_table : pull.rows) row_counts_.given += of_table.ids.size();
  const bool all_sent = SizeOf(pull.parts) == to.size();
  return all_sent ? ReadParts(pull.parts, to) : ReadBesideCache(pull, to);
}

absl::Status ParameterClient::ReadParts(std::vector<RowPull::Part>& parts, absl::Span<float> to) {
  for (RowPull::Part& part : parts) {
    const absl::Span<float> rows = to.first(ElementsOf(part.rows, tables()));
    if (part.pull == nullptr || IsDropped(part)) StartPart(part);
    const absl::Status read = ReadPart(part, rows);
    if (!read.ok()) return read;
    part.pull = nullptr;
    for (const RowIds& of_table : part.rows) row_counts_.sent += of_table.ids.size();
    if (row_cache_ != nullptr) KeepRows(part, rows);
    to.remove_prefix(rows.size());
  }
  return absl::OkStatus();
}

absl::Status ParameterClient::ReadWhole(std::vector<RowPull::Part>& parts, std::vector<float>* to) {
  to->resize(SizeOf(parts));
  return ReadParts(parts, absl::MakeSpan(*to));
}

absl::Status ParameterClient::ReadPart(RowPull::Part& part, absl::Span<float> to) {
  for (int failures = 0;;) {
    const absl::Status read = ReadOnce(part, to);
    if (read.ok()) return read;
    if (!absl::IsDeadlineExceeded(read) && failures++ == kMaxRejoins) return read;
    if (IsLost(read)) {
      LOG(WARNING) << Shown(request_.worker) << " joins again: " << read.message();
      const absl::Status rejoined = Rejoin();
      if (!rejoined.ok()) return rejoined;
    } else if (!IsCorrupt(read) && !absl::IsDeadlineExceeded(read)) {
      return read;
    }
    StartPart(part);
  }
}

// Whether rows that came with that header fit the parameters that this worker holds. Where it uses
// rows again, they may be as old when they come.
bool ParameterClient::AreLateEnough(const PullHeader& rows) const {
  if (rows.incarnation != welcome_.incarnation) return false;
  if (rows.incarnation != incarnation_ || rows.step >= step_) return true;
  return row_cache_ != nullptr && step_.value() - rows.step.value() <= cache_options_.max_age;
}

// Rows that were asked for before this worker took its latest step, or in an earlier session, may
// be of an earlier step or of a server's earlier incarnation: then they are asked for once more.
absl::Status ParameterClient::ReadOnce(RowPull::Part& part, absl::Span<float> to) {
  auto header = part.pull->Read(to);
  if (header.ok() && !AreLateEnough(*header) && !SameRequest(part.request, RowRequest())) {
    StartPart(part);
    header = part.pull->Read(to);
  }
  if (header.ok()) part.step = header->step;
  if (!header.ok() || AreLateEnough(*header)) return header.status();
  const std::string found =
      absl::StrCat("the server sent rows of ", Named(header->step, header->incarnation),
                   ", expected ", Named(part.request.min_step, welcome_.incarnation), " or later");
  if (header->incarnation != welcome_.incarnation) return absl::UnavailableError(found);
  return absl::InternalError(found);
}

// ---- The cache ----

absl::Status ParameterClient::FitRowCache() {
  if (cache_options_.max_age == 0 || request_.layout.tables().empty()) return absl::OkStatus();
  const ConsistencyMode mode = welcome_.consistency.mode;
  if (mode == ConsistencyMode::kSync || mode == ConsistencyMode::kBackup) {
    connection_->Leave(welcome_.session, {}).IgnoreError();
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat("--row-cache=", cache_options_.max_age,
                     " with --mode=", ConsistencyModeName(mode),
                     ", in which all rows are of the worker's step; leave it out, or choose "
                     "async, ssp or bounded"));
  }
  if (row_cache_ == nullptr) {
    row_cache_ = std::make_unique<RowCache>(request_.layout.tables(), cache_options_);
  }
  return absl::OkStatus();
}

void ParameterClient::KeepRows(const RowPull::Part& part, absl::Span<const float> rows) {
  row_cache_->Use(welcome_.incarnation);
  for (const RowIds& of_table : part.rows) {
    const uint64_t size = of_table.ids.size() * tables()[of_table.table].width;
    row_cache_->Put(of_table.table, of_table.ids, rows.first(size), part.step);
    rows.remove_prefix(size);
  }
}

// What the cache had when the pull began may be too old by now, or have lost its place: that is
// pulled after all.
absl::Status ParameterClient::ReadBesideCache(RowPull& pull, absl::Span<float> to) {
  std::vector<float> sent;
  const absl::Status read = ReadWhole(pull.parts, &sent);
  if (!read.ok()) return read;
  row_cache_->Use(welcome_.incarnation);
  const RowGaps gaps =
      FillRows(pull.rows, RowsSent(pull.parts, sent), *row_cache_, RowRequest().min_step, to);
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

}  // namespace sluice
