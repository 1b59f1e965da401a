// The rows of a checkpoint, as they are in files: a file with all rows, and after it, files with
// what has changed since the file before. Check-N-Run (Eisenman et al. 2022) saves checkpoints of
// embedding tables so.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_ROW_CHAIN_H_
#define SLUICE_COMMON_CHECKPOINT_READING_ROW_CHAIN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/rows_header.h"
#include "common/checkpoint/saved_rows.h"
#include "common/checkpoint/stripe_place.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"

namespace sluice {

// The files that one server has saved of a checkpoint.
struct RowFiles {
  StripePlace place;           // of that server
  std::vector<RowFile> files;  // the oldest first
};

// Which checkpoint, and where its files are.
struct RowSource {
  std::vector<std::string> directories;  // each file is in one of them
  std::string job_id;
  Incarnation incarnation;
  Step step;
  std::vector<RowFiles> servers = {};  // whose files have the rows that are wanted
};

// One thread at a time calls it.
class RowChain final : public SavedRows {
 public:
  // Reads the headers, and with `whole` also every byte of the files, and checks all of it.
  // DATA_LOSS names the file that is missing or damaged, or not that of the checkpoint. Other
  // errors are FileSystem's. `files` outlives it.
  static absl::StatusOr<std::unique_ptr<RowChain>> Open(FileSystem& files, RowSource source,
                                                        const Layout& layout, bool whole);

  // Holds the ids of one bucket, and one block of each file of a server.
  absl::Status ForEach(
      absl::FunctionRef<void(uint32_t table, const StoredRow& row)> take) const override;

  // The names of the slots, in the order of the tables.
  std::vector<RowSlots> slots() const;

 private:
  struct OpenFile;

  RowChain(FileSystem& files, RowSource source) : files_(files), source_(std::move(source)) {}

  RowsName NameOf(const RowFiles& server, size_t file) const;
  absl::StatusOr<std::unique_ptr<OpenFile>> OpenAt(const RowFiles& server, size_t file) const;
  absl::Status CheckHeader(const RowsHeader& header, const RowFiles& server, size_t file) const;
  absl::Status TakeHeader(const OpenFile& file, const Layout& layout);
  absl::Status CheckWhole(const RowFiles& server) const;
  absl::Status Merge(const RowFiles& server,
                     absl::FunctionRef<void(uint32_t table, const StoredRow& row)> take) const;

  FileSystem& files_;
  const RowSource source_;
  std::vector<RowsTable> tables_;  // empty before the first file
};

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_ROW_CHAIN_H_
