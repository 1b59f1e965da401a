// Reads a file of rows (rows_format.h) block by block, and checks every byte.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_ROWS_READER_H_
#define SLUICE_COMMON_CHECKPOINT_READING_ROWS_READER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint/reading/rows_format.h"
#include "common/checkpoint/reading/rows_header.h"
#include "common/checkpoint/saved_rows.h"
#include "common/encoding/checksum.h"
#include "common/storage/file_system.h"

namespace sluice {

// For one thread. It holds one block at a time. DATA_LOSS says what is wrong with the file; other
// errors are FileSystem's.
class RowsReader {
 public:
  // `file` outlives the reader.
  explicit RowsReader(const ReadableFile& file) : file_(file) {}

  // First, and once. The header is valid if it returns OK.
  absl::Status ReadHeader();
  const RowsHeader& header() const { return header_; }

  // Reads the next block, whose content is then in block(). False after the last: then the file is
  // whole, and checksum() is the file's.
  absl::StatusOr<bool> Next();
  const RowsBlock& block() const { return block_; }
  uint64_t checksum() const { return checksum_; }
  // Of the blocks that were read.
  const RowsCounts& counts() const { return counts_; }

 private:
  absl::StatusOr<std::string> ReadText(uint64_t size);
  // Reads the checksum that follows, and compares it with that of `bytes`.
  absl::Status CheckPart(absl::string_view bytes);
  absl::StatusOr<uint64_t> PayloadOf(absl::string_view head) const;
  void Decode(absl::string_view head, absl::string_view payload);
  absl::Status CheckOrder(const RowsBlock& before) const;
  absl::Status CheckIds() const;
  absl::Status CheckSteps() const;
  absl::Status ReadEnd(absl::string_view begin);

  const ReadableFile& file_;
  uint64_t offset_ = 0;
  Checksummer sums_;  // of the checksums
  RowsHeader header_;
  RowsBlock block_;
  RowsCounts counts_;
  uint64_t checksum_ = 0;
};

// Calls act(row) for each row and waiting id of a block, which is of a table with so many elements.
template <typename Act>
void ForEachStored(const RowsBlock& block, uint64_t row_elements, Act act) {
  uint64_t offset = 0;
  for (size_t i = 0; i < block.ids.size(); ++i) {
    const uint64_t elements = block.touches[i] > 0 ? 0 : row_elements;
    act(StoredRow{block.ids[i], Step(block.touched[i]), block.touches[i],
                  absl::MakeConstSpan(block.elements).subspan(offset, elements)});
    offset += elements;
  }
}

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_ROWS_READER_H_
