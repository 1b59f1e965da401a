#include "worker/connection/grpc/probe.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/error.h"
#include "common/base/version.h"
#include "common/tensor/shared_memory.h"
#include "common/tensor/vector_copy.h"
#include "common/wire/chunk.h"
#include "common/wire/grpc_runtime.h"
#include "common/wire/messages.h"
#include "common/wire/settings.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/probe.pb.h"
#include "worker/connection/grpc/answer.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {
namespace {

constexpr char kMeasure[] = "/sluice.v1.Probe/Measure";

// Chunks that a probe asks for at once: at first one, then twice as many while they come fast.
constexpr uint32_t kMostChunks = 16;
constexpr absl::Duration kFastEnough = absl::Milliseconds(20);
constexpr uint64_t kPushedFrom = 4 * kChunkElements;  // elements that pushes cycle through

grpc::ByteBuffer EchoRequest(const SharedMemory* memory) {
  v1::MeasureRequest request;
  request.mutable_echo();
  if (memory != nullptr) *request.mutable_echo()->mutable_memory() = ToProto(memory->name());
  return EncodeMessage(request);
}

grpc::ByteBuffer SendRequest(uint32_t count) {
  v1::MeasureRequest request;
  request.mutable_send()->set_count(count);
  return EncodeMessage(request);
}

// The answer to an echo. After an error the call has ended.
absl::StatusOr<v1::EchoAnswer> ReadEcho(GrpcStream& stream) {
  grpc::ByteBuffer bytes;
  if (!stream.Read(&bytes)) {
    const absl::Status end = EndOf(stream.Finish());
    return end.ok() ? UnexpectedMessage("Measure", "echo") : end;
  }
  v1::MeasureResponse response;
  if (!DecodeMessage(bytes, &response) || !response.has_echo()) {
    return UnexpectedMessage("Measure", "echo");
  }
  return response.echo();
}

// What a pull does with each chunk: checks it and copies it to where the parameters lie.
class ChunkSink {
 public:
  absl::Status Take(GrpcStream& stream) {
    grpc::ByteBuffer bytes;
    if (!stream.Read(&bytes)) {
      const absl::Status end = EndOf(stream.Finish());
      return end.ok() ? UnexpectedMessage("Measure", "chunk") : end;
    }
    const auto chunk = DecodeChunk<v1::MeasureResponse>(bytes);
    if (!chunk.ok()) return chunk.status();
    if (chunk->encoded.has_value() || chunk->size() > kChunkElements) {
      return UnexpectedMessage("Measure", "plain chunk of 1 MiB");
    }
    Copy(*chunk);
    return absl::OkStatus();
  }

  uint64_t bytes() const { return bytes_; }

 private:
  void Copy(const TensorChunk& chunk) {
    uint64_t offset = next_++ % kChunks * kChunkElements;
    for (const FloatPiece& piece : chunk.pieces) {
      StreamTo(piece, absl::MakeSpan(values_).subspan(offset, piece.size()));
      offset += piece.size();
    }
    EndStreams();
    bytes_ += chunk.size() * sizeof(float);
  }

  static constexpr uint64_t kChunks = 4;
  std::vector<float> values_ = std::vector<float>(kChunks * kChunkElements);
  uint64_t next_ = 0;
  uint64_t bytes_ = 0;
};

// Asks for chunks so that the server always has a request, and few are on their way at the end.
class Puller {
 public:
  Puller(GrpcStream& stream, const Clock& clock, absl::Time end)
      : stream_(stream), clock_(clock), end_(end) {}

  absl::StatusOr<uint64_t> Run() {
    uint32_t under_way = Ask();
    uint32_t next = Ask();
    while (under_way > 0) {
      const absl::Time began = clock_.Now();
      for (uint32_t i = 0; i < under_way; ++i) {
        const absl::Status taken = sink_.Take(stream_);
        if (!taken.ok()) return taken;
      }
      const absl::Time now = clock_.Now();
      if (now - began < kFastEnough) count_ = std::min(2 * count_, kMostChunks);
      under_way = next;
      next = now < end_ ? Ask() : 0;
    }
    stream_.EndWrites();
    const absl::Status end = EndOf(stream_.Finish());
    if (!end.ok()) return end;
    return sink_.bytes();
  }

 private:
  // If the call has ended, the next read says so.
  uint32_t Ask() {
    stream_.Write(SendRequest(count_), Follows::kMore);
    return count_;
  }

  GrpcStream& stream_;
  const Clock& clock_;
  const absl::Time end_;
  uint32_t count_ = 1;
  ChunkSink sink_;
};

}  // namespace

double ProbedFlow::rate() const {
  return time > absl::ZeroDuration() ? static_cast<double>(bytes) / absl::ToDoubleSeconds(time) : 0;
}

