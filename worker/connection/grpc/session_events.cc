#include "worker/connection/grpc/session_events.h"

#include "absl/status/status.h"
#include "worker/connection/grpc/call.h"

namespace sluice {

SessionEvents::SessionEvents(v1::ParameterServer::Stub& stub, const v1::JoinRequest& request,
                             const std::string& token) {
  Prepare(context_, absl::InfiniteDuration(), token);
  reader_ = stub.Join(&context_, request);
}

SessionEvents::~SessionEvents() {
  context_.TryCancel();
  if (reader_ != nullptr) (void)reader_->Finish();
}

absl::StatusOr<v1::JoinEvent> SessionEvents::Next() {
  if (reader_ == nullptr) return absl::UnavailableError("the server ended the session");
  v1::JoinEvent event;
  if (reader_->Read(&event)) return event;
  const absl::Status end = EndOf(reader_->Finish());
  reader_ = nullptr;
  return end.ok() ? absl::UnavailableError("the server ended the session") : end;
}

}  // namespace sluice
