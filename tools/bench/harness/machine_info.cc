#include "tools/bench/harness/machine_info.h"

#include <signal.h>
#include <stdlib.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace sluice::bench {

void PrepareEnvironment(uint32_t threads) {
  signal(SIGPIPE, SIG_IGN);
  setenv("GLOG_minloglevel", "1", 0);  // each server would tell where it listens
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLOSC_NTHREADS"}) {
    setenv(name, absl::StrCat(threads).c_str(), 1);
  }
  setenv("PYTHONDONTWRITEBYTECODE", "1", 0);  // the peers lie in the source tree
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

std::string CongestionControl() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name = "unknown";
  file >> name;
  return name;
}

double LoadAverage() {
  double load = 0;
  getloadavg(&load, 1);
  return load;
}

uint64_t AvailableMemoryBytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  uint64_t kilobytes = 0;
  std::string unit;
  while (file >> name >> kilobytes) {
    if (name == "MemAvailable:") return kilobytes * 1024;
    std::getline(file, unit);
  }
  return 0;
}

}  // namespace sluice::bench
