#include "worker/connection/grpc/stream.h"

#include "worker/connection/grpc/call.h"

namespace sluice {

GrpcStream::GrpcStream(grpc::GenericStub& stub, const std::string& method, absl::Duration timeout,
                       const std::string& token) {
  Prepare(context_, timeout, token);
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
  call_->Read(answer, nullptr);
  return Wait();
}

grpc::Status GrpcStream::Finish() {
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
