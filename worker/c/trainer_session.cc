#include "worker/c/trainer_session.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/time.h"

namespace sluice {
namespace {

constexpr absl::Duration kUntilIdle = absl::Seconds(1);

}  // namespace

TrainerSession::TrainerSession(std::unique_ptr<ModuleSession> session)
    : place_(session->place()), shared_(std::make_shared<Shared>()) {
  shared_->session = std::move(session);
  exit_notice_ = std::make_unique<ExitNotice>([shared = shared_](int code) {
    if (code == 0) LeaveAtExit(*shared);
  });
}

absl::Status TrainerSession::Use(const std::function<absl::Status(ModuleSession& session)>& use) {
  shared_->mu.LockWhen(absl::Condition(&shared_->idle));
  shared_->idle = false;
  shared_->mu.Unlock();
  return UseAlone(*shared_, use);
}

absl::Status TrainerSession::Leave(bool stay) {
  const absl::Status left = Use([stay](ModuleSession& session) { return session.Leave(stay); });
  if (left.ok()) exit_notice_ = nullptr;
  return left;
}

void TrainerSession::LeaveAtExit(Shared& shared) {
  const bool idle = shared.mu.LockWhenWithTimeout(absl::Condition(&shared.idle), kUntilIdle);
  shared.idle = false;
  shared.mu.Unlock();
  if (!idle) return;
  UseAlone(shared, [](ModuleSession& session) { return session.Leave(false); }).IgnoreError();
}

absl::Status TrainerSession::UseAlone(
    Shared& shared, const std::function<absl::Status(ModuleSession& session)>& use) {
  const auto done = absl::MakeCleanup([&shared] {
    const absl::MutexLock lock(&shared.mu);
    shared.idle = true;
  });
  return use(*shared.session);
}

}  // namespace sluice
