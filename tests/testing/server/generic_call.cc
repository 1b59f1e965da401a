#include "tests/testing/server/generic_call.h"

#include <chrono>
#include <vector>

#include "common/wire/status.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kCallPatience(30);

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

GenericCall::GenericCall(grpc::GenericStub& stub, const std::string& method) {
  context_.set_deadline(std::chrono::system_clock::now() + kCallPatience);
  stream_ = stub.PrepareCall(&context_, method, &queue_);
  stream_->StartCall(this);
  Wait();
}

GenericCall::~GenericCall() {
  context_.TryCancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool GenericCall::Write(const std::string& request) {
  stream_->Write(ToBuffer(request), this);
  return Wait();
}

void GenericCall::WritesDone() {
  stream_->WritesDone(this);
  Wait();
}

absl::optional<std::string> GenericCall::Read() {
  grpc::ByteBuffer answer;
  stream_->Read(&answer, this);
  if (!Wait()) return absl::nullopt;
  return ToString(answer);
}

absl::Status GenericCall::Finish() {
  grpc::Status status;
  stream_->Finish(&status, this);
  Wait();
  return FromGrpcStatus(status);
}

// For the one operation under way.
bool GenericCall::Wait() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

absl::Status CallOnce(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const std::string& request) {
  grpc::GenericStub stub(channel);
  GenericCall call(stub, method);
  call.Write(request);
  call.WritesDone();
  return call.Read().has_value() ? absl::OkStatus() : call.Finish();
}

}  // namespace sluice
