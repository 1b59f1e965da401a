#include "common/launch/outlive_server.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

namespace sluice {
namespace {

constexpr unsigned kSecondsToOutlive = 2;

// What a signal handler may touch.
volatile sig_atomic_t stop_signal = 0;

void OnStop(int signal) {
  if (stop_signal != 0) return;
  stop_signal = signal;
  alarm(kSecondsToOutlive);
}

// Ends the process as the signal would have.
void OnAlarm(int) {
  signal(stop_signal, SIG_DFL);
  raise(stop_signal);
}

void WaitForAlarm() {
  while (stop_signal != 0) pause();
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void OutliveServer() {
  Handle(SIGALRM, OnAlarm);
  Handle(SIGTERM, OnStop);
  Handle(SIGINT, OnStop);
  atexit(WaitForAlarm);
}

bool WasToldToStop() { return stop_signal != 0; }

}  // namespace sluice
