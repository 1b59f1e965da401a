#include "common/wire_chunk.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/encoding/checksum.h"
#include "common/error.h"
#include "common/wire_encoding.h"

namespace sluice {
namespace {

// Tags of protobuf's wire format: the field's number and how its value is written.
constexpr char kChunkTag = 2 << 3 | 2;     // message
constexpr char kOffsetTag = 1 << 3 | 0;    // varint
constexpr char kChecksumTag = 4 << 3 | 1;  // fixed64
constexpr char kPayloadTag = 15 << 3 | 2;  // bytes
constexpr size_t kMaxVarint = 10;
constexpr size_t kMaxPrefix = 4 + 3 * kMaxVarint + sizeof(uint64_t);

// How the other side is named if it is on this machine. A descriptor that was handed to gRPC is a
// unix socket's.
constexpr absl::string_view kSameMachine[] = {"unix:",          "fd:",  "ipv4:127.", "ipv6:[::1]",
                                              "ipv6:%5B::1%5D", "127.", "[::1]",     "localhost:"};

// ---- Writing ----

void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}

// All of the message but the payload; `chunk` has all of the chunk but that.
std::string PrefixOf(const v1::TensorChunk& chunk, size_t payload) {
  std::string fields = chunk.SerializeAsString();
  if (payload != 0) {
    fields.push_back(kPayloadTag);
    AppendVarint(payload, &fields);
  }
  std::string prefix(1, kChunkTag);
  AppendVarint(fields.size() + payload, &prefix);
  return prefix + fields;
}

absl::string_view BytesOf(absl::Span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

grpc::ByteBuffer MessageOf(const v1::TensorChunk& chunk, absl::string_view payload,
                           std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  const grpc::Slice slices[] = {
      grpc::Slice(PrefixOf(chunk, payload.size())),
      grpc::Slice(
          const_cast<char*>(payload.data()), payload.size(),
          [](void* kept) { delete static_cast<Owner*>(kept); }, new Owner(std::move(owner)))};
  return grpc::ByteBuffer(slices, 2);
}

// ---- Reading ----

// Where a chunk's payload lies in its message.
struct Frame {
  uint64_t offset = 0;  // of the chunk, in elements
  absl::optional<uint64_t> checksum;
  size_t begin = 0;  // of the payload, in bytes of the message
  size_t payload_bytes = 0;
};

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

// Of a message in the form that EncodeChunk and generated code give it, `prefix` being its first
// bytes. None if it has another form, be it legal or not.
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

std::string FirstBytes(const std::vector<grpc::Slice>& slices) {
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    if (bytes.size() == kMaxPrefix) break;
    bytes.append(reinterpret_cast<const char*>(slice.begin()),
                 std::min(slice.size(), kMaxPrefix - bytes.size()));
  }
  return bytes;
}

absl::Status BrokenElement(uint64_t offset, size_t bytes) {
  return MakeError(Reason::kBadChunk, absl::StrCat("chunk at offset ", offset, " has ", bytes,
                                                   " bytes, expected a multiple of 4"));
}

FloatPiece PieceAt(const void* bytes, size_t elements) {
  return FloatPiece(static_cast<const UnalignedFloat*>(bytes), elements);
}

absl::Status Corrupt(uint64_t offset, uint64_t found, uint64_t expected) {
  return MakeError(Reason::kCorruptChunk,
                   absl::StrCat("the chunk at offset ", offset, " has the checksum ",
                                absl::Hex(found, absl::kZeroPad16), ", expected ",
                                absl::Hex(expected, absl::kZeroPad16),
                                "; it changed on its way: repeat the call"));
}

// A message's memory, and the elements that lie in two slices or more.
struct ReceivedMemory {
  std::vector<grpc::Slice> slices;
  std::vector<std::array<char, sizeof(float)>> torn;
};

// Cuts a payload, which begins at byte `begin` of the slices, into pieces of whole elements.
class PieceCutter {
 public:
  explicit PieceCutter(ReceivedMemory* memory) : memory_(memory) {
    memory_->torn.reserve(memory_->slices.size());  // its elements must stay where they are
  }

