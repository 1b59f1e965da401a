// Limits on what one caller can make the gRPC server hold. README.md says where the others are.

#ifndef SLUICE_SERVER_RPC_ACCESS_RPC_LIMITS_H_
#define SLUICE_SERVER_RPC_ACCESS_RPC_LIMITS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/wire/join.h"

namespace sluice {

struct RpcLimits {
  // Size of one message: enough for a chunk of 1 MiB or a layout of tens of thousands of tensors. A
  // larger layout comes in parts.
  static constexpr int kMessageBytes = kMaxMessage;
  // Size of one call's metadata: the token and what gRPC adds.
  static constexpr int kMetadataBytes = 8 << 10;

  // The most observers at once. If there are so many, a caller whose certificate has only the role
  // observer may not join.
  static constexpr int kObservers = 16;

  // Open calls of one connection; further calls wait. A worker has about five.
  int streams = 256;
  // Time for a new connection's handshakes (TLS and HTTP/2); after that it is closed. So is a
  // connection that has begun no call after twice that time.
  absl::Duration handshake = absl::Seconds(10);
  // Time in which the one request of a call must come, or all parts of a request to join
  // (JoinInParts). Tests set it.
  absl::Duration request = absl::Seconds(60);
  // Connections that may be open at once. The limit on open files may allow fewer, see
  // ConnectionsThatFit().
  int connections = 16384;
  // Connections that may be open from one IP address at once; 0: half of all.
  int connections_of_one_address = 0;
  // Connections of HTTP (--page, --metrics) that may be open beside these; each takes one
  // descriptor. They are counted in ConnectionsThatFit().
  int http_connections = 0;
};

// Descriptors that are kept for the rest of the program: shared memory, the journal, checkpoints.
// All other descriptors are for connections; each connection takes two.
inline constexpr int kOtherDescriptors = 256;
inline constexpr int kDescriptorsOfConnection = 2;

// Returns how many bytes one of so many connections may send ahead: bytes of messages that the
// server does not read yet. All together send at most 64 MiB ahead, but each at least 64 KiB, with
// which a message is still received at full speed. With 16 connections or fewer gRPC decides, and
// lets each send 4 MiB or more; then the result is absent.
absl::optional<int> ReadAheadBytes(uint32_t connections);

// Returns how many connections may be open at once if the process may open `descriptors` files:
// limits.connections, or fewer, but at least 16.
int ConnectionsThatFit(const RpcLimits& limits, uint64_t descriptors);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_RPC_LIMITS_H_
