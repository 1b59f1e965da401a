// Reads what a server has of a checkpoint: its part of the vectors, and the rows of its buckets. It
// does not matter how many servers have saved the checkpoint. One server of one has all of it.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_STRIPE_READER_H_
#define SLUICE_COMMON_CHECKPOINT_READING_STRIPE_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "common/checkpoint/reading/part_file.h"
#include "common/checkpoint/reading/row_chain.h"
#include "common/checkpoint/reading/stripe_file.h"
#include "common/checkpoint/stripe_place.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"

namespace sluice {

// The files of rows that the read files name.
struct SavedRowFiles {
  std::vector<RowFiles> servers;
  uint64_t steps = 0;  // RowTables::optimizer_steps()
};

// It is externally synchronized. Its methods take a time that grows with the files. `whole` is the
// layout of the whole vector. DATA_LOSS names the file that is missing or damaged, or not the
// checkpoint's. Other errors are FileSystem's.
class StripeReader {
 public:
  // `files` outlives it.
  StripeReader(FileSystem& files, CheckpointPlace place, StripePlace stripe)
      : files_(files), place_(std::move(place)), stripe_(stripe) {}

  // Whether the source's numbers are possible, and the files that have a part of the stripe are
  // there and large enough. So a caller knows that what the source names can be read before it
  // allocates memory for it.
  absl::Status Check(const CheckpointSource& source, const Layout& whole) const;

  // Reads the stripe of the parameters to to[0], and of slot i to to[1 + i]. Vectors beyond `to`
  // are checked and dropped. It checks every byte of the files that it reads, and holds one piece
  // of a file at a time. `to` is to be used only if it returns OK. `on_read` hears after each piece
  // of parameters or slots how many bytes it had; it may be empty.
  absl::StatusOr<SavedRowFiles> Read(const CheckpointSource& source, const Layout& whole,
                                     absl::Span<const absl::Span<float>> to,
                                     const std::function<void(uint64_t bytes)>& on_read) const;

  // The rows in these files, every byte of which it has read and checked. Null if there are no
  // tables.
  absl::StatusOr<std::unique_ptr<RowChain>> OpenRows(const CheckpointSource& source,
                                                     const Layout& whole,
                                                     std::vector<RowFiles> rows) const;

 private:
  // Gets the values of the file of `stripe`.
  using SourcePieces = std::function<void(uint32_t stripe, size_t vector, uint64_t offset,
                                          absl::Span<const float> values)>;

  std::vector<uint32_t> StripesNeeded(const CheckpointSource& source) const;
  absl::StatusOr<PartFile> OpenSource(const CheckpointSource& source, uint32_t stripe) const;
  absl::Status ReadSource(const CheckpointSource& source, const Layout& whole, uint32_t stripe,
                          const StripePieces& pieces, StripeRows* rows) const;
  absl::StatusOr<SavedRowFiles> ReadSources(const CheckpointSource& source, const Layout& whole,
                                            const SourcePieces& take) const;

  FileSystem& files_;
  const CheckpointPlace place_;
  const StripePlace stripe_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_STRIPE_READER_H_
