// Reads files of tensors whose last 8 bytes are the XXH3-64 of all bytes before them,
// little-endian. checkpoint_file.h and stripe_file.h say what else is in them.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_CHECKED_READER_H_
#define SLUICE_COMMON_CHECKPOINT_READING_CHECKED_READER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/encoding/checksum.h"
#include "common/storage/file_system.h"
#include "common/storage/safetensors.h"
#include "common/tensor/layout.h"

namespace sluice {

// Told after each piece of a file, by the thread that reads, how many bytes were read so far.
using ReadListener = std::function<void(uint64_t bytes)>;

// How many bytes are read or written at once.
inline constexpr uint64_t kFilePiece = 1 << 20;

// The name of the last tensor in such a file, and its length.
inline constexpr char kChecksumName[] = "sluice:checksum";
inline constexpr uint64_t kChecksumBytes = 8;

// The tensors in such a file: those of the layout, those of each slot, the checksum.
std::vector<SafeTensor> CheckedTensors(const Layout& layout, const std::vector<std::string>& slots);

bool SameTensors(const std::vector<SafeTensor>& a, const std::vector<SafeTensor>& b);

// Reads from the beginning of a file to its end. A file without a checksum can be read, too, if
// nobody asks for it. For one thread. The file and the listener outlive it. The listener may be
// null.
class CheckedReader {
 public:
  CheckedReader(const ReadableFile& file, const ReadListener& listener)
      : file_(file), listener_(listener) {}

  // DATA_LOSS says what is wrong with the header.
  absl::StatusOr<SafeTensorsHeader> ReadHeader();
  absl::Status Read(absl::Span<char> to);
  // DATA_LOSS if the next bytes are not the checksum of those before them.
  absl::Status CheckChecksum();

  // The XXH3-64 of all bytes that were read.
  uint64_t sum() const { return sum_.Get(); }

 private:
  absl::StatusOr<std::string> ReadText(uint64_t size);

  const ReadableFile& file_;
  const ReadListener& listener_;
  Checksummer sum_;
  uint64_t offset_ = 0;
};

absl::Status ReadFloats(CheckedReader& reader, absl::Span<float> values);

// Gets the values of a file piece by piece, in order. Vector 0 is the parameters, the slots follow.
// `offset` counts elements of the vector.
using StripePieces =
    std::function<void(size_t vector, uint64_t offset, absl::Span<const float> values)>;

// Reads so many vectors of that size, in pieces of at most kFilePiece bytes.
absl::Status ReadPieces(CheckedReader& reader, size_t vectors, uint64_t size,
                        const StripePieces& pieces);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_CHECKED_READER_H_
