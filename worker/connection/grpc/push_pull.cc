#include "worker/connection/grpc/push_pull.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/tensor/vector_copy.h"
#include "common/wire/messages.h"
#include "worker/connection/grpc/answer.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {
namespace {

constexpr char kName[] = "PushPull";
constexpr char kMethod[] = "/sluice.v1.ParameterServer/PushPull";

// Writes all parameters, or none.
absl::Status WriteAll(v1::TensorChunk* message, absl::Span<float> parameters) {
  const auto chunk = TakeChunk(message);
  if (!chunk.ok()) return chunk.status();
  if (chunk->encoded.has_value() || chunk->offset != 0 || chunk->size() != parameters.size()) {
    return MakeError(
        Reason::kBadChunk,
        absl::StrCat("the answer to PushPull has ", chunk->size(), " elements from ", chunk->offset,
                     " on, expected all ", parameters.size(), ", not encoded"));
  }
  for (const FloatPiece& piece : chunk->pieces) CopyTo(piece, parameters);  // there is one
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PushPullAnswer> GrpcPushPull(grpc::GenericStub& stub, const PushHeader& header,
                                            const SharedFloats& gradient,
                                            const PullRequest& request,
                                            absl::Span<float> parameters,
                                            const GrpcPushPullOptions& options) {
  v1::PushPullRequest message;
  *message.mutable_push() = ToProto(header);
  *message.mutable_pull() = ToProto(request);
  GrpcStream stream(stub, kMethod, options.timeout, options.metadata);
  stream.Write(Joined(EncodeMessage(message), EncodeChunk(0, gradient, options.checksums)),
               Follows::kNothing);
  auto answer = ReadAnswer<v1::PushPullResponse>(kName, stream);
  if (!answer.ok()) return answer.status();
  if (!answer->has_push()) return UnexpectedMessage(kName, "answer to the push");
  if (!answer->has_pull()) return UnexpectedMessage(kName, "header");
  const auto outcome = FromProto(answer->push());
  if (!outcome.ok()) return outcome.status();
  const PullHeader pull = FromProto(answer->pull());
  if (pull.not_modified && request.have_step == pull.step) return PushPullAnswer{*outcome, pull};
  if (pull.not_modified || !answer->has_parameters()) return UnexpectedMessage(kName, "parameters");
  const absl::Status written = WriteAll(answer->mutable_parameters(), parameters);
  if (!written.ok()) return written;
  return PushPullAnswer{*outcome, pull};
}

}  // namespace sluice
