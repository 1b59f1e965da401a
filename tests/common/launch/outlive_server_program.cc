// A worker of outlive_server_test. It says that it is ready, works until a signal tells it to stop,
// says so, and then ends with 3, or with --work works on. Without --wait it ends at once.

#include <time.h>

#include <iostream>
#include <string>

#include "common/launch/outlive_server.h"

namespace {

void Work() {
  const timespec moment = {0, 1'000'000};
  nanosleep(&moment, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  sluice::OutliveServer();
  if (mode.empty()) return 3;
  std::cout << "ready" << std::endl;
  while (!sluice::WasToldToStop()) Work();
  std::cout << "works on" << std::endl;
  while (mode == "--work") Work();
  return 3;
}
