#include "server/rpc/operator/passed_watch.h"

#include <utility>

#include "common/wire/status.h"

namespace sluice {

PassedWatch::PassedWatch(const v1::WatchStateRequest& request, Open open, OpenWatches& watches)
    : request_(request), open_(std::move(open)), watches_(watches) {
  watches_.Add(this);
  if (!open_.status.ok()) {
    Finish(ToGrpcStatus(open_.status));
    return;
  }
  open_.stub->async()->WatchState(open_.context.get(), &request_, &source_);
  source_.StartRead(&state_);
  source_.StartCall();
}

// The hold keeps the source from being done while its state is written.
void PassedWatch::OnRead(bool ok) {
  if (!ok) return;  // the source is about to be done
  source_.AddHold();
  StartWrite(&state_);
}

void PassedWatch::OnWriteDone(bool ok) {
  if (ok) {
    source_.StartRead(&state_);
  } else {
    open_.context->TryCancel();
  }
  source_.RemoveHold();
}

void PassedWatch::OnSourceDone(const grpc::Status& status) {
  Finish(ending_ ? grpc::Status::OK : open_.translate(status));
}

void PassedWatch::End() {
  ending_ = true;
  open_.context->TryCancel();
}

void PassedWatch::OnDone() {
  watches_.Remove(this);
  open_.done();
  delete this;
}

}  // namespace sluice
