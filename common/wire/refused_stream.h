// A streaming call that a service refuses before it begins.

#ifndef SLUICE_COMMON_WIRE_REFUSED_STREAM_H_
#define SLUICE_COMMON_WIRE_REFUSED_STREAM_H_

#include "absl/status/status.h"
#include "common/wire/status.h"

namespace sluice {

// `Reactor` is one of gRPC's for the server's side of a stream. It deletes itself.
template <typename Reactor>
class RefusedStream final : public Reactor {
 public:
  explicit RefusedStream(const absl::Status& why) { this->Finish(ToGrpcStatus(why)); }
  void OnDone() override { delete this; }
};

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_REFUSED_STREAM_H_
