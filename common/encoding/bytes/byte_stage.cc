#include "common/encoding/bytes/byte_stage.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/bytes/byte_planes.h"
#include "common/encoding/bytes/compressed_part.h"
#include "common/encoding/bytes/present_values.h"
#include "common/encoding/bytes/zstd_codec.h"

namespace sluice {
namespace {

// The first byte of a map: all values follow, or a bit for each value says whether it follows.
constexpr char kAllThere = 0;
constexpr char kMapFollows = 1;

size_t PlanesOf(const ByteStage& stage) { return stage.splits() ? stage.width : 1; }

PartCompressor CompressorOf(const ByteStage& stage, int level) {
  const bool by_frequency = stage.splits() && level == 1;
  return {stage.compressor, by_frequency ? kZstdByFrequency : level};
}

// Compresses a small sample of each plane, to save the time for planes that would hardly shrink.
std::array<bool, kMostPlanes> LooksCompressible(absl::string_view bytes, size_t planes,
                                                const PartCompressor& compressor) {
  constexpr size_t kPieces = 16;
  constexpr size_t kPiece = 512;
  constexpr size_t kLeastPiece = 32;
  std::array<bool, kMostPlanes> looks = {true, true, true, true};
  const size_t count = bytes.size() / planes;
  const size_t piece = std::min(kPiece, count / kPieces / 16);
  if (piece < kLeastPiece) return looks;
  const size_t size = kPieces * piece;
  char samples[kMostPlanes][kPieces * kPiece];
  for (size_t i = 0; i < kPieces; ++i) {
    PlaneTargets to = {};
    for (size_t plane = 0; plane < planes; ++plane) to[plane] = samples[plane] + i * piece;
    SplitPlanes(bytes.data() + count / kPieces * i * planes, piece, planes, to);
  }
  for (size_t plane = 0; plane < planes; ++plane) {
    char frame[kPieces * kPiece];
    const auto to = absl::MakeSpan(frame, WorthIt(size));
    looks[plane] = compressor.Compress({samples[plane], size}, to).has_value();
  }
  return looks;
}

// Writes a part for each plane, and returns the end of the last part.
char* PutPlanes(absl::string_view bytes, size_t planes, const PartCompressor& compressor,
                char* to) {
  const auto compress = LooksCompressible(bytes, planes, compressor);
  const auto put = [&](absl::string_view plane, size_t i) {
    to = PutPart(plane, compress[i] ? &compressor : nullptr, to);
  };
  if (planes == 1) {
    put(bytes, 0);
    return to;
  }
  const size_t count = bytes.size() / planes;
  const Buffer room = MakeBuffer(bytes.size());
  PlaneTargets targets = {};
  // The place of a stored plane is known if all planes before it are stored too: split to there.
  char* known = to;
  for (size_t i = 0; i < planes; ++i) {
    if (compress[i]) known = nullptr;
    targets[i] = known == nullptr ? room.bytes.get() + i * count : known + kPartHead;
    if (known != nullptr) known += kPartHead + count;
  }
  SplitPlanes(bytes.data(), count, planes, targets);
  for (size_t i = 0; i < planes; ++i) put({targets[i], count}, i);
  return to;
}

// The values that follow, and the map of them.
struct Present {
  Buffer map;     // its first byte says whether there is one
  Buffer values;  // none without a map
};

Present LeaveOutZeros(absl::string_view bytes, size_t width) {
  Present present;
  if (!ManyZeros(bytes, width)) {
    present.map = MakeBuffer(1);
    present.map.bytes[0] = kAllThere;
    return present;
  }
  present.map = MakeBuffer(1 + MapSize(bytes.size() / width));
  present.map.bytes[0] = kMapFollows;
  present.values = MakeBuffer(bytes.size());
  present.values.size =
      width * TakePresent(bytes, width, present.map.bytes.get() + 1, present.values.bytes.get());
  return present;
}

// Returns the size of a map of so many values, given its first byte; 0 if that byte is not valid.
size_t WholeMapSize(char first, uint64_t values) {
  if (first == kAllThere) return 1;
  return first == kMapFollows ? 1 + MapSize(values) : 0;
}

absl::Status BrokenMap() {
  return MakeError(Reason::kBadChunk,
                   "an encoded chunk has no valid map of its values: expected a byte of 0, or a "
                   "byte of 1 and a bit for each value");
}

// Removes the map of `values` values from the front of `payload` and returns its bits, which lie in
// the payload or in `room`.
absl::StatusOr<absl::string_view> TakeMap(const ByteStage& stage, uint64_t values, char* room,
                                          absl::string_view* payload) {
  absl::string_view map;
  if (stage.compresses()) {
    const auto part = TakePart(stage.compressor, 1 + MapSize(values), false, payload);
    if (!part.ok()) return part.status();
    const auto bytes = Decompress(*part, stage.compressor, room);
    if (!bytes.ok()) return bytes.status();
    map = *bytes;
    if (map.empty() || map.size() != WholeMapSize(map[0], values)) return BrokenMap();
  } else {
    const size_t size = payload->empty() ? 0 : WholeMapSize((*payload)[0], values);
    if (size == 0 || size > payload->size()) return BrokenMap();
    map = payload->substr(0, size);
    payload->remove_prefix(size);
  }
  return map.substr(1);
}

// Returns the planes in `payload`, which lie in the payload or in `room`. Together they have at
// most `most` bytes, or exactly `most` if there are several.
absl::StatusOr<Planes> Decompress(absl::string_view payload, size_t planes, uint64_t most,
                                  Compressor compressor, char* room) {
  Planes all;
  for (size_t i = 0; i < planes; ++i) {
    const auto part = TakePart(compressor, most / planes, planes > 1, &payload);
    if (!part.ok()) return part.status();
    const auto plane = Decompress(*part, compressor, room + i * part->size);
    if (!plane.ok()) return plane.status();
    all[i] = *plane;
  }
  if (payload.empty()) return all;
  return BrokenParts(absl::StrCat("has ", payload.size(), " bytes after its parts"));
}

// Does the same for a payload that is not compressed.
absl::StatusOr<Planes> Cut(absl::string_view payload, size_t planes, uint64_t most) {
  if (payload.size() > most || (planes > 1 && payload.size() != most)) {
    return MakeError(Reason::kBadChunk, absl::StrCat("an encoded chunk has ", payload.size(),
                                                     " bytes, expected ", most));
  }
  Planes all;
  const size_t size = payload.size() / planes;
  for (size_t i = 0; i < planes; ++i) all[i] = payload.substr(i * size, size);
  return all;
}

absl::StatusOr<absl::string_view> UnpackPlanes(absl::string_view payload, const ByteStage& stage,
                                               uint64_t most, char* room) {
  const size_t planes = PlanesOf(stage);
  Buffer split;
  if (stage.splits() && stage.compresses()) split = MakeBuffer(most);
  const auto found = stage.compresses() ? Decompress(payload, planes, most, stage.compressor,
                                                     planes > 1 ? split.bytes.get() : room)
                                        : Cut(payload, planes, most);
  if (!found.ok()) return found.status();
  if (!stage.splits()) return (*found)[0];
  JoinPlanes(*found, stage.width, room);
  return absl::string_view(room, most);
}

}  // namespace

Buffer MakeBuffer(size_t size) {
  return {std::unique_ptr<char[]>(new char[size]), size};  // make_unique would fill it with 0
}

Buffer PackBytes(absl::string_view bytes, const ByteStage& stage, int level) {
  const size_t planes = PlanesOf(stage);
  Present present;
  if (stage.leaves_out()) present = LeaveOutZeros(bytes, stage.width);
  if (present.values.bytes != nullptr) bytes = present.values.view();
  Buffer payload = MakeBuffer(present.map.size + bytes.size() + (1 + planes) * kPartHead);
  char* to = payload.bytes.get();
  if (stage.compresses()) {
    const PartCompressor compressor = CompressorOf(stage, level);
    if (stage.leaves_out()) to = PutPlanes(present.map.view(), 1, compressor, to);
    to = PutPlanes(bytes, planes, compressor, to);
  } else {
    to = std::copy_n(present.map.bytes.get(), present.map.size, to);
    PlaneTargets targets = {};
    const size_t count = bytes.size() / planes;
    for (size_t i = 0; i < planes; ++i, to += count) targets[i] = to;
    SplitPlanes(bytes.data(), count, planes, targets);
  }
  payload.size = static_cast<size_t>(to - payload.bytes.get());
  return payload;
}

absl::StatusOr<absl::string_view> UnpackBytes(absl::string_view payload, const ByteStage& stage,
                                              uint64_t most, char* room) {
  if (!stage.leaves_out()) return UnpackPlanes(payload, stage, most, room);
  const uint64_t values = most / stage.width;
  const Buffer map_room = MakeBuffer(1 + MapSize(values));
  const auto map = TakeMap(stage, values, map_room.bytes.get(), &payload);
  if (!map.ok()) return map.status();
  if (map->empty()) return UnpackPlanes(payload, stage, most, room);
  const size_t size = CountPresent(*map, values) * stage.width;
  const Buffer present = MakeBuffer(size);
  const auto unpacked = UnpackPlanes(payload, stage, size, present.bytes.get());
  if (!unpacked.ok()) return unpacked.status();
  PlacePresent(*map, *unpacked, values, stage.width, room);
  return absl::string_view(room, most);
}

}  // namespace sluice
