// The names of the files of a checkpoint.

#ifndef SLUICE_COMMON_CHECKPOINT_FILE_NAMES_H_
#define SLUICE_COMMON_CHECKPOINT_FILE_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/checkpoint/stripe_place.h"

namespace sluice {

// The file that names a checkpoint, "checkpoint-<incarnation>-<step>.safetensors". Ordered: the
// newest is the largest.
struct CheckpointName {
  Incarnation incarnation;
  Step step;

  std::string FileName() const;
  // Absent if `file_name` is not the name of a checkpoint.
  static absl::optional<CheckpointName> Parse(absl::string_view file_name);
};

bool operator<(const CheckpointName& a, const CheckpointName& b);

// Which stripe of which checkpoint.
struct StripeName {
  std::string job_id;
  Incarnation incarnation;
  Step step;
  uint32_t stripe = 0;
  uint32_t stripes = 1;

  // "stripe-<incarnation>-<step>-<stripe>-of-<stripes>.safetensors"
  std::string FileName() const;
  // Without the job's id. Absent if `file_name` is not the name of a stripe's file.
  static absl::optional<StripeName> Parse(absl::string_view file_name);
};

// A file of rows: "rows-<incarnation>-<step>.sluice", and of one of several servers
// "rows-<incarnation>-<step>-<server>-of-<servers>.sluice".
struct RowsName {
  Incarnation incarnation;
  Step step;
  StripePlace place = {};

  std::string FileName() const;
  // Absent if `file_name` is not the name of a file of rows.
  static absl::optional<RowsName> Parse(absl::string_view file_name);
};

bool operator<(const RowsName& a, const RowsName& b);

// The directory of a path, where the other files of its checkpoint are; "." if it names none.
std::string DirectoryOf(const std::string& path);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_FILE_NAMES_H_
