// The rows that a pull wants. They are read from a snapshot chunk by chunk, just before each chunk
// is sent, so a slow reader makes the server hold one chunk only.

#ifndef SLUICE_SERVER_RPC_WANTED_ROWS_H_
#define SLUICE_SERVER_RPC_WANTED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/wire/layout.h"
#include "server/snapshots/row_snapshot.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Externally synchronized.
class WantedRows {
 public:
  static constexpr uint64_t kMostIds = 400'000;  // of a pull, in all tables

  WantedRows() = default;

  // BAD_ARGUMENT if the layout has no tables, if tables or ids are not ascending or not known, or
  // if there are more than kMostIds. `layout` is not null.
  static absl::StatusOr<WantedRows> Create(const v1::PullRowsRequest& request,
                                           std::shared_ptr<const Layout> layout);

  // BAD_ARGUMENT if one of them is of another server.
  absl::Status CheckHeldBy(const RowSnapshot& rows) const;

  bool done() const { return entry_ == rows_.size(); }
  // The elements of all rows.
  uint64_t size() const { return size_; }
  // Those that Next() has returned.
  uint64_t offset() const { return offset_; }

  // Reads the next rows: as many as have at most kChunkElements. Not if done().
  std::vector<float> Next(const RowSnapshot& from);

 private:
  WantedRows(std::vector<RowIds> rows, std::shared_ptr<const Layout> layout);

  // Rows of one table that belong to the next chunk.
  struct Part {
    uint32_t table;
    absl::Span<const RowId> ids;
    uint64_t elements;
  };
  Part TakePart(uint64_t room);
  uint64_t WidthOf(const RowIds& rows) const { return layout_->tables()[rows.table].width; }

  std::shared_ptr<const Layout> layout_;
  std::vector<RowIds> rows_;  // none is empty
  uint64_t size_ = 0;
  size_t entry_ = 0;  // of rows_; the next row is of it
  size_t row_ = 0;    // within the entry
  uint64_t offset_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_WANTED_ROWS_H_
