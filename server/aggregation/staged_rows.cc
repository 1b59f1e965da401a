#include "server/aggregation/staged_rows.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status BadRows(absl::string_view problem) {
  return MakeError(Reason::kBadArgument, absl::StrCat("the rows of the push ", problem));
}

}  // namespace

absl::Status StagedRows::AddIds(RowIds rows) {
  const absl::Status follows = CheckFollows(rows);
  if (!follows.ok()) return follows;
  row_bytes_ += RowBytes(rows.ids.size(), WidthOf(rows));
  if (row_bytes_ > announced_) {
    return BadRows(absl::StrCat("have ", row_bytes_, " bytes or more, and its header announced ",
                                announced_, "; count 8 for each id and 4 for each element"));
  }
  rows_ += rows.ids.size();
  if (rows.ids.empty()) return absl::OkStatus();
  if (!ids_.empty() && ids_.back().table == rows.table) {
    std::vector<RowId>& before = ids_.back().ids;
    before.insert(before.end(), rows.ids.begin(), rows.ids.end());
  } else {
    ids_.push_back(std::move(rows));
  }
  return absl::OkStatus();
}

absl::Status StagedRows::CheckFollows(const RowIds& rows) const {
  if (values_.has_value()) return BadRows("have ids after a chunk of rows; send all ids first");
  if (ids_.empty() || rows.ids.empty()) return absl::OkStatus();
  const RowIds& before = ids_.back();
  if (rows.table < before.table) {
    return BadRows(absl::StrCat("have ids of table ", rows.table, " after those of table ",
                                before.table, "; send the tables in the order of the layout"));
  }
  if (rows.table == before.table && rows.ids.front() <= before.ids.back()) {
    return BadRows(absl::StrCat("have the id ", rows.ids.front(), " after ", before.ids.back(),
                                "; sort them, and send each once"));
  }
  return absl::OkStatus();
}

// One range for each table. Their names are seen by nobody.
absl::Status StagedRows::EndIds() {
  std::vector<LayoutRange> ranges;
  uint64_t offset = 0;
  for (const RowIds& rows : ids_) {
    if (rows.ids.size() > std::numeric_limits<uint32_t>::max()) {
      return BadRows(absl::StrCat("have ", rows.ids.size(), " ids of one table, expected at most ",
                                  std::numeric_limits<uint32_t>::max()));
    }
    LayoutRange range;
    range.name = absl::StrCat(rows.table);
    range.shape = {static_cast<uint32_t>(rows.ids.size()), WidthOf(rows)};
    range.offset = offset;
    range.length = rows.ids.size() * WidthOf(rows);
    offset = range.end();
    ranges.push_back(std::move(range));
  }
  auto layout = Layout::Create(std::move(ranges));
  if (!layout.ok()) return BadRows(absl::StrCat("are too many: ", layout.status().message()));
  values_.emplace(std::make_shared<const Layout>(*std::move(layout)));
  return absl::OkStatus();
}

absl::Status StagedRows::Reserve(const TensorChunk& chunk) {
  if (ids_.empty()) {
    return MakeError(Reason::kBadChunk,
                     "a chunk lies behind the vector, and the push has no ids of rows; send them "
                     "before their elements");
  }
  if (!values_.has_value()) {
    const absl::Status ended = EndIds();
    if (!ended.ok()) return ended;
  }
  return values_->Reserve(chunk);
}

absl::Status StagedRows::CheckComplete() const {
  if (ids_.empty()) return absl::OkStatus();
  if (!values_.has_value()) return MakeError(Reason::kBadChunk, "all rows of the push are missing");
  const absl::Status complete = values_->CheckComplete();
  if (complete.ok()) return complete;
  return MakeError(Reason::kBadChunk,
                   absl::StrCat("of the rows of the push, ", complete.message()));
}

void StagedRows::Seal() {
  if (values_.has_value()) values_->Seal();
}

std::string StagedRows::ElementName(uint64_t element) const {
  for (const RowIds& rows : ids_) {
    const uint64_t elements = rows.ids.size() * WidthOf(rows);
    if (element >= elements) {
      element -= elements;
      continue;
    }
    return absl::StrCat("row ", rows.ids[element / WidthOf(rows)], " of ",
                        layout_->tables()[rows.table].name, ", element ", element % WidthOf(rows),
                        ",");
  }
  return "an element of a row";
}

}  // namespace sluice
