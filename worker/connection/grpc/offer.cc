#include "worker/connection/grpc/offer.h"

#include <algorithm>
#include <vector>

#include "worker/connection/grpc/answer.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {
namespace {

constexpr char kInitializeParams[] = "/sluice.v1.ParameterServer/InitializeParams";

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

}  // namespace sluice
