#include "worker/torch/training/gradient_group.h"

#include <torch/types.h>

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

// The tensors of a module one after the other in one, of which each tensor is a part.
class FlatTensors {
 public:
  explicit FlatTensors(std::vector<torch::Tensor> tensors) : tensors_(std::move(tensors)) {
    std::vector<torch::Tensor> parts;
    for (const torch::Tensor& tensor : tensors_) parts.push_back(tensor.flatten());
    flat_ = torch::cat(parts);
  }

  std::vector<torch::Tensor> flat() const { return {flat_}; }

  void Divide(int by) { flat_.div_(by); }

  void CopyBack() const {
    int64_t offset = 0;
    for (const torch::Tensor& tensor : tensors_) {
      tensor.copy_(flat_.narrow(0, offset, tensor.numel()).view_as(tensor));
      offset += tensor.numel();
    }
  }

 private:
  const std::vector<torch::Tensor> tensors_;
  torch::Tensor flat_;
};

std::vector<torch::Tensor> FloatingBuffers(const torch::nn::Module& module) {
  std::vector<torch::Tensor> buffers;
  for (const torch::Tensor& buffer : module.buffers()) {
    if (buffer.is_floating_point()) buffers.push_back(buffer);
  }
  return buffers;
}

class GlooGroup final : public GradientGroup {
 public:
  GlooGroup(MpiWorld world, Store store, const std::string& own_host)
      : GradientGroup(world), store_(std::move(store)) {
    auto options = c10d::ProcessGroupGloo::Options::create();
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own_host));
    options->threads = 1;
    gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store_, world.rank, world.size, options);
  }

  void Equalize(torch::nn::Module& module) override {
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> tensors = module.parameters();
    for (const torch::Tensor& buffer : FloatingBuffers(module)) tensors.push_back(buffer);
    const FlatTensors all(tensors);
    std::vector<torch::Tensor> flat = all.flat();
    gloo_->broadcast(flat)->wait();
    all.CopyBack();
  }

  void Average(torch::nn::Module& module) override {
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> tensors = FloatingBuffers(module);
    for (const torch::Tensor& parameter : module.parameters()) {
      if (parameter.grad().defined()) tensors.push_back(parameter.grad());
    }
    FlatTensors all(tensors);
    std::vector<torch::Tensor> flat = all.flat();
    gloo_->allreduce(flat)->wait();
    all.Divide(world().size);
    all.CopyBack();
  }

  void Barrier() override { gloo_->barrier()->wait(); }

 private:
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

absl::StatusOr<std::unique_ptr<GradientGroup>> GradientGroup::Join() {
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

absl::StatusOr<std::unique_ptr<GradientGroup>> GradientGroup::Join() {
  return absl::UnimplementedError(
      "this program was built without gloo; install libgloo-dev and build it again");
}

#endif

}  // namespace sluice
