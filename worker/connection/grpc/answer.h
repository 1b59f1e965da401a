// The deadline and the answer of calls that send tensors.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_ANSWER_H_
#define SLUICE_WORKER_CONNECTION_GRPC_ANSWER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/wire/chunk.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {

// The deadline of calls that do not wait for other workers.
inline constexpr absl::Duration kCallTimeout = absl::Seconds(60);

// The deadline of a call that carries `elements`: kCallTimeout, and the time of their transfer.
absl::Duration TransferTimeout(uint64_t elements);

// Reads the single answer to a stream of requests, and ends the call.
template <typename Answer>
absl::StatusOr<Answer> ReadAnswer(absl::string_view call, GrpcStream& stream) {
  grpc::ByteBuffer bytes;
  const bool answered = stream.Read(&bytes);
  const absl::Status status = EndOf(stream.Finish());
  if (!status.ok()) return status;
  Answer answer;
  if (!answered || !DecodeMessage(bytes, &answer)) return UnexpectedMessage(call, "message");
  return answer;
}

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_ANSWER_H_
