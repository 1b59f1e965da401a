#include "worker/connection/grpc/offer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/encoding/checksum.h"
#include "worker/connection/grpc/answer.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {
namespace {

constexpr char kInitializeParams[] = "/sluice.v1.ParameterServer/InitializeParams";
constexpr char kOfferConstants[] = "/sluice.v1.ParameterServer/OfferConstants";
constexpr char kPullConstants[] = "/sluice.v1.ParameterServer/PullConstants";
constexpr char kPullState[] = "/sluice.v1.ParameterServer/PullState";
constexpr char kOfferState[] = "/sluice.v1.ParameterServer/OfferState";
constexpr char kPullSlots[] = "/sluice.v1.ParameterServer/PullSlots";

// No optimizer has more vectors of state; but that of a program may have more of a tiny model.
constexpr uint64_t kMostSlots = 16;
constexpr uint64_t kTinyBytes = 1 << 20;

constexpr uint64_t kAnySize = uint64_t{1} << 63;
// Another worker offers it after its batch, and its size is not known. A server that is gone ends
// the call earlier.
constexpr absl::Duration kStateTimeout = absl::Hours(24);

absl::Duration TimeoutOf(uint64_t bytes) { return TransferTimeout(bytes / sizeof(float)); }

// Sends bytes as the parts of an offer. False: the call has ended.
template <typename Message>
bool WriteParts(Message& part, absl::string_view left, GrpcStream& stream) {
  bool open = true;
  for (; open && !left.empty(); left.remove_prefix(part.data().size())) {
    part.set_data(left.data(), std::min(left.size(), kBytesOfPart));
    open = stream.Write(EncodeMessage(part), Follows::kMore);
  }
  return open;
}

// Reads an answer in parts to the end: the first message, and at most `most` bytes.
template <typename Message>
absl::Status ReadParts(const char* method, GrpcStream& stream, uint64_t most, Message* first,
                       std::string* bytes) {
  bool any = false;
  grpc::ByteBuffer message;
  while (stream.Read(&message)) {
    Message part;
    if (!DecodeMessage(message, &part) || part.data().size() > most - bytes->size()) {
      stream.Cancel();
      stream.Finish();
      return UnexpectedMessage(method, "part");
    }
    bytes->append(part.data());
    if (!std::exchange(any, true)) *first = std::move(part);
  }
  return EndOf(stream.Finish());
}

class GrpcOffer final : public PendingOffer {
 public:
  GrpcOffer(grpc::GenericStub& stub, SessionId session, uint32_t attempt, uint64_t elements,
            Checksums checksums, const CallMetadata& metadata)
      : checksums_(checksums),
        stream_(stub, kInitializeParams, TransferTimeout(elements), metadata) {
    header_.mutable_header()->set_session(session.value());
    header_.mutable_header()->set_attempt(attempt);
  }

  // If the server answers before it has read all chunks, the rest is not sent.
  absl::StatusOr<InitializeOutcome> Send(const StripeSpan<const float>& parameters) override {
    const uint64_t size = parameters.size();
    bool open =
        stream_.Write(EncodeMessage(header_), size == 0 ? Follows::kNothing : Follows::kMoreAtOnce);
    for (uint64_t begin = 0; open && begin < size; begin += kChunkElements) {
      const uint64_t end = std::min(size, begin + kChunkElements);
      std::vector<float> part(end - begin);
      Gather(parameters, begin, end, part.data());
      open = stream_.Write(EncodeChunk(begin, Share(std::move(part)), checksums_),
                           end == size ? Follows::kNothing : Follows::kMore);
    }
    const auto answer = ReadAnswer<v1::InitializeParamsResponse>("InitializeParams", stream_);
    if (!answer.ok()) return answer.status();
    return InitializeOutcome{answer->accepted(), Step(answer->step())};
  }

  void Cancel() override { stream_.Cancel(); }

 private:
  const Checksums checksums_;
  v1::InitializeParamsRequest header_;
  GrpcStream stream_;
};

}  // namespace

std::unique_ptr<PendingOffer> StartGrpcOffer(grpc::GenericStub& stub, SessionId session,
                                             uint32_t attempt, uint64_t elements,
                                             Checksums checksums, const CallMetadata& metadata) {
  return std::make_unique<GrpcOffer>(stub, session, attempt, elements, checksums, metadata);
}

