#include "server/rpc/wanted_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

static_assert(TableSpec::kMaxWidth <= kChunkElements, "a chunk has at least one row");

// Before anything is allocated for the ids.
absl::Status CheckWanted(const v1::PullRowsRequest& request, const Layout& layout) {
  if (layout.tables().empty()) {
    return MakeError(Reason::kBadArgument,
                     "the model has no tables; pull its parameters with PullParams");
  }
  uint64_t ids = 0;
  const v1::RowIds* before = nullptr;
  for (const v1::RowIds& rows : request.rows()) {
    if (before != nullptr && rows.table() <= before->table()) {
      return MakeError(
          Reason::kBadArgument,
          absl::StrCat("the request has ids of table ", rows.table(), " after those of table ",
                       before->table(), "; send the tables in the order of the layout, each once"));
    }
    before = &rows;
    ids += rows.ids().size() / sizeof(RowId);
  }
  if (ids <= WantedRows::kMostIds) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("the request has ", ids, " ids, expected at most ",
                                WantedRows::kMostIds, "; send several requests"));
}

}  // namespace

absl::StatusOr<WantedRows> WantedRows::Create(const v1::PullRowsRequest& request,
                                              std::shared_ptr<const Layout> layout) {
  const absl::Status wanted = CheckWanted(request, *layout);
  if (!wanted.ok()) return wanted;
  std::vector<RowIds> rows;
  for (const v1::RowIds& message : request.rows()) {
    auto ids = FromProto(message, *layout);
    if (!ids.ok()) return ids.status();
    if (!ids->ids.empty()) rows.push_back(*std::move(ids));
  }
  return WantedRows(std::move(rows), std::move(layout));
}

WantedRows::WantedRows(std::vector<RowIds> rows, std::shared_ptr<const Layout> layout)
    : layout_(std::move(layout)), rows_(std::move(rows)) {
  for (const RowIds& of_table : rows_) size_ += of_table.ids.size() * WidthOf(of_table);
}

absl::Status WantedRows::CheckHeldBy(const RowSnapshot& rows) const {
  for (const RowIds& of_table : rows_) {
    for (const RowId id : of_table.ids) {
      if (!rows.Holds(id)) return RowOfAnotherServer(layout_->tables()[of_table.table], id);
    }
  }
  return absl::OkStatus();
}

std::vector<float> WantedRows::Next(const RowSnapshot& from) {
  std::vector<float> chunk(std::min<uint64_t>(kChunkElements, size_ - offset_));
  uint64_t filled = 0;
  while (!done()) {
    const Part part = TakePart(chunk.size() - filled);
    if (part.ids.empty()) break;
    from.Read(part.table, part.ids, absl::MakeSpan(chunk).subspan(filled, part.elements));
    filled += part.elements;
  }
  chunk.resize(filled);
  offset_ += filled;
  return chunk;
}

WantedRows::Part WantedRows::TakePart(uint64_t room) {
  const RowIds& rows = rows_[entry_];
  const uint64_t width = WidthOf(rows);
  const size_t count = std::min<uint64_t>(rows.ids.size() - row_, room / width);
  const Part part = {rows.table, absl::MakeConstSpan(rows.ids).subspan(row_, count), count * width};
  row_ += count;
  if (row_ == rows.ids.size()) {
    ++entry_;
    row_ = 0;
  }
  return part;
}

}  // namespace sluice
