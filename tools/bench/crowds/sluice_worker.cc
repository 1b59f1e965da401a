#include "tools/bench/crowds/sluice_worker.h"

#include <unistd.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_memory.h"
#include "tools/bench/harness/gradient.h"
#include "worker/connection/grpc/connection.h"

namespace sluice::bench {
namespace {

absl::StatusOr<JoinRequest> RequestOf(const CrowdOptions& options, uint32_t index) {
  LayoutRange vector;
  vector.name = "vector";
  vector.shape = {static_cast<uint32_t>(options.elements)};
  vector.length = options.elements;
  const auto layout = Layout::Create({vector});
  if (!layout.ok()) return layout.status();
  JoinRequest request;
  request.worker = absl::StrCat("worker-", index);
  request.process_nonce = RandomNonce();
  request.host = "localhost";
  request.pid = static_cast<uint32_t>(getpid());
  request.layout = *layout;
  request.optimizer.options = SgdOptions{kLearningRate};
  request.index = index;
  return request;
}

// Without `own_connection` all workers of a process would share one TCP connection.
absl::StatusOr<std::unique_ptr<ServerConnection>> ConnectTo(const CrowdOptions& crowd) {
  GrpcConnectionOptions options;
  options.address = crowd.address;
  options.own_connection = true;
  options.one_call = !crowd.two_calls;
  return ConnectOverGrpc(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CrowdWorker>> SluiceWorker::Connect(const CrowdOptions& options,
                                                                   uint32_t index,
                                                                   const SharedFloats& gradient) {
  auto request = RequestOf(options, index);
  if (!request.ok()) return request.status();
  auto connection = ConnectTo(options);
  if (!connection.ok()) return connection.status();
  if (options.shared_memory) {
    auto memory = SharedMemory::Create(options.elements);
    if (!memory.ok()) return memory.status();
    request->memory = *std::move(memory);
  }
  return std::unique_ptr<CrowdWorker>(
      new SluiceWorker(options, gradient, *std::move(request), *std::move(connection)));
}

SluiceWorker::SluiceWorker(const CrowdOptions& options, SharedFloats gradient, JoinRequest request,
                           std::unique_ptr<ServerConnection> connection)
    : CrowdWorker(options.compute),
      gradient_(std::move(gradient)),
      request_(std::move(request)),
      parameters_(options.elements),
      client_(std::move(connection)) {}

absl::Status SluiceWorker::Join() {
  const absl::Status joined = client_.Join(request_, absl::MakeSpan(parameters_));
  if (!joined.ok() || request_.memory == nullptr) return joined;
  const absl::Span<float> memory = request_.memory->floats();  // holds zeroes now
  absl::c_copy(gradient_.values, memory.begin());
  gradient_ = {memory, request_.memory};
  return joined;
}

absl::StatusOr<Disposition> SluiceWorker::DoRound() {
  const auto report = client_.PushPull(gradient_, 1, absl::nullopt, absl::MakeSpan(parameters_));
  if (!report.ok()) return report.status();
  return report->disposition;
}

}  // namespace sluice::bench
