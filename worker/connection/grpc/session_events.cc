#include "worker/connection/grpc/session_events.h"

#include <utility>

#include "absl/status/status.h"
#include "common/wire/chunk.h"
#include "common/wire/join.h"
#include "worker/connection/grpc/call.h"

namespace sluice {
namespace {

constexpr char kJoin[] = "/sluice.v1.ParameterServer/Join";
constexpr char kJoinInParts[] = "/sluice.v1.ParameterServer/JoinInParts";

bool FitsMessage(const v1::JoinRequest& request) { return request.ByteSizeLong() <= kMaxMessage; }

// If the server answers before it has read all parts, the rest is not sent.
void WriteParts(const std::vector<v1::JoinRequest>& parts, GrpcStream& stream) {
  for (const v1::JoinRequest& part : parts) {
    if (!stream.Write(EncodeMessage(part), part.more() ? Follows::kMore : Follows::kNothing))
      return;
  }
}

}  // namespace

SessionEvents::SessionEvents(grpc::GenericStub& stub, v1::JoinRequest request,
                             const CallMetadata& metadata)
    : stream_(stub, FitsMessage(request) ? kJoin : kJoinInParts, absl::InfiniteDuration(),
              metadata) {
  if (FitsMessage(request)) {
    stream_.Write(EncodeMessage(request), Follows::kNothing);
  } else {
    WriteParts(SplitJoin(std::move(request)), stream_);
  }
}

absl::StatusOr<v1::JoinEvent> SessionEvents::Next() {
  if (ended_) return absl::UnavailableError("the server ended the session");
  grpc::ByteBuffer bytes;
  v1::JoinEvent event;
  const bool came = stream_.Read(&bytes);
  if (came && DecodeMessage(bytes, &event)) return event;
  ended_ = true;
  if (came) return UnexpectedMessage("Join", "JoinEvent");
  const absl::Status end = EndOf(stream_.Finish());
  return end.ok() ? absl::UnavailableError("the server ended the session") : end;
}

}  // namespace sluice
