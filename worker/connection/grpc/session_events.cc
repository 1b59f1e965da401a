#include "worker/connection/grpc/session_events.h"

#include <utility>

#include "worker/connection/grpc/call.h"

namespace sluice {

SessionEvents::SessionEvents(v1::ParameterServer::Stub& stub, const v1::JoinRequest& request,
                             const std::string& token)
    : request_(request) {
  Prepare(context_, absl::InfiniteDuration(), token);
  stub.async()->Join(&context_, &request_, this);
  StartRead(&read_);
  StartCall();
}

SessionEvents::~SessionEvents() {
  context_.TryCancel();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &SessionEvents::IsDone));
}

absl::StatusOr<v1::JoinEvent> SessionEvents::Next() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &SessionEvents::HasNext));
  if (events_.empty()) return end_;
  v1::JoinEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void SessionEvents::AwaitChange(absl::Duration longest) {
  absl::MutexLock lock(&mu_);
  awaited_ = received_ + 1;
  mu_.AwaitWithTimeout(absl::Condition(this, &SessionEvents::HasChanged), longest);
  end_noticed_ = done_;
}

void SessionEvents::OnReadDone(bool ok) {
  if (!ok) return;  // OnDone() follows
  {
    absl::MutexLock lock(&mu_);
    events_.push_back(std::move(read_));
    ++received_;
  }
  read_.Clear();
  StartRead(&read_);
}

void SessionEvents::OnDone(const grpc::Status& status) {
  absl::Status end = EndOf(status);
  if (end.ok()) end = absl::UnavailableError("the server ended the session");
  absl::MutexLock lock(&mu_);
  end_ = std::move(end);
  done_ = true;
}

}  // namespace sluice
