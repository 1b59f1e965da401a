// What one caller can make the server's door hold.

#ifndef SLUICE_SERVER_RPC_ACCESS_RPC_LIMITS_H_
#define SLUICE_SERVER_RPC_ACCESS_RPC_LIMITS_H_

#include "absl/time/time.h"

namespace sluice {

struct RpcLimits {
  // Of one message: a chunk of 1 MiB, or a layout of tens of thousands of tensors.
  static constexpr int kMessageBytes = 4 << 20;
  // Of one call's metadata, which is a token and what gRPC adds.
  static constexpr int kMetadataBytes = 8 << 10;

  // Observers at once, before callers who may do nothing else are refused.
  static constexpr int kObservers = 16;

  // Calls that may be open on one connection. A worker has about five; others wait for their turn.
  int streams = 256;
  // Until a new connection has made its handshakes, of TLS and of HTTP/2, and is else closed.
  absl::Duration handshake = absl::Seconds(10);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_RPC_LIMITS_H_
