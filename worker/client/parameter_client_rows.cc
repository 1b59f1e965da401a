// The part of ParameterClient that pulls rows.

#include <glog/logging.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
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
}

RowPull ParameterClient::StartRows(const std::vector<RowIds>& rows) {
  RowPull pull;
  for (std::vector<RowIds>& part : PartsOf(rows, kMaxPulledIds)) {
    pull.parts.push_back({std::move(part), PullRequest(), nullptr});
  }
  if (!pull.parts.empty() && RowElements(rows).ok() && !left_) StartPart(pull.parts.front());
  return pull;
}

absl::Status ParameterClient::PullRows(const std::vector<RowIds>& rows, absl::Span<float> to) {
  return FinishRows(StartRows(rows), to);
}

absl::StatusOr<uint64_t> ParameterClient::RowElements(const std::vector<RowIds>& rows) const {
  const std::vector<TableSpec>& tables = request_.layout.tables();
  uint64_t elements = 0;
  for (const RowIds& of_table : rows) {
    if (of_table.table >= tables.size()) {
      return MakeError(
          Reason::kBadArgument,
          absl::StrCat("rows of table ", of_table.table, " are pulled, and the model has ",
                       tables.size(), " tables, which are counted from 0"));
    }
    elements += of_table.ids.size() * tables[of_table.table].width;
  }
  return elements;
}

absl::Status ParameterClient::CheckFinish(const RowPull& pull, absl::Span<float> to) const {
  if (left_) {
    return absl::FailedPreconditionError(
        "rows are pulled after this worker has left the job; pull them before it leaves");
  }
  uint64_t expected = 0;
  for (const RowPull::Part& part : pull.parts) {
    const auto elements = RowElements(part.rows);
    if (!elements.ok()) return elements.status();
    expected += *elements;
  }
  if (to.size() == expected) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("the rows to pull have ", expected,
                                " elements, and there is memory for ", to.size()));
}

absl::Status ParameterClient::FinishRows(RowPull pull, absl::Span<float> to) {
  const absl::Status sound = CheckFinish(pull, to);
  if (!sound.ok()) return sound;
  for (RowPull::Part& part : pull.parts) {
    const uint64_t size = *RowElements(part.rows);
    if (part.pull == nullptr) StartPart(part);
    const absl::Status read = ReadPart(part, to.first(size));
    if (!read.ok()) return read;
    part.pull = nullptr;
    to.remove_prefix(size);
  }
  return absl::OkStatus();
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

// Whether rows that came with that header fit the parameters that this worker holds.
bool ParameterClient::AreLateEnough(const PullHeader& rows) const {
  if (rows.incarnation != welcome_.incarnation) return false;
  return rows.incarnation != incarnation_ || rows.step >= step_;
}

// Rows that were asked for before this worker took its latest step, or in an earlier session, may
// be of an earlier step or of a server's earlier incarnation: then they are asked for once more.
absl::Status ParameterClient::ReadOnce(RowPull::Part& part, absl::Span<float> to) {
  auto header = part.pull->Read(to);
  if (header.ok() && !AreLateEnough(*header) && !SameRequest(part.request, RowRequest())) {
    StartPart(part);
    header = part.pull->Read(to);
  }
  if (!header.ok() || AreLateEnough(*header)) return header.status();
  const std::string found =
      absl::StrCat("the server sent rows of ", Named(header->step, header->incarnation),
                   ", expected ", Named(part.request.min_step, welcome_.incarnation), " or later");
  if (header->incarnation != welcome_.incarnation) return absl::UnavailableError(found);
  return absl::InternalError(found);
}

}  // namespace sluice
