#include "worker/torch/training/gloo_group.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/net/network.h"
#include "worker/torch/guarded.h"

#if __has_include(<gloo/context.h>)
#define USE_C10D_GLOO  // as in the library, which does not tell
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

namespace sluice {

#ifdef USE_C10D_GLOO

namespace {

using Store = c10::intrusive_ptr<c10d::TCPStore>;

class GlooGroup final : public GradientGroup {
 public:
  GlooGroup(MpiWorld world, Store store, const std::string& own_host)
      : GradientGroup(world), store_(std::move(store)) {
    auto options = c10d::ProcessGroupGloo::Options::create();
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own_host));
    options->threads = 1;
    gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store_, world.rank, world.size, options);
  }

  void Sum(torch::Tensor& values) override {
    std::vector<torch::Tensor> list = {values};
    gloo_->allreduce(list)->wait();
  }

  void Barrier() override { gloo_->barrier()->wait(); }

 private:
  void Broadcast(torch::Tensor& values) override {
    std::vector<torch::Tensor> list = {values};
    gloo_->broadcast(list)->wait();
  }

  const Store store_;  // rank 0's serves the others
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
};

Store OpenStore(const std::string& host, uint16_t port, bool serves) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = serves;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

std::string HostOf(const MpiWorld& world) { return world.one_node ? "127.0.0.1" : HostName(); }

}  // namespace

absl::StatusOr<std::unique_ptr<GradientGroup>> JoinGlooGroup() {
  if (!LaunchedByMpi()) {
    return absl::InvalidArgumentError(
        "allreduce needs several ranks; launch with mpirun -n N or srun --mpi=pmix -n N");
  }
  Store store;
  const auto serve = [&store](const MpiWorld& world) -> absl::StatusOr<std::string> {
    return Guarded([&] {
      store = OpenStore(HostOf(world), 0, true);
      return absl::StrCat(HostOf(world), " ", store->getPort());
    });
  };
  const auto launch = MpiBootstrap([](const MpiWorld&) { return absl::OkStatus(); }, serve);
  if (!launch.ok()) return launch.status();
  return Guarded([&]() -> std::unique_ptr<GradientGroup> {
    const std::pair<std::string, std::string> at = absl::StrSplit(launch->blob, ' ');
    int port = 0;
    if (!absl::SimpleAtoi(at.second, &port)) throw std::invalid_argument("no port from rank 0");
    if (store == nullptr) store = OpenStore(at.first, static_cast<uint16_t>(port), false);
    return std::make_unique<GlooGroup>(launch->world, store, HostOf(launch->world));
  });
}

#else

absl::StatusOr<std::unique_ptr<GradientGroup>> JoinGlooGroup() {
  return absl::UnimplementedError(
      "this program was built without gloo; install libgloo-dev and build it again");
}

#endif

}  // namespace sluice