GrpcProbe::GrpcProbe(GrpcEndpoint options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      channel_(options_.address, options_.credentials),
      lanes_(options_.address, options_.credentials) {}

absl::StatusOr<std::unique_ptr<GrpcProbe>> GrpcProbe::Connect(const GrpcEndpoint& options,
                                                              const Clock& clock) {
  KeepGrpcRunning();
  auto probe = absl::WrapUnique(new GrpcProbe(options, clock));
  const absl::Status connected = probe->channel_.Connect(options.connect_timeout);
  if (absl::IsUnavailable(connected)) {
    return absl::UnavailableError(absl::StrCat(
        "no server at ", options.address, " within ", absl::FormatDuration(options.connect_timeout),
        ": ", connected.message(), "; is it running, is the address right, and do both sides ",
        options.credentials == nullptr ? "speak plaintext?" : "trust each other's certificates?"));
  }
  if (!connected.ok()) return connected;
  probe->stub_ = std::make_unique<grpc::GenericStub>(probe->channel_.get());
  return probe;
}

absl::StatusOr<ProbedServer> GrpcProbe::Ask() {
  const auto memory = SharedMemory::Create(kChunkElements);
  GrpcStream stream(*stub_, kMeasure, kCallTimeout, options_.token);
  stream.Write(EchoRequest(memory.ok() ? memory->get() : nullptr), Follows::kNothing);
  const auto answer = ReadEcho(stream);
  if (!answer.ok()) return Explained(answer.status());
  return ProbedServer{answer->version(), answer->protocol(), answer->shares_memory()};
}

absl::StatusOr<absl::Time> GrpcProbe::AskTime() {
  grpc::ClientContext context;
  Prepare(context, kCallTimeout, "");
  v1::ServerState state;
  const absl::Status end =
      EndOf(v1::Inspector::NewStub(channel_.get())
                ->GetServerState(&context, v1::GetServerStateRequest(), &state));
  if (!end.ok()) return end;
  if (!state.has_started() || !state.has_uptime()) {
    return UnexpectedMessage("GetServerState", "started and uptime");
  }
  return FromProto(state.started()) + FromProto(state.uptime());
}

absl::StatusOr<std::vector<absl::Duration>> GrpcProbe::RoundTrips(int most,
                                                                  absl::Duration longest) {
  GrpcStream stream(*stub_, kMeasure, kCallTimeout, options_.token);
  const grpc::ByteBuffer echo = EchoRequest(nullptr);
  std::vector<absl::Duration> times;
  const absl::Time began = clock_.Now();
  absl::Time now = began;
  // The first one also begins the call, and is not counted.
  for (int i = 0; i <= most && (times.empty() || now - began < longest); ++i) {
    stream.Write(echo, Follows::kMore);
    const auto answer = ReadEcho(stream);
    if (!answer.ok()) return Explained(answer.status());
    const absl::Time then = std::exchange(now, clock_.Now());
    if (i > 0) times.push_back(now - then);
  }
  return times;
}

absl::StatusOr<ProbedFlow> GrpcProbe::Push(int connections, absl::Duration time) {
  return Move(connections, time,
              [this](grpc::GenericStub& stub, absl::Time end) { return PushUntil(stub, end); });
}

absl::StatusOr<ProbedFlow> GrpcProbe::Pull(int connections, absl::Duration time) {
  return Move(connections, time,
              [this](grpc::GenericStub& stub, absl::Time end) { return PullUntil(stub, end); });
}

absl::StatusOr<ProbedFlow> GrpcProbe::Move(int connections, absl::Duration time,
                                           const Mover& mover) {
  const auto lanes = lanes_.Get(static_cast<size_t>(connections) - 1);
  if (lanes.size() + 1 < static_cast<size_t>(connections)) {
    return absl::UnavailableError(absl::StrCat("only ", lanes.size() + 1, " of ", connections,
                                               " connections to ", options_.address,
                                               " can be opened"));
  }
  std::vector<absl::StatusOr<uint64_t>> moved(static_cast<size_t>(connections), uint64_t{0});
  const absl::Time began = clock_.Now();
  const absl::Time end = began + time;
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes[i]->thread.Run([&, i] { moved[i + 1] = mover(*lanes[i]->stub, end); });
  }
  moved[0] = mover(*stub_, end);
  for (const auto& lane : lanes) lane->thread.Drain();
  ProbedFlow flow;
  flow.time = clock_.Now() - began;
  for (const auto& bytes : moved) {
    if (!bytes.ok()) return Explained(bytes.status());
    flow.bytes += *bytes;
  }
  return flow;
}

absl::StatusOr<uint64_t> GrpcProbe::PushUntil(grpc::GenericStub& stub, absl::Time end) const {
  const SharedFloats gradient = Share(std::vector<float>(kPushedFrom));
  const Checksums checksums = ChecksumsFor(options_.address);
  GrpcStream stream(stub, kMeasure, kCallTimeout, options_.token);
  bool open = true;
  for (uint64_t i = 0; open && (i == 0 || clock_.Now() < end); ++i) {
    const uint64_t offset = i * kChunkElements % kPushedFrom;
    const grpc::ByteBuffer chunk =
        EncodeChunk(offset, gradient.Part(offset, kChunkElements), checksums);
    open = stream.Write(chunk, Follows::kMore);
  }
  if (open) stream.Write(EchoRequest(nullptr), Follows::kNothing);
  const auto answer = ReadEcho(stream);
  if (!answer.ok()) return answer.status();
  return answer->bytes();
}

absl::StatusOr<uint64_t> GrpcProbe::PullUntil(grpc::GenericStub& stub, absl::Time end) const {
  GrpcStream stream(stub, kMeasure, kCallTimeout, options_.token);
  return Puller(stream, clock_, end).Run();
}

absl::Status GrpcProbe::Explained(const absl::Status& status) const {
  if (!absl::IsUnimplemented(status)) return status;
  return absl::UnimplementedError(
      absl::StrCat("the server at ", options_.address,
                   " answers no probes: it is older than this program (Sluice ", kVersion,
                   "), or no server of Sluice; upgrade the server"));
}

}  // namespace sluice