// gRPC may use what it sends for longer than the call, so it gets copies.
absl::StatusOr<uint64_t> OfferConstantsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                                uint64_t checksum,
                                                const std::vector<absl::Span<char>>& values,
                                                const CallMetadata& metadata) {
  uint64_t bytes = 0;
  for (const absl::Span<char> value : values) bytes += value.size();
  GrpcStream stream(stub, kOfferConstants, TimeoutOf(bytes), metadata);
  v1::OfferConstantsRequest message;
  message.mutable_header()->set_session(session.value());
  message.mutable_header()->set_checksum(checksum);
  bool open = stream.Write(EncodeMessage(message), Follows::kMoreAtOnce);
  for (const absl::Span<char> value : values) {
    open = open && WriteParts(message, {value.data(), value.size()}, stream);
  }
  if (open) stream.EndWrites();
  const auto answer = ReadAnswer<v1::OfferConstantsResponse>("OfferConstants", stream);
  if (!answer.ok()) return answer.status();
  return answer->checksum();
}

absl::StatusOr<PulledConstants> PullConstantsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                                      uint64_t bytes,
                                                      const CallMetadata& metadata) {
  GrpcStream stream(stub, kPullConstants, TimeoutOf(bytes), metadata);
  v1::PullConstantsRequest request;
  request.set_session(session.value());
  stream.Write(EncodeMessage(request), Follows::kNothing);
  PulledConstants pulled;
  pulled.bytes.reserve(bytes);
  v1::PullConstantsResponse first;
  const absl::Status read = ReadParts("PullConstants", stream, bytes, &first, &pulled.bytes);
  if (!read.ok()) return read;
  pulled.checksum = first.checksum();
  if (pulled.bytes.size() == bytes && Checksum(pulled.bytes) == pulled.checksum) return pulled;
  return MakeError(Reason::kCorruptChunk, "the model's constants were damaged on their way");
}

absl::StatusOr<PulledState> PullStateOverGrpc(grpc::GenericStub& stub, SessionId session,
                                              absl::optional<uint64_t> steps,
                                              const CallMetadata& metadata) {
  GrpcStream stream(stub, kPullState, kStateTimeout, metadata);
  v1::PullStateRequest request;
  request.set_session(session.value());
  if (steps.has_value()) request.set_optimizer_steps(*steps);
  stream.Write(EncodeMessage(request), Follows::kNothing);
  PulledState pulled;
  v1::PullStateResponse first;
  const absl::Status read = ReadParts("PullState", stream, kAnySize, &first, &pulled.bytes);
  if (!read.ok()) return read;
  pulled.step = Step(first.step());
  pulled.own = first.own();
  if (pulled.own) return pulled;
  pulled.optimizer_steps = first.optimizer_steps();
  if (Checksum(pulled.bytes) == first.checksum()) return pulled;
  return MakeError(Reason::kCorruptChunk, "another worker's model was damaged on its way");
}

absl::Status OfferStateOverGrpc(grpc::GenericStub& stub, SessionId session,
                                const absl::StatusOr<std::string>& bytes,
                                const CallMetadata& metadata) {
  const absl::string_view model = bytes.ok() ? absl::string_view(*bytes) : "";
  GrpcStream stream(stub, kOfferState, TimeoutOf(model.size()), metadata);
  v1::OfferStateRequest message;
  message.mutable_header()->set_session(session.value());
  message.mutable_header()->set_checksum(Checksum(model));
  if (!bytes.ok()) message.mutable_header()->set_failure(std::string(bytes.status().message()));
  bool open = stream.Write(EncodeMessage(message), Follows::kMoreAtOnce);
  open = open && WriteParts(message, model, stream);
  if (open) stream.EndWrites();
  return ReadAnswer<v1::OfferStateResponse>("OfferState", stream).status();
}

absl::StatusOr<PulledSlots> PullSlotsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                              uint64_t elements, const CallMetadata& metadata) {
  const uint64_t slot_bytes = elements * sizeof(float);
  const uint64_t most = std::max(kMostSlots * slot_bytes, kTinyBytes);
  GrpcStream stream(stub, kPullSlots, TimeoutOf(most), metadata);
  v1::PullSlotsRequest request;
  request.set_session(session.value());
  stream.Write(EncodeMessage(request), Follows::kNothing);
  PulledSlots pulled;
  v1::PullSlotsResponse first;
  const absl::Status read = ReadParts("PullSlots", stream, most, &first, &pulled.bytes);
  if (!read.ok()) return read;
  pulled.step = Step(first.step());
  pulled.optimizer_steps = first.optimizer_steps();
  pulled.names = {first.names().begin(), first.names().end()};
  const auto slots = static_cast<uint64_t>(first.names_size());
  if (pulled.bytes.size() != slots * slot_bytes || first.checksums_size() != first.names_size()) {
    return UnexpectedMessage("PullSlots", "whole slots");
  }
  for (int i = 0; i < first.names_size(); ++i) {
    const auto slot = absl::string_view(pulled.bytes).substr(i * slot_bytes, slot_bytes);
    if (Checksum(slot) == first.checksums(i)) continue;
    return MakeError(Reason::kCorruptChunk, "the optimizer's state was damaged on its way");
  }
  return pulled;
}

}  // namespace sluice
