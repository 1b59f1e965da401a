// The answer to a call that brings one value of many bytes: a first message, then one part after
// the other, from where the bytes lie.

#ifndef SLUICE_SERVER_RPC_BYTE_STREAM_H_
#define SLUICE_SERVER_RPC_BYTE_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/wire/chunk.h"
#include "server/state/wire_bytes.h"

namespace sluice {

// gRPC calls the methods, one after the other. The owner says when it is destroyed: see OnDone().
class ByteStream : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  void OnWriteDone(bool ok) final {
    if (ok) {
      SendNext();
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }

 protected:
  explicit ByteStream(WireBytes& wire_bytes) : wire_bytes_(wire_bytes) {}

  // Called once. The parts are in that field of their messages; `owner` keeps the bytes, which lie
  // in one place or in several.
  void Send(const grpc::ByteBuffer& first, uint32_t field, std::vector<absl::string_view> bytes,
            std::shared_ptr<const void> owner) {
    field_ = field;
    left_ = std::move(bytes);
    owner_ = std::move(owner);
    message_ = first;
    StartWrite(&message_);
  }

 private:
  void SendNext() {
    while (place_ < left_.size() && left_[place_].empty()) ++place_;
    if (place_ == left_.size()) return Finish(grpc::Status::OK);
    absl::string_view& left = left_[place_];
    message_ = EncodeBytes(field_, left.substr(0, kBytesOfPart), owner_);
    left.remove_prefix(std::min(left.size(), kBytesOfPart));
    wire_bytes_.AddSent(message_.Length());
    StartWrite(&message_);
  }

  WireBytes& wire_bytes_;
  uint32_t field_ = 0;
  std::vector<absl::string_view> left_;
  size_t place_ = 0;  // of what is sent now
  std::shared_ptr<const void> owner_;
  grpc::ByteBuffer message_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_BYTE_STREAM_H_
