// Reads a checkpoint for a program that uses what was trained. It does not matter how many servers
// have saved it.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_READER_H_
#define SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_READER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/progress_line.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "common/checkpoint/reading/held_table.h"
#include "common/checkpoint/reading/stripe_reader.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"
#include "common/tensor/table_spec.h"

namespace sluice {

// Says whether `where` is a checkpoint's (checkpoint_place.h): a directory, a list, or a file whose
// header has a server's state, stripe or checksum. False for other files, also if there is none.
bool IsCheckpoint(FileSystem& files, const std::string& where);

// Reads the state when it is opened, and values when it is asked. For one thread.
class CheckpointReader {
 public:
  // `files` outlives it. Errors:
  //   NOT_FOUND         the file is not there, or the directory has no checkpoint
  //   INVALID_ARGUMENT  it is one server's part of a checkpoint, or of a job whose workers have the
  //                     model (MeanGradientOptions)
  //   DATA_LOSS         names the file that is missing, damaged, or not the checkpoint's
  // Others are FileSystem's.
  static absl::StatusOr<CheckpointReader> Open(FileSystem& files, const std::string& where);

  // The path of the file that names it.
  const std::string& path() const { return place_.file; }
  const CheckpointContents& contents() const { return contents_; }
  const Layout& layout() const { return *contents_.layout; }

  // Writes the parameters to `to`, which has layout().size() elements, and checks every byte of the
  // files, except those of rows. `to` is to be used only if it returns OK.
  absl::Status ReadParameters(absl::Span<float> to, const ProgressOutput& output = {}) const;

  // The values of layout().constants(), one after the other; see ReadConstants().
  absl::StatusOr<std::string> ReadConstants() const;

  // The rows of a table, without slots; checks every byte of all files. NOT_FOUND names the tables
  // that there are.
  absl::StatusOr<HeldTable> ReadTable(absl::string_view name) const;

 private:
  CheckpointReader(FileSystem& files, CheckpointPlace place, CheckpointContents contents)
      : files_(files), place_(std::move(place)), contents_(std::move(contents)) {}

  StripeReader Reader() const { return StripeReader(files_, place_, StripePlace()); }

  FileSystem& files_;
  CheckpointPlace place_;
  CheckpointContents contents_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_READER_H_
