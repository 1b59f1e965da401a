#include "common/encoding/byte_stage.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/encoding/byte_planes.h"
#include "common/error.h"
#include "common/zstd_codec.h"

namespace sluice {
namespace {

// Before each part: its length in the payload, little-endian, and in the highest bit whether it is
// stored as it was.
constexpr size_t kLengthBytes = 4;
constexpr uint32_t kStored = uint32_t{1} << 31;

void PutLength(uint32_t length, char* to) {
  for (size_t i = 0; i < kLengthBytes; ++i) to[i] = static_cast<char>(length >> (8 * i));
}

uint32_t LengthAt(absl::string_view bytes) {
  uint32_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return length;
}

// What saves less than a twentieth is not worth the time it takes to decompress.
constexpr size_t WorthIt(size_t bytes) { return bytes - bytes / 20; }

// Which of the parts look as if they were worth to be compressed, by some of the values from all
// over them: a look that costs little where they are not.
std::array<bool, kMostPlanes> LooksCompressible(absl::string_view bytes, size_t parts, int level) {
  constexpr size_t kPieces = 16;
  constexpr size_t kPiece = 512;
  constexpr size_t kLeastPiece = 128;
  std::array<bool, kMostPlanes> looks = {true, true, true, true};
  const size_t count = bytes.size() / parts;
  const size_t piece = std::min(kPiece, count / kPieces / 16);
  if (piece < kLeastPiece) return looks;
  const size_t size = kPieces * piece;
  char samples[kMostPlanes][kPieces * kPiece];
  for (size_t i = 0; i < kPieces; ++i) {
    PlaneTargets to = {};
    for (size_t part = 0; part < parts; ++part) to[part] = samples[part] + i * piece;
    SplitPlanes(bytes.data() + count / kPieces * i * parts, piece, parts, to);
  }
  for (size_t part = 0; part < parts; ++part) {
    char frame[kPieces * kPiece];
    looks[part] = ZstdCompress({samples[part], size}, level, absl::MakeSpan(frame, WorthIt(size)))
                      .has_value();
  }
  return looks;
}

// Writes a part, which may lie where it belongs already; returns the end of it.
char* PutStored(absl::string_view part, char* to) {
  PutLength(static_cast<uint32_t>(part.size()) | kStored, to);
  to += kLengthBytes;
  if (part.data() != to) std::memcpy(to, part.data(), part.size());
  return to + part.size();
}

char* PutPart(absl::string_view part, bool compress, int level, char* to) {
  if (!compress) return PutStored(part, to);
  const auto size =
      ZstdCompress(part, level, absl::MakeSpan(to + kLengthBytes, WorthIt(part.size())));
  if (!size.has_value()) return PutStored(part, to);
  PutLength(static_cast<uint32_t>(*size), to);
  return to + kLengthBytes + *size;
}

// Writes all parts of which the bytes are made, planes if there are several; returns the end.
char* PutParts(absl::string_view bytes, size_t parts, int level, char* to) {
  const auto compress = LooksCompressible(bytes, parts, level);
  if (parts == 1) return PutPart(bytes, compress[0], level, to);
  const size_t count = bytes.size() / parts;
  const Buffer planes = MakeBuffer(bytes.size());
  PlaneTargets targets = {};
  // Planes that are stored, and come before any that is not, are split to where they belong.
  char* known = to;
  for (size_t i = 0; i < parts; ++i) {
    if (compress[i]) known = nullptr;
    targets[i] = known == nullptr ? planes.bytes.get() + i * count : known + kLengthBytes;
    if (known != nullptr) known += kLengthBytes + count;
  }
  SplitPlanes(bytes.data(), count, parts, targets);
  for (size_t i = 0; i < parts; ++i) to = PutPart({targets[i], count}, compress[i], level, to);
  return to;
}

absl::Status Broken(absl::string_view what) {
  return MakeError(Reason::kBadChunk, absl::StrCat("a compressed chunk ", what));
}

// A part of a payload.
struct Part {
  absl::string_view stored;
  bool is_frame = false;
  uint64_t size = 0;  // bytes that it stands for
};

// Takes the next part off the front of `payload`; it stands for at most `most` bytes or, if
// `exact`, for so many.
absl::StatusOr<Part> TakePart(uint64_t most, bool exact, absl::string_view* payload) {
  if (payload->size() < kLengthBytes) return Broken("ends within the length of a part");
  const uint32_t head = LengthAt(*payload);
  payload->remove_prefix(kLengthBytes);
  const uint32_t length = head & ~kStored;
  if (length > payload->size()) {
    return Broken(
        absl::StrCat("has a part of ", length, " bytes, of which ", payload->size(), " are there"));
  }
  Part part;
  part.stored = payload->substr(0, length);
  part.is_frame = (head & kStored) == 0;
  payload->remove_prefix(length);
  const auto size = part.is_frame ? ZstdSize(part.stored) : length;
  if (!size.has_value()) return Broken("has a part that is no zstd frame with its size in it");
  part.size = *size;
  if (part.size > most || (exact && part.size != most)) {
    return Broken(absl::StrCat("has a part that stands for ", part.size, " bytes, expected ",
                               exact ? "" : "at most ", most));
  }
  // No sender compresses to more; time to decompress grows with the part.
  if (length > part.size) {
    return Broken(absl::StrCat("has a part of ", length, " bytes that stands for ", part.size));
  }
  return part;
}

// The bytes that each of `count` parts stands for, at most `most` together; if there are several,
// all of one size, and so many. They lie in the payload or in `room`.
absl::StatusOr<Planes> Decompress(absl::string_view payload, size_t count, uint64_t most,
                                  char* room) {
  Planes all;
  for (size_t i = 0; i < count; ++i) {
    const auto part = TakePart(most / count, count > 1, &payload);
    if (!part.ok()) return part.status();
    all[i] = part->stored;
    if (!part->is_frame) continue;
    const auto to = absl::MakeSpan(room + i * part->size, part->size);
    if (!ZstdDecompress(part->stored, to)) return Broken("has a part that zstd cannot decompress");
    all[i] = absl::string_view(to.data(), to.size());
  }
  if (payload.empty()) return all;
  return Broken(absl::StrCat("has ", payload.size(), " bytes after its parts"));
}

// The same of a payload that is not compressed.
absl::StatusOr<Planes> Cut(absl::string_view payload, size_t count, uint64_t most) {
  if (payload.size() > most || (count > 1 && payload.size() != most)) {
    return MakeError(Reason::kBadChunk, absl::StrCat("an encoded chunk has ", payload.size(),
                                                     " bytes, expected ", most));
  }
  Planes all;
  const size_t size = payload.size() / count;
  for (size_t i = 0; i < count; ++i) all[i] = payload.substr(i * size, size);
  return all;
}

}  // namespace

Buffer MakeBuffer(size_t size) {
  return {std::unique_ptr<char[]>(new char[size]), size};  // unlike make_unique's
}

Buffer PackBytes(absl::string_view bytes, const ByteStage& stage, int level) {
  const size_t parts = stage.splits() ? stage.width : 1;
  Buffer payload = MakeBuffer(bytes.size() + parts * kLengthBytes);
  char* const to = payload.bytes.get();
  if (stage.compresses()) {
    const bool by_frequency = stage.splits() && level == 1;
    char* const end = PutParts(bytes, parts, by_frequency ? kZstdByFrequency : level, to);
    payload.size = static_cast<size_t>(end - to);
    return payload;
  }
  PlaneTargets targets = {};
  const size_t count = bytes.size() / parts;
  for (size_t i = 0; i < parts; ++i) targets[i] = to + i * count;
  SplitPlanes(bytes.data(), count, parts, targets);
  payload.size = bytes.size();
  return payload;
}

absl::StatusOr<absl::string_view> UnpackBytes(absl::string_view payload, const ByteStage& stage,
                                              uint64_t most, char* room) {
  const size_t parts = stage.splits() ? stage.width : 1;
  Buffer planes;
  if (stage.splits() && stage.compresses()) planes = MakeBuffer(most);
  const auto found = stage.compresses()
                         ? Decompress(payload, parts, most, parts > 1 ? planes.bytes.get() : room)
                         : Cut(payload, parts, most);
  if (!found.ok()) return found.status();
  if (!stage.splits()) return (*found)[0];
  JoinPlanes(*found, stage.width, room);
  return absl::string_view(room, (*found)[0].size() * parts);
}

}  // namespace sluice
