#include "common/launch/outlive_server.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

namespace sluice {
namespace {

constexpr int kSecondsToOutlive = 2;  // at least
// How long mpirun waits for the ranks to end before it kills them.
constexpr const char* kMpirunsPatience[] = {"OMPI_MCA_odls_base_sigkill_timeout",
                                            "PRTE_MCA_odls_base_sigkill_timeout"};

// What a signal handler may touch.
volatile sig_atomic_t stop_signal = 0;
volatile sig_atomic_t seconds_to_outlive = kSecondsToOutlive;

bool outlives_server = false;

void OnStop(int signal) {
  if (stop_signal != 0) return;
  stop_signal = signal;
  alarm(static_cast<unsigned>(seconds_to_outlive));
}

// Ends the process as the signal would have.
void OnAlarm(int) {
  signal(stop_signal, SIG_DFL);
  kill(getpid(), stop_signal);
}

void WaitForAlarm() {
  while (stop_signal != 0) pause();
}

// Leaves a handler alone that the program has installed.
void Handle(int signal, void (*handler)(int)) {
  struct sigaction before = {};
  sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_DFL) return;
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void OutliveServer() {
  outlives_server = true;
  int seconds = kSecondsToOutlive;
  for (const char* const name : kMpirunsPatience) {
    const char* const patience = getenv(name);
    if (patience != nullptr) seconds = std::max(seconds, atoi(patience));
  }
  seconds_to_outlive = seconds;
  Handle(SIGALRM, OnAlarm);
  Handle(SIGTERM, OnStop);
  Handle(SIGINT, OnStop);
  Handle(SIGHUP, OnStop);
  atexit(WaitForAlarm);
}

bool OutlivesServer() { return outlives_server; }

bool WasToldToStop() { return stop_signal != 0; }

}  // namespace sluice
