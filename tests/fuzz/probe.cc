// What a caller sends to the Probe service, cut into slices as gRPC may hand it over: what is taken
// of it is what generated code reads in the same bytes, and within the limits that probe.proto
// sets.
#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/encoding/checksum.h"
#include "common/wire/chunk.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/rpc/probe_request.h"
#include "sluice/v1/probe.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"
#include "tests/testing/buffers.h"

namespace sluice {
namespace {

void CheckProbedChunk(const v1::TensorChunk& chunk, const ProbeRequest& taken) {
  CHECK(taken.kind == ProbeRequest::Kind::kChunk);
  CHECK(taken.elements >= 1 && taken.elements <= kChunkElements);
  CHECK_EQ(taken.elements * sizeof(float), chunk.payload().size());
  CHECK(!chunk.has_shared() && !chunk.has_encoding());
  CHECK(!chunk.has_checksum() || chunk.checksum() == Checksum(chunk.payload()));
}

void CheckEcho(const v1::Echo& echo, const ProbeRequest& taken) {
  CHECK(taken.kind == ProbeRequest::Kind::kEcho);
  CHECK_EQ(taken.memory.has_value(), echo.has_memory());
  if (taken.memory.has_value()) CHECK_EQ(taken.memory->elements, echo.memory().elements());
}

void CheckSend(const v1::SendChunks& send, const ProbeRequest& taken) {
  CHECK(taken.kind == ProbeRequest::Kind::kSend);
  CHECK(taken.chunks >= 1 && taken.chunks <= ProbeLimits::kMostAsked);
  CHECK_EQ(taken.chunks, send.count());
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const size_t cut = input.Byte();
  const std::string message(input.Rest());
  const auto taken = ReadProbeRequest(Sliced(message, {std::min(cut, message.size())}));
  v1::MeasureRequest request;
  const bool valid = request.ParseFromArray(message.data(), static_cast<int>(message.size()));
  if (!taken.ok()) {
    CheckRefusal(taken.status(), {Reason::kBadArgument, Reason::kBadChunk, Reason::kCorruptChunk});
    CHECK(!valid || !request.has_echo() || message.size() > 256) << request.ShortDebugString();
    return;
  }
  CHECK(valid) << taken.status();
  if (request.has_chunk()) return CheckProbedChunk(request.chunk(), *taken);
  if (request.has_send()) return CheckSend(request.send(), *taken);
  CHECK(request.has_echo());
  CheckEcho(request.echo(), *taken);
}

}  // namespace sluice
