#include "common/wire/frame.h"

#include <cstring>

#include "common/base/varint.h"

namespace sluice {
namespace {

// Tags of protobuf's wire format: the field's number and how its value is written.
constexpr char kChunkTag = 2 << 3 | 2;     // message
constexpr char kOffsetTag = 1 << 3 | 0;    // varint
constexpr char kChecksumTag = 4 << 3 | 1;  // fixed64
constexpr char kPayloadTag = 15 << 3 | 2;  // bytes
constexpr size_t kMaxVarint = 10;
static_assert(kMostFramePrefix == 4 + 3 * kMaxVarint + sizeof(uint64_t), "tags and values");

// Reads what precedes a payload.
class PrefixReader {
 public:
  explicit PrefixReader(absl::string_view bytes) : bytes_(bytes) {}

  bool Skip(char tag) {
    if (at_ == bytes_.size() || bytes_[at_] != tag) return false;
    ++at_;
    return true;
  }

  absl::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (size_t i = 0; i < kMaxVarint && at_ < bytes_.size(); ++i) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (i == kMaxVarint - 1 && byte > 1) break;  // more than 64 bits
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) return value;
    }
    return absl::nullopt;
  }

  // Little-endian.
  absl::optional<uint64_t> Fixed64() {
    uint64_t value = 0;
    if (bytes_.size() - at_ < sizeof(value)) return absl::nullopt;
    std::memcpy(&value, bytes_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }

  size_t at() const { return at_; }

 private:
  const absl::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string FramePrefix(const v1::TensorChunk& chunk, size_t payload_bytes) {
  std::string fields = chunk.SerializeAsString();
  if (payload_bytes != 0) {
    fields.push_back(kPayloadTag);
    AppendVarint(payload_bytes, &fields);
  }
  std::string prefix(1, kChunkTag);
  AppendVarint(fields.size() + payload_bytes, &prefix);
  return prefix + fields;
}

absl::optional<Frame> ReadFrame(absl::string_view prefix, size_t message_bytes) {
  PrefixReader reader(prefix);
  Frame frame;
  if (!reader.Skip(kChunkTag)) return absl::nullopt;
  const absl::optional<uint64_t> chunk_bytes = reader.Varint();
  if (chunk_bytes != message_bytes - reader.at()) return absl::nullopt;
  if (reader.Skip(kOffsetTag)) {
    const absl::optional<uint64_t> offset = reader.Varint();
    if (!offset.has_value()) return absl::nullopt;
    frame.offset = *offset;
  }
  if (reader.Skip(kChecksumTag)) {
    frame.checksum = reader.Fixed64();
    if (!frame.checksum.has_value()) return absl::nullopt;
  }
  if (!reader.Skip(kPayloadTag)) return absl::nullopt;
  const absl::optional<uint64_t> payload_bytes = reader.Varint();
  if (payload_bytes != message_bytes - reader.at()) return absl::nullopt;
  frame.begin = reader.at();
  frame.payload_bytes = *payload_bytes;
  return frame;
}

}  // namespace sluice
