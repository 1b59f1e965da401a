// What the header of a file of rows says (SavedRows in proto/sluice/v1/durable.proto).

#ifndef SLUICE_COMMON_CHECKPOINT_READING_ROWS_HEADER_H_
#define SLUICE_COMMON_CHECKPOINT_READING_ROWS_HEADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/stripe_place.h"

namespace sluice {

// How the rows of a table are stored.
struct RowsTable {
  std::string name;
  uint32_t width = 0;
  RowSlots slots;

  // Of a row and its slots.
  uint64_t elements() const { return width * (slots.size() + 1); }
};

bool operator==(const RowsTable& a, const RowsTable& b);

struct RowsHeader {
  std::string job_id;
  Incarnation incarnation;
  Step step;
  absl::optional<Step> base;  // absent: the file has all rows
  StripePlace place;          // of the server
  std::vector<RowsTable> tables;
};

std::string EncodeRowsHeader(const RowsHeader& header);
// The bytes may come from anywhere: DATA_LOSS says what is wrong with them.
absl::StatusOr<RowsHeader> DecodeRowsHeader(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_ROWS_HEADER_H_
