#include "tools/bench/harness/row.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice::bench {
namespace {

using Flags = std::vector<std::string>;

constexpr char kSockets[] = "tools/bench/rounds/participant_main";
constexpr char kMpi[] = "tools/bench/peers/mpi_peer_main";
constexpr char kTorch[] = "tools/bench/peers/torch_rpc.py";
constexpr char kPython[] = "tools/bench/peers/python_worker.py";
constexpr char kGloo[] = "tools/bench/peers/gloo_allreduce.py";
constexpr char kMpi4py[] = "tools/bench/peers/mpi4py_blosc.py";

Row Direct(const char* name, const char* program, Flags flags) {
  Row row;
  row.name = name;
  row.program = program;
  row.flags = std::move(flags);
  return row;
}

Row Congestion(const char* name, const std::string& algorithm) {
  Row row = Direct(name, kSockets, {"--side=plain", "--socket=tcp", "--congestion=" + algorithm});
  row.needs.push_back({absl::StrCat("a kernel with ", algorithm, " that lets this user choose it"),
                       {kSockets, "--probe-congestion=" + algorithm}});
  return row;
}

Row Mpi(const char* name, const char* program, Flags flags) {
  Row row = Direct(name, program, std::move(flags));
  row.launch = RowLaunch::kMpirun;
  row.server_is_told = true;
  row.needs.push_back({"openmpi-bin (tools/setup)", {"mpirun", "--version"}});
  return row;
}

Row MpiAllreduce(const char* name) {
  Row row = Mpi(name, kMpi, {"--allreduce"});
  row.has_server = row.server_is_told = false;
  return row;
}

Need Module(const std::string& python, const char* module, const char* package) {
  return {absl::StrCat(package, " (tools/setup peers)"),
          {python, "-c", absl::StrCat("import ", module)}};
}

Row Torch(const std::string& python, const char* name, const char* program, Flags flags) {
  Row row = Direct(name, program, std::move(flags));
  row.needs.push_back(Module(python, "torch.distributed.rpc", "python3-torch"));
  row.needs.push_back(Module(python, "numpy", "python3-numpy"));
  return row;
}

Row PythonWorker(const std::string& python, const char* name, Flags flags) {
  Row row = Direct(name, kPython, std::move(flags));
  row.needs.push_back(Module(python, "torch", "python3-torch"));
  row.needs.push_back(Module(python, "numpy", "python3-numpy"));
  return row;
}

Row TorchRpc(const std::string& python, const char* name, Flags flags) {
  Row row = Torch(python, name, kTorch, std::move(flags));
  row.takes_layers = true;
  return row;
}

Row GlooAllreduce(const std::string& python, const char* name) {
  Row row = Torch(python, name, kGloo, {});
  row.has_server = false;
  return row;
}

Row Mpi4pyBlosc(const std::string& python, const char* name, Flags flags) {
  Row row = Mpi(name, kMpi4py, std::move(flags));
  row.takes_layers = row.warms_up_at_once = true;
  row.needs.push_back(Module(python, "mpi4py", "python3-mpi4py"));
  row.needs.push_back(Module(python, "blosc", "python3-blosc"));
  row.needs.push_back(Module(python, "numpy", "python3-numpy"));
  return row;
}

}  // namespace

std::vector<Row> AllRows(const std::string& python) {
  return {
      Direct("sluice-unix", kSockets, {"--side=sluice", "--socket=unix"}),
      Direct("sluice-tcp", kSockets, {"--side=sluice", "--socket=tcp"}),
      Direct("sluice-tcp-tls", kSockets, {"--side=sluice", "--socket=tcp", "--tls"}),
      Direct("sluice-shm", kSockets, {"--side=sluice", "--socket=unix", "--shared-memory"}),
      PythonWorker(python, "python-unix", {}),
      PythonWorker(python, "python-shm", {"--shared-memory"}),
      Direct("plain-unix", kSockets, {"--side=plain", "--socket=unix"}),
      Direct("plain-tcp", kSockets, {"--side=plain", "--socket=tcp"}),
      Congestion("plain-tcp-cubic", "cubic"),
      Congestion("plain-tcp-bbr", "bbr"),
      Direct("plain-sgd-unix", kSockets, {"--side=plain", "--socket=unix", "--sgd"}),
      Direct("plain-sgd-tcp", kSockets, {"--side=plain", "--socket=tcp", "--sgd"}),
      Mpi("mpi-sendrecv", kMpi, {}),
      TorchRpc(python, "rpc-shm", {}),
      TorchRpc(python, "rpc-tcp", {"--transport=uv", "--channel=basic"}),
      Mpi4pyBlosc(python, "mpi4py-blosc", {"--dtype=float64"}),
      Mpi4pyBlosc(python, "mpi4py-blosc-f32", {"--dtype=float32"}),
      MpiAllreduce("mpi-allreduce"),
      GlooAllreduce(python, "gloo-allreduce"),
  };
}

}  // namespace sluice::bench
