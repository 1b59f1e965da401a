#include "server/stop_signals.h"

#include <signal.h>

#include <algorithm>

namespace sluice {
namespace {

// A blocked signal comes even if the process ignores it, as nohup has it ignore SIGHUP.
bool IsIgnored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (!IsIgnored(SIGHUP)) sigaddset(&signals, SIGHUP);
  return signals;
}

}  // namespace

void BlockStopSignals() {
  sigset_t signals = StopSignals();
  sigaddset(&signals, SIGPIPE);  // a write then fails instead
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int WaitForStopSignal() {
  const sigset_t signals = StopSignals();
  const timespec tick = absl::ToTimespec(kServerTick);
  return std::max(sigtimedwait(&signals, nullptr, &tick), 0);
}

}  // namespace sluice
