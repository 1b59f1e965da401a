// Messages that carry chunks, cut into slices as gRPC may hand them over: read by hand they mean
// what generated code makes of the same bytes. A chunk that is one of several parts of a message
// means the same.
#include <glog/logging.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/encoding/checksum.h"
#include "common/encoding/codec.h"
#include "common/tensor/shared_memory.h"
#include "common/wire/chunk.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"
#include "tests/testing/buffers.h"

namespace sluice {
namespace {

constexpr uint64_t kSharedElements = 100;

// The sender's shared memory, which its messages refer to.
const SenderMemory& Shared() {
  static const auto* const shared = [] {
    const auto memory = SharedMemory::Create(kSharedElements);
    CHECK(memory.ok()) << memory.status();
    for (uint64_t i = 0; i < kSharedElements; ++i) (*memory)->floats()[i] = static_cast<float>(i);
    auto view = SharedMemoryView::Open((*memory)->name());
    CHECK(view.ok()) << view.status();
    return new SenderMemory(*std::move(view));
  }();
  return *shared;
}

std::vector<size_t> TakeCuts(Input& input) {
  std::vector<size_t> cuts(input.Byte() % 8);
  size_t at = 0;
  for (size_t& cut : cuts) cut = at += input.Byte();
  return cuts;
}

grpc::ByteBuffer Cut(const std::string& bytes, std::vector<size_t> cuts) {
  for (size_t& cut : cuts) cut = std::min(cut, bytes.size());
  return Sliced(bytes, std::move(cuts));
}

bool IsKnown(const v1::ChunkEncoding& encoding) {
  return encoding.count() >= 1 && encoding.count() <= kMostEncoded &&
         v1::ValueTransform_IsValid(encoding.transform()) &&
         v1::ByteLayout_IsValid(encoding.byte_layout()) &&
         v1::Compressor_IsValid(encoding.compressor());
}

// Why such a chunk is refused; kNone if it is not.
Reason ReasonToRefuse(const v1::TensorChunk& chunk, const SenderMemory& memory) {
  if (chunk.of_vector() && !chunk.has_encoding()) return Reason::kBadChunk;
  if (chunk.has_shared()) {
    const uint64_t first = chunk.shared().first();
    const bool there = memory != nullptr && first <= kSharedElements &&
                       chunk.shared().count() <= kSharedElements - first;
    const bool alone = chunk.payload().empty() && !chunk.has_encoding();
    return there && alone ? Reason::kNone : Reason::kBadChunk;
  }
  if (chunk.has_encoding()) {
    return chunk.has_checksum() && IsKnown(chunk.encoding()) ? Reason::kNone : Reason::kBadChunk;
  }
  if (chunk.has_checksum() && chunk.checksum() != Checksum(chunk.payload())) {
    return Reason::kCorruptChunk;
  }
  return chunk.payload().size() % sizeof(float) == 0 ? Reason::kNone : Reason::kBadChunk;
}

void CheckMeans(const v1::TensorChunk& message, const TensorChunk& read) {
  CHECK(read.offset == message.offset());
  CHECK(read.encoded.has_value() == message.has_encoding());
  if (read.encoded.has_value()) {
    CHECK(read.encoded->offset == message.offset());
    CHECK(read.encoded->payload == message.payload());
    CHECK(read.encoded->checksum == message.checksum());
    CHECK(read.encoded->how.count == message.encoding().count());
    CHECK(read.encoded->of_vector == message.of_vector());
  } else if (message.has_shared()) {
    const auto part =
        Shared()->floats().subspan(message.shared().first(), message.shared().count());
    CHECK(BytesOf(read) == BytesOf(part));
  } else {
    CHECK(BytesOf(read) == message.payload());
  }
}

template <typename Message>
void TryMessage(const std::string& bytes, const std::vector<size_t>& cuts,
                const SenderMemory& memory) {
  const auto read = DecodeChunk<Message>(Cut(bytes, cuts), memory);
  Message message;
  if (!message.ParseFromString(bytes) || !message.has_chunk()) {
    return CheckRefusal(read.status(), {Reason::kBadArgument});
  }
  const Reason reason = ReasonToRefuse(message.chunk(), memory);
  if (reason != Reason::kNone) return CheckRefusal(read.status(), {reason});
  CHECK(read.ok()) << read.status();
  CheckMeans(message.chunk(), *read);
}

// Generated code reads this one, and gives its chunk away.
void TryPushPull(const std::string& bytes) {
  v1::PushPullRequest message;
  if (!message.ParseFromString(bytes) || !message.has_gradient()) return;
  const v1::TensorChunk gradient = message.gradient();
  const auto read = TakeChunk(message.mutable_gradient());
  const Reason reason = ReasonToRefuse(gradient, nullptr);
  if (reason != Reason::kNone) return CheckRefusal(read.status(), {reason});
  CHECK(read.ok()) << read.status();
  CheckMeans(gradient, *read);
}

// The same message, in the form and with the checksum that senders give it. The chunk is field 2 of
// all messages that have one, and in this one it is not one of several.
std::string Sealed(const std::string& bytes) {
  v1::PushPullRequest message;
  if (!message.ParseFromString(bytes) || !message.has_gradient()) return bytes;
  message.mutable_gradient()->set_checksum(Checksum(message.gradient().payload()));
  return message.SerializeAsString();
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const uint8_t how = input.Byte();
  const std::vector<size_t> cuts = TakeCuts(input);
  const std::string given(input.Rest());
  const std::string message = how % 2 == 0 ? given : Sealed(given);
  const SenderMemory memory = how / 2 % 2 == 0 ? nullptr : Shared();
  TryMessage<v1::PushGradientsRequest>(message, cuts, memory);
  TryMessage<v1::InitializeParamsRequest>(message, cuts, memory);
  TryMessage<v1::PullParamsResponse>(message, cuts, memory);
  TryPushPull(message);
}

}  // namespace sluice
