#include "worker/connection/grpc/stream.h"

#include "common/wire/deadline.h"
#include "worker/connection/grpc/call.h"

namespace sluice {

GrpcStream::GrpcStream(grpc::GenericStub& stub, const std::string& method, absl::Duration timeout,
                       const CallMetadata& metadata) {
  Prepare(context_, timeout, metadata);
  // The call is sent together with its first message: one packet, and the server wakes up once.
  context_.set_initial_metadata_corked(true);
  call_ = stub.PrepareCall(&context_, method, &queue_);
  call_->StartCall(nullptr);  // corked: nothing happens that could complete
}

GrpcStream::~GrpcStream() {
  if (!finished_) {
    Cancel();
    Finish();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool GrpcStream::Write(const grpc::ByteBuffer& message, Follows follows) {
  grpc::WriteOptions options;
  if (follows == Follows::kMoreAtOnce) options.set_buffer_hint();
  if (follows == Follows::kNothing) options.set_last_message();
  call_->Write(message, options, nullptr);
  return Wait();
}

void GrpcStream::EndWrites() {
  call_->WritesDone(nullptr);
  Wait();
}

bool GrpcStream::Read(grpc::ByteBuffer* answer) {
  StartRead();
  EndRead();
  reading_ = Reading::kNot;
  answer->Swap(&answer_);
  answer_.Clear();
  return came_;
}

bool GrpcStream::AwaitAnswer(absl::Duration longest) {
  StartRead();
  if (reading_ == Reading::kWaits && longest < absl::InfiniteDuration()) {
    void* tag = nullptr;
    bool ok = false;
    const auto next = queue_.AsyncNext(&tag, &ok, DeadlineAfter(longest));
    if (next == grpc::CompletionQueue::TIMEOUT) return false;
    came_ = next == grpc::CompletionQueue::GOT_EVENT && ok;
    reading_ = Reading::kDone;
  }
  EndRead();
  return true;
}

void GrpcStream::StartRead() {
  if (reading_ != Reading::kNot) return;
  answer_.Clear();
  call_->Read(&answer_, nullptr);
  reading_ = Reading::kWaits;
}

void GrpcStream::EndRead() {
  if (reading_ != Reading::kWaits) return;
  came_ = Wait();
  reading_ = Reading::kDone;
}

grpc::Status GrpcStream::Finish() {
  EndRead();
  grpc::Status status;
  call_->Finish(&status, nullptr);
  Wait();
  finished_ = true;
  return status;
}

// Only one operation is in progress at a time, so the queue's next event is about that one.
bool GrpcStream::Wait() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

}  // namespace sluice
