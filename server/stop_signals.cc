#include "server/stop_signals.h"

#include <signal.h>

#include <algorithm>

namespace sluice {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

void BlockStopSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int WaitForStopSignal() {
  const sigset_t signals = StopSignals();
  const timespec tick = absl::ToTimespec(kServerTick);
  return std::max(sigtimedwait(&signals, nullptr, &tick), 0);
}

}  // namespace sluice
