// The bytes of a journal's segment: one record per step, one after the other. Each record is
//
//   8  "SLUICEJ2"; the last byte is the number of the format
//   8  length of the state in bytes
//   8  number of elements in the sum
//   8  format 3 only: number of bytes of the rows
//   8  XXH3-64 of the bytes of the record before it
//      the state: a SavedStep (proto/sluice/v1/durable.proto)
//      the sum of the step's gradients, float32
//      format 3 only: the sums of the rows' gradients (row_sums_format.h)
//   8  XXH3-64 of state, sum and rows
//
// Numbers are little-endian. Only steps that touch rows of tables have format 3. Records of format
// 1 differ from those of format 2 only in their SavedStep, which lacks the clip norm and the
// checksum of what the step made.

#ifndef SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_FORMAT_H_
#define SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_FORMAT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/storage/file_system.h"
#include "common/tensor/float_buffer.h"
#include "server/state/step_journal.h"
#include "server/state/table_sums.h"

namespace sluice {

// A step that was read from a journal.
struct JournaledStep {
  StepRecord record;
  FloatBuffer sum;              // empty without gradients
  std::vector<TableSums> rows;  // in the order of the tables; none without gradients
  // Whether the record has all terms of the step. Otherwise the step cannot be made again.
  bool complete = true;
};

// The bytes of a record before its sum, and after its sum and its rows.
struct JournalFrame {
  std::string head;
  std::string tail;
};
JournalFrame FrameOf(const std::string& state, absl::Span<const float> sum,
                     absl::string_view rows = {});

// Reads the records of a segment, from its beginning. For one thread.
class JournalReader {
 public:
  // Every sum has `elements` elements, or none. `widths` are those of the tables (WidthsOf()).
  // `file` outlives the reader.
  JournalReader(const ReadableFile& file, uint64_t elements, std::vector<uint32_t> widths = {})
      : file_(file), elements_(elements), widths_(std::move(widths)) {}

  // The next record; absent at the file's end. DATA_LOSS if the next record is cut or damaged,
  // FAILED_PRECONDITION if it has an unknown format. Then nothing after it can be read.
  absl::StatusOr<absl::optional<JournaledStep>> Next();

 private:
  // What a record's header says.
  struct Sizes {
    char format = 0;
    uint64_t state = 0;     // bytes
    uint64_t elements = 0;  // of the sum
    uint64_t rows = 0;      // bytes
  };

  absl::Status Damaged(absl::string_view what) const;
  absl::StatusOr<Sizes> ReadHeader();
  absl::Status CheckSizes(const Sizes& sizes) const;
  absl::StatusOr<JournaledStep> ReadBody(const Sizes& sizes);
  absl::Status Decode(const std::string& state, absl::string_view rows, JournaledStep* step) const;
  absl::StatusOr<std::string> ReadText(uint64_t size);

  const ReadableFile& file_;
  const uint64_t elements_;
  const std::vector<uint32_t> widths_;
  uint64_t begin_ = 0;   // of the record
  uint64_t offset_ = 0;  // of what is read next
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_FORMAT_H_