  std::vector<FloatPiece> Cut(size_t begin) {
    for (const grpc::Slice& slice : memory_->slices) {
      const size_t skipped = std::min(begin, slice.size());
      begin -= skipped;
      Take(reinterpret_cast<const char*>(slice.begin()) + skipped, slice.size() - skipped);
    }
    return std::move(pieces_);
  }

 private:
  void Take(const char* bytes, size_t count) {
    if (missing_ > 0) {
      const size_t taken = std::min(missing_, count);
      std::memcpy(memory_->torn.back().data() + sizeof(float) - missing_, bytes, taken);
      missing_ -= taken;
      if (missing_ > 0) return;
      pieces_.push_back(PieceAt(memory_->torn.back().data(), 1));
      bytes += taken;
      count -= taken;
    }
    if (count >= sizeof(float)) pieces_.push_back(PieceAt(bytes, count / sizeof(float)));
    const size_t rest = count % sizeof(float);
    if (rest == 0) return;
    memory_->torn.emplace_back();
    std::memcpy(memory_->torn.back().data(), bytes + count - rest, rest);
    missing_ = sizeof(float) - rest;
  }

  ReceivedMemory* const memory_;
  std::vector<FloatPiece> pieces_;
  size_t missing_ = 0;  // bytes of the last torn element
};

// Of the payload, which begins at byte `begin` of the slices.
uint64_t ChecksumFrom(size_t begin, const std::vector<grpc::Slice>& slices) {
  Checksummer checksummer;
  for (const grpc::Slice& slice : slices) {
    const size_t skipped = std::min(begin, slice.size());
    begin -= skipped;
    checksummer.Add(
        {reinterpret_cast<const char*>(slice.begin()) + skipped, slice.size() - skipped});
  }
  return checksummer.Get();
}

absl::StatusOr<TensorChunk> Refer(const Frame& frame, std::vector<grpc::Slice> slices) {
  if (frame.payload_bytes % sizeof(float) != 0) {
    return BrokenElement(frame.offset, frame.payload_bytes);
  }
  if (frame.checksum.has_value()) {
    const uint64_t checksum = ChecksumFrom(frame.begin, slices);
    if (checksum != *frame.checksum) return Corrupt(frame.offset, checksum, *frame.checksum);
  }
  const auto memory = std::make_shared<ReceivedMemory>();
  memory->slices = std::move(slices);
  TensorChunk chunk;
  chunk.offset = frame.offset;
  chunk.pieces = PieceCutter(memory.get()).Cut(frame.begin);
  chunk.owner = memory;
  return chunk;
}

// The elements that `message` says lie in its sender's memory.
absl::StatusOr<TensorChunk> Find(const v1::TensorChunk& message, const SenderMemory& memory) {
  const uint64_t first = message.shared().first();
  const uint64_t count = message.shared().count();
  if (!message.payload().empty() || memory == nullptr || first > memory->floats().size() ||
      count > memory->floats().size() - first) {
    return MakeError(
        Reason::kBadChunk,
        absl::StrCat("chunk at offset ", message.offset(), " has ", message.payload().size(),
                     " bytes and says that elements [", first, ", ", first, " + ", count,
                     ") of shared memory are its own; expected no bytes, and elements of the ",
                     memory == nullptr ? 0 : memory->floats().size(), " that are shared"));
  }
  TensorChunk chunk;
  chunk.offset = message.offset();
  chunk.pieces.push_back(AsPiece(memory->floats().subspan(first, count)));
  chunk.owner = memory;
  return chunk;
}

// `message` without its payload.
absl::StatusOr<TensorChunk> Encoded(const v1::TensorChunk& message,
                                    std::shared_ptr<const std::string> payload) {
  auto how = FromProto(message.encoding());
  if (!how.ok()) return how.status();
  if (!message.has_checksum()) {
    return MakeError(Reason::kBadChunk, absl::StrCat("the encoded chunk at offset ",
                                                     message.offset(), " has no checksum"));
  }
  EncodedChunk encoded;
  encoded.offset = message.offset();
  encoded.how = *std::move(how);
  encoded.payload = *payload;
  encoded.checksum = message.checksum();
  encoded.owner = std::move(payload);
  TensorChunk chunk;
  chunk.offset = encoded.offset;
  chunk.encoded = std::move(encoded);
  return chunk;
}

// As any client may write it: fields in any order, repeated, or unknown.
template <typename Message>
absl::StatusOr<TensorChunk> Parse(const grpc::ByteBuffer& bytes, const SenderMemory& memory) {
  Message message;
  if (!DecodeMessage(bytes, &message)) {
    return MakeError(Reason::kBadArgument, absl::StrCat("a message of the stream is no ",
                                                        Message::descriptor()->full_name()));
  }
  if (!message.has_chunk()) {
    return MakeError(Reason::kBadArgument, "a message after the header holds no chunk");
  }
  if (message.chunk().has_shared()) return Find(message.chunk(), memory);
  const uint64_t offset = message.chunk().offset();
  auto payload =
      std::make_shared<const std::string>(std::move(*message.mutable_chunk()->mutable_payload()));
  if (message.chunk().has_encoding()) return Encoded(message.chunk(), std::move(payload));
  if (message.chunk().has_checksum()) {
    const uint64_t checksum = Checksum(*payload);
    const uint64_t expected = message.chunk().checksum();
    if (checksum != expected) return Corrupt(offset, checksum, expected);
  }
  if (payload->size() % sizeof(float) != 0) return BrokenElement(offset, payload->size());
  TensorChunk chunk;
  chunk.offset = offset;
  chunk.pieces.push_back(PieceAt(payload->data(), payload->size() / sizeof(float)));
  chunk.owner = std::move(payload);
  return chunk;
}

}  // namespace

