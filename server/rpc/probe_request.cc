#include "server/rpc/probe_request.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/messages.h"
#include "server/rpc/access/rpc_limits.h"
#include "sluice/v1/probe.pb.h"

namespace sluice {
namespace {

// A larger request can only be a chunk.
constexpr uint64_t kMostOfSmallRequest = 256;

absl::StatusOr<ProbeRequest> ReadProbedChunk(const grpc::ByteBuffer& message) {
  const auto chunk = DecodeChunk<v1::MeasureRequest>(message);
  if (!chunk.ok()) return chunk.status();
  if (chunk->encoded.has_value()) {
    return MakeError(Reason::kBadArgument, "the chunk is encoded, expected plain elements");
  }
  if (chunk->size() == 0 || chunk->size() > kChunkElements) {
    return MakeError(Reason::kBadChunk, absl::StrCat("the chunk has ", chunk->size(),
                                                     " elements, expected 1 to ", kChunkElements));
  }
  ProbeRequest request;
  request.kind = ProbeRequest::Kind::kChunk;
  request.elements = chunk->size();
  return request;
}

ProbeRequest EchoIn(const v1::Echo& echo) {
  ProbeRequest request;
  if (echo.has_memory()) request.memory = FromProto(echo.memory());
  return request;
}

absl::StatusOr<ProbeRequest> ReadSend(const v1::SendChunks& send) {
  if (send.count() == 0 || send.count() > ProbeLimits::kMostAsked) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("field send.count is ", send.count(), ", expected 1 to ",
                                  ProbeLimits::kMostAsked));
  }
  ProbeRequest request;
  request.kind = ProbeRequest::Kind::kSend;
  request.chunks = send.count();
  return request;
}

}  // namespace

absl::StatusOr<ProbeRequest> ReadProbeRequest(const grpc::ByteBuffer& message) {
  if (message.Length() > kMostOfSmallRequest) return ReadProbedChunk(message);
  v1::MeasureRequest request;
  if (!DecodeMessage(message, &request)) {
    return MakeError(Reason::kBadArgument, "the request is not a valid MeasureRequest");
  }
  if (request.has_chunk()) return ReadProbedChunk(message);
  if (request.has_echo()) return EchoIn(request.echo());
  if (request.has_send()) return ReadSend(request.send());
  return MakeError(Reason::kBadArgument,
                   "the request has no field that is set, expected echo, chunk or send");
}

}  // namespace sluice
