#include "common/encoding/bytes/compressed_part.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/little_endian.h"
#include "common/encoding/bytes/patched_dictionary.h"
#include "common/encoding/bytes/zstd_codec.h"

namespace sluice {
namespace {

// The highest bit of a part's length says that the part is stored as it is.
constexpr uint32_t kStored = uint32_t{1} << 31;

absl::optional<uint64_t> SizeOf(absl::string_view frame, Compressor compressor) {
  return compressor == Compressor::kPdict ? PdictSize(frame) : ZstdSize(frame);
}

bool DecompressFrame(absl::string_view frame, Compressor compressor, absl::Span<char> to) {
  return compressor == Compressor::kPdict ? PdictDecompress(frame, to) : ZstdDecompress(frame, to);
}

}  // namespace

absl::optional<size_t> PartCompressor::Compress(absl::string_view bytes,
                                                absl::Span<char> to) const {
  return compressor == Compressor::kPdict ? PdictCompress(bytes, to)
                                          : ZstdCompress(bytes, level, to);
}

char* PutPart(absl::string_view bytes, const PartCompressor* compressor, char* to) {
  char* const place = to + kPartHead;
  if (compressor != nullptr) {
    const auto size = compressor->Compress(bytes, absl::MakeSpan(place, WorthIt(bytes.size())));
    if (size.has_value()) {
      PutLittleEndian(static_cast<uint32_t>(*size), to);
      return place + *size;
    }
  }
  PutLittleEndian(static_cast<uint32_t>(bytes.size()) | kStored, to);
  if (bytes.data() != place) std::memcpy(place, bytes.data(), bytes.size());
  return place + bytes.size();
}

absl::StatusOr<Part> TakePart(Compressor compressor, uint64_t most, bool exact,
                              absl::string_view* payload) {
  if (payload->size() < kPartHead) return BrokenParts("ends within the length of a part");
  const uint32_t head = FromLittleEndian<uint32_t>(*payload);
  payload->remove_prefix(kPartHead);
  const uint32_t length = head & ~kStored;
  if (length > payload->size()) {
    return BrokenParts(
        absl::StrCat("has a part of ", length, " bytes, of which ", payload->size(), " are there"));
  }
  Part part;
  part.stored = payload->substr(0, length);
  part.is_frame = (head & kStored) == 0;
  payload->remove_prefix(length);
  const auto size = part.is_frame ? SizeOf(part.stored, compressor) : length;
  if (!size.has_value()) return BrokenParts("has a part that is not a frame with its size in it");
  part.size = *size;
  if (part.size > most || (exact && part.size != most)) {
    return BrokenParts(absl::StrCat("has a part that decompresses to ", part.size,
                                    " bytes, expected ", exact ? "" : "at most ", most));
  }
  // A correct sender would have stored it. A hostile one could make decompression slow.
  if (length > part.size) {
    return BrokenParts(
        absl::StrCat("has a part of ", length, " bytes that decompresses to ", part.size));
  }
  return part;
}

absl::StatusOr<absl::string_view> Decompress(const Part& part, Compressor compressor, char* room) {
  if (!part.is_frame) return part.stored;
  const auto to = absl::MakeSpan(room, part.size);
  if (!DecompressFrame(part.stored, compressor, to)) {
    return BrokenParts("has a part that cannot be decompressed");
  }
  return absl::string_view(to.data(), to.size());
}

absl::Status BrokenParts(absl::string_view what) {
  return MakeError(Reason::kBadChunk, absl::StrCat("a compressed chunk ", what));
}

}  // namespace sluice