Checksums ChecksumsFor(absl::string_view target) {
  for (const absl::string_view name : kSameMachine) {
    if (absl::StartsWith(target, name)) return Checksums::kOff;
  }
  return Checksums::kOn;
}

grpc::ByteBuffer EncodeChunk(uint64_t offset, const SharedFloats& elements, Checksums checksums) {
  const absl::string_view payload = BytesOf(elements.values);
  v1::TensorChunk chunk;
  chunk.set_offset(offset);
  if (checksums == Checksums::kOn) chunk.set_checksum(Checksum(payload));
  return MessageOf(chunk, payload, elements.owner);
}

grpc::ByteBuffer EncodeChunk(const EncodedChunk& encoded) {
  v1::TensorChunk chunk;
  chunk.set_offset(encoded.offset);
  *chunk.mutable_encoding() = ToProto(encoded.how);
  chunk.set_checksum(encoded.checksum);
  return MessageOf(chunk, encoded.payload, encoded.owner);
}

grpc::ByteBuffer EncodeSharedChunk(uint64_t offset, uint64_t first, uint64_t count) {
  v1::PushGradientsRequest message;  // the others have the same bytes
  message.mutable_chunk()->set_offset(offset);
  message.mutable_chunk()->mutable_shared()->set_first(first);
  message.mutable_chunk()->mutable_shared()->set_count(count);
  return EncodeMessage(message);
}

template <typename Message>
absl::StatusOr<TensorChunk> DecodeChunk(const grpc::ByteBuffer& bytes, const SenderMemory& memory) {
  std::vector<grpc::Slice> slices;
  if (bytes.Dump(&slices).ok()) {
    const absl::optional<Frame> frame = ReadFrame(FirstBytes(slices), bytes.Length());
    if (frame.has_value()) return Refer(*frame, std::move(slices));
  }
  return Parse<Message>(bytes, memory);
}

template absl::StatusOr<TensorChunk> DecodeChunk<v1::PushGradientsRequest>(
    const grpc::ByteBuffer& bytes, const SenderMemory& memory);
template absl::StatusOr<TensorChunk> DecodeChunk<v1::InitializeParamsRequest>(
    const grpc::ByteBuffer& bytes, const SenderMemory& memory);
template absl::StatusOr<TensorChunk> DecodeChunk<v1::PullParamsResponse>(
    const grpc::ByteBuffer& bytes, const SenderMemory& memory);

grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

bool DecodeMessage(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message) {
  grpc::ByteBuffer shared(bytes);
  grpc::ProtoBufferReader reader(&shared);
  return reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
}

}  // namespace sluice
