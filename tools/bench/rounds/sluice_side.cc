#include "tools/bench/rounds/sluice_side.h"

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/malloc_tuning.h"
#include "common/base/random.h"
#include "common/tensor/layout.h"
#include "common/wire/grpc_runtime.h"
#include "server/server.h"
#include "tools/bench/harness/endpoint.h"
#include "tools/bench/harness/gradient.h"
#include "tools/bench/rounds/cell_credentials.h"
#include "worker/client/parameter_client.h"
#include "worker/connection/grpc/connection.h"

namespace sluice::bench {
namespace {

absl::StatusOr<JoinRequest> JoinAs(const Participant& participant) {
  LayoutRange vector;
  vector.name = "vector";
  vector.shape = {static_cast<uint32_t>(participant.elements)};
  vector.length = participant.elements;
  const auto layout = Layout::Create({vector});
  if (!layout.ok()) return layout.status();
  JoinRequest request;
  request.worker = absl::StrCat("worker-", participant.index);
  request.process_nonce = RandomNonce();
  request.host = "localhost";
  request.pid = static_cast<uint32_t>(getpid());
  request.layout = *layout;
  SgdOptions sgd;
  sgd.learning_rate = kLearningRate;
  request.optimizer.options = sgd;
  request.index = participant.index;
  return request;
}

ServerOptions OptionsFor(const Participant& participant, const SluiceOptions& sluice_options) {
  ServerOptions options;
  options.shard.job_id = "bench";
  options.shard.expected_workers = participant.workers;
  options.shard.consistency.order = ReductionOrder::kRank;  // as sluice_server has it in sync
  options.shard.ample_in_flight = true;
  options.threads = sluice_options.threads;
  if (sluice_options.shared_memory) options.shard.snapshots = SnapshotMemory::kShared;
  return options;
}

// As a program does, it writes the gradient after it has joined: there are never three vectors.
SharedFloats GradientIn(const std::shared_ptr<const SharedMemory>& memory, uint64_t elements) {
  if (memory == nullptr) return Share(SyntheticGradient(elements));
  WriteSyntheticGradient(memory->floats());
  return {memory->floats(), memory};
}

}  // namespace

absl::Status RunSluiceServer(const Participant& participant, SocketKind socket,
                             const SluiceOptions& sluice_options) {
  InitLogging();
  KeepFreedMemoryInOneHeap();
  BoundReadBuffers();
  const auto endpoint = MakeEndpoint(socket);
  if (!endpoint.ok()) return endpoint.status();
  ServerOptions options = OptionsFor(participant, sluice_options);
  options.listen = endpoint->address;
  absl::StatusOr<CellCredentials> credentials = CellCredentials();
  if (sluice_options.tls) credentials = MakeCellCredentials();
  if (!credentials.ok()) return credentials.status();
  options.credentials = credentials->server;
  auto started = Server::Start(options);
  if (!started.ok()) return started.status();
  // Never destroyed, since gRPC 1.51 sometimes waits 10 s for the poller of a closed connection.
  Server* const server = started->release();
  absl::Status answered;
  std::thread answers([&] {
    const bool tls = credentials->directory != nullptr;
    const std::string directory = tls ? credentials->directory->path() : "";
    answered = AnswerParent(JoinAddress({server->address().ToString(), directory}), nullptr);
    kill(getpid(), SIGTERM);  // Serve() takes it, if it still waits for workers
  });
  const int code = server->Serve();
  answers.join();
  if (code != 0) return absl::AbortedError("every worker was lost");
  return answered;
}

absl::Status RunSluiceWorker(const Participant& participant, const SluiceOptions& sluice_options) {
  InitLogging();
  KeepFreedMemory();
  GrpcConnectionOptions options;
  const CellAddress cell = SplitAddress(participant.address);
  options.address = cell.address;
  options.credentials = WorkerCredentials(cell.directory);
  auto connection = ConnectOverGrpc(options);
  if (!connection.ok()) return connection.status();
  auto request = JoinAs(participant);
  if (!request.ok()) return request.status();
  if (sluice_options.shared_memory) {
    auto memory = SharedMemory::Create(participant.elements);
    if (!memory.ok()) return memory.status();
    request->memory = *std::move(memory);
  }
  std::vector<float> parameters(participant.elements);
  ParameterClient client(*std::move(connection));
  const absl::Status joined = client.Join(*request, absl::MakeSpan(parameters));
  if (!joined.ok()) return joined;
  const SharedFloats gradient = GradientIn(request->memory, participant.elements);
  const absl::Status answered = AnswerParent("", [&] {
    return client.PushPull(gradient, 1, absl::nullopt, absl::MakeSpan(parameters)).status();
  });
  if (!answered.ok()) return answered;
  const absl::Status right = CheckParameters(gradient.values, client.step().value(), parameters);
  return right.ok() ? client.Leave({}) : right;
}

}  // namespace sluice::bench
