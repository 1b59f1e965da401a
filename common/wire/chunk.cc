#include "common/wire/chunk.h"

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
#include "common/base/error.h"
#include "common/base/varint.h"
#include "common/encoding/checksum.h"
#include "common/wire/encoding.h"
#include "common/wire/frame.h"

namespace sluice {
namespace {

// Names of peers on this machine. "fd:" is a unix socket that was passed to gRPC as a descriptor.
constexpr absl::string_view kSameMachine[] = {"unix:",          "fd:",  "ipv4:127.", "ipv6:[::1]",
                                              "ipv6:%5B::1%5D", "127.", "[::1]",     "localhost:"};

grpc::ByteBuffer Sharing(const std::string& prefix, absl::string_view payload,
                         std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  const grpc::Slice slices[] = {
      grpc::Slice(prefix),
      grpc::Slice(
          const_cast<char*>(payload.data()), payload.size(),
          [](void* kept) { delete static_cast<Owner*>(kept); }, new Owner(std::move(owner)))};
  return grpc::ByteBuffer(slices, 2);
}

grpc::ByteBuffer MessageOf(const v1::TensorChunk& chunk, absl::string_view payload,
                           std::shared_ptr<const void> owner) {
  return Sharing(FramePrefix(chunk, payload.size()), payload, std::move(owner));
}

std::string FirstBytes(const std::vector<grpc::Slice>& slices) {
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    if (bytes.size() == kMostFramePrefix) break;
    bytes.append(reinterpret_cast<const char*>(slice.begin()),
                 std::min(slice.size(), kMostFramePrefix - bytes.size()));
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

// The memory of a message, and copies of the elements that cross from one slice to the next.
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

// Checksum of the payload, which begins at byte `begin` of the slices.
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
  // Before the other checks: a sender repeats a chunk that the network damaged.
  if (frame.checksum.has_value()) {
    const absl::Status intact =
        CompareChecksums(frame.offset, ChecksumFrom(frame.begin, slices), *frame.checksum);
    if (!intact.ok()) return intact;
  }
  if (frame.payload_bytes % sizeof(float) != 0) {
    return BrokenElement(frame.offset, frame.payload_bytes);
  }
  const auto memory = std::make_shared<ReceivedMemory>();
  memory->slices = std::move(slices);
  TensorChunk chunk;
  chunk.offset = frame.offset;
  chunk.pieces = PieceCutter(memory.get()).Cut(frame.begin);
  chunk.owner = memory;
  return chunk;
}

// Returns the elements of the sender's memory that `message` names.
absl::StatusOr<TensorChunk> Find(const v1::TensorChunk& message, const SenderMemory& memory) {
  const uint64_t first = message.shared().first();
  const uint64_t count = message.shared().count();
  if (message.has_encoding()) {
    return MakeError(Reason::kBadChunk,
                     absl::StrCat("chunk at offset ", message.offset(),
                                  " lies in shared memory and has an encoding; expected one of "
                                  "the two: share the elements, or send them encoded"));
  }
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
  chunk.foreign = true;
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
  encoded.of_vector = message.of_vector();
  encoded.how = *std::move(how);
  encoded.payload = *payload;
  encoded.checksum = message.checksum();
  encoded.owner = std::move(payload);
  TensorChunk chunk;
  chunk.offset = encoded.offset;
  chunk.encoded = std::move(encoded);
  return chunk;
}

// For clients in other languages: fields may come in any order, be repeated, or be unknown.
template <typename Message>
absl::StatusOr<TensorChunk> Parse(const grpc::ByteBuffer& bytes, const SenderMemory& memory) {
  Message message;
  if (!DecodeMessage(bytes, &message)) {
    return MakeError(Reason::kBadArgument, absl::StrCat("a message of the stream is not a valid ",
                                                        Message::descriptor()->full_name()));
  }
  if (!message.has_chunk()) {
    return MakeError(Reason::kBadArgument, "a message after the header holds no chunk");
  }
  return TakeChunk(message.mutable_chunk(), memory);
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
  chunk.set_of_vector(encoded.of_vector);
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

absl::StatusOr<TensorChunk> TakeChunk(v1::TensorChunk* message, const SenderMemory& memory) {
  const uint64_t offset = message->offset();
  if (message->of_vector() && !message->has_encoding()) {
    return MakeError(Reason::kBadChunk,
                     absl::StrCat("chunk at offset ", offset,
                                  " is one of the whole vector (field of_vector) without an "
                                  "encoding; send each server the elements of its stripe"));
  }
  if (message->has_shared()) return Find(*message, memory);
  auto payload = std::make_shared<const std::string>(std::move(*message->mutable_payload()));
  if (message->has_encoding()) return Encoded(*message, std::move(payload));
  if (message->has_checksum()) {
    const absl::Status intact = CompareChecksums(offset, Checksum(*payload), message->checksum());
    if (!intact.ok()) return intact;
  }
  if (payload->size() % sizeof(float) != 0) return BrokenElement(offset, payload->size());
  TensorChunk chunk;
  chunk.offset = offset;
  chunk.pieces.push_back(PieceAt(payload->data(), payload->size() / sizeof(float)));
  chunk.owner = std::move(payload);
  return chunk;
}

grpc::ByteBuffer Joined(const grpc::ByteBuffer& message, const grpc::ByteBuffer& chunk) {
  std::vector<grpc::Slice> slices;
  std::vector<grpc::Slice> of_chunk;
  if (!message.Dump(&slices).ok() || !chunk.Dump(&of_chunk).ok()) return grpc::ByteBuffer();
  slices.insert(slices.end(), of_chunk.begin(), of_chunk.end());
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer EncodeBytes(uint32_t field, absl::string_view bytes,
                             std::shared_ptr<const void> owner) {
  constexpr uint32_t kLengthDelimited = 2;
  std::string prefix(1, static_cast<char>(field << 3 | kLengthDelimited));
  AppendVarint(bytes.size(), &prefix);
  return Sharing(prefix, bytes, std::move(owner));
}

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
