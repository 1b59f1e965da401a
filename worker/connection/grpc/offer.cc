#include "worker/connection/grpc/offer.h"

#include <algorithm>
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

constexpr size_t kBytesOfConstantPart = kChunkElements * sizeof(float);

absl::Duration TimeoutOfConstants(uint64_t bytes) { return TransferTimeout(bytes / sizeof(float)); }

class GrpcOffer final : public PendingOffer {
 public:
  GrpcOffer(grpc::GenericStub& stub, SessionId session, uint32_t attempt, uint64_t elements,
            Checksums checksums, const std::string& token)
      : checksums_(checksums), stream_(stub, kInitializeParams, TransferTimeout(elements), token) {
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
                                             Checksums checksums, const std::string& token) {
  return std::make_unique<GrpcOffer>(stub, session, attempt, elements, checksums, token);
}

// gRPC may use what it sends for longer than the call, so it gets copies.
absl::StatusOr<uint64_t> OfferConstantsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                                uint64_t checksum,
                                                const std::vector<absl::Span<char>>& values,
                                                const std::string& token) {
  uint64_t bytes = 0;
  for (const absl::Span<char> value : values) bytes += value.size();
  GrpcStream stream(stub, kOfferConstants, TimeoutOfConstants(bytes), token);
  v1::OfferConstantsRequest message;
  message.mutable_header()->set_session(session.value());
  message.mutable_header()->set_checksum(checksum);
  bool open = stream.Write(EncodeMessage(message), Follows::kMoreAtOnce);
  for (absl::Span<char> left : values) {
    for (; open && !left.empty(); left.remove_prefix(message.data().size())) {
      message.set_data(left.data(), std::min(left.size(), kBytesOfConstantPart));
      open = stream.Write(EncodeMessage(message), Follows::kMore);
    }
  }
  if (open) stream.EndWrites();
  const auto answer = ReadAnswer<v1::OfferConstantsResponse>("OfferConstants", stream);
  if (!answer.ok()) return answer.status();
  return answer->checksum();
}

absl::StatusOr<PulledConstants> PullConstantsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                                      uint64_t bytes, const std::string& token) {
  GrpcStream stream(stub, kPullConstants, TimeoutOfConstants(bytes), token);
  v1::PullConstantsRequest request;
  request.set_session(session.value());
  stream.Write(EncodeMessage(request), Follows::kNothing);
  PulledConstants pulled;
  pulled.bytes.reserve(bytes);
  grpc::ByteBuffer message;
  while (stream.Read(&message)) {
    v1::PullConstantsResponse part;
    if (!DecodeMessage(message, &part) || part.data().size() > bytes - pulled.bytes.size()) {
      stream.Cancel();
      stream.Finish();
      return UnexpectedMessage("PullConstants", "part");
    }
    if (part.checksum() != 0) pulled.checksum = part.checksum();
    pulled.bytes.append(part.data());
  }
  const absl::Status ended = EndOf(stream.Finish());
  if (!ended.ok()) return ended;
  if (pulled.bytes.size() == bytes && Checksum(pulled.bytes) == pulled.checksum) return pulled;
  return MakeError(Reason::kCorruptChunk, "the model's constants were damaged on their way");
}

}  // namespace sluice
