// bare_server_main: answers calls of gRPC with the bytes that they bring, and does nothing else.
//
// tools/bench/crowd starts it for the mode "bare". It ends, as sluice_server does, when all workers
// have left, and then prints how many calls it had, in the form of that server's closing table.
// Exit codes: 0 done; 1 cannot listen; 2 bad command line.

#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/types/optional.h"
#include "common/base/command_line.h"
#include "common/base/malloc_tuning.h"
#include "common/wire/grpc_runtime.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice::bench {
namespace {

// Two calls of the ParameterServer service that are unary, with their messages as bytes.
using RawService = v1::ParameterServer::WithRawCallbackMethod_Heartbeat<
    v1::ParameterServer::WithRawCallbackMethod_Leave<v1::ParameterServer::Service>>;

class Echo final : public RawService {
 public:
  explicit Echo(int workers) : present_(workers) {}

  void AwaitLeaves() { present_.Wait(); }

  uint64_t calls() const { return calls_; }

 private:
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override {
    calls_.fetch_add(1, std::memory_order_relaxed);
    *response = *request;
    return Finished(*context);
  }

  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                  grpc::ByteBuffer* response) override {
    *response = grpc::ByteBuffer(nullptr, 0);
    present_.DecrementCount();
    return Finished(*context);
  }

  static grpc::ServerUnaryReactor* Finished(grpc::CallbackServerContext& context) {
    grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  std::atomic<uint64_t> calls_{0};
  absl::BlockingCounter present_;
};

int Main(int argc, char** argv) {
  CLI::App app("Answers calls with their own bytes; tools/bench/crowd starts it.",
               "bare_server_main");
  std::string address;
  int workers = 1;
  app.add_option("--listen", address, "the address to listen on")->required();
  app.add_option("--workers", workers, "ends when so many have left")
      ->check(CLI::PositiveNumber)
      ->required();
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  KeepFreedMemory();
  Echo echo(workers);
  KeepGrpcRunning();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&echo);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << absl::StrCat("bare_server_main: cannot listen on ", address) << std::endl;
    return 1;
  }
  echo.AwaitLeaves();
  server->Shutdown();
  const uint64_t rounds = echo.calls() - static_cast<uint64_t>(workers);  // each joined by a call
  std::cout << absl::StrCat("Sluice job of bare calls\n  pushes received  ", rounds,
                            "\n  accepted  ", rounds, "\n  steps  ", rounds)
            << std::endl;
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
