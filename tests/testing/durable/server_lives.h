// One job with several incarnations of its server: a test starts one server after the other with
// the same directory and address, while the workers continue.

#ifndef SLUICE_TESTS_TESTING_DURABLE_SERVER_LIVES_H_
#define SLUICE_TESTS_TESTING_DURABLE_SERVER_LIVES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"

namespace sluice {

class ServerLives {
 public:
  // Empties `directory`. Each server gets `flags` in addition to --listen and --checkpoint-dir.
  ServerLives(std::string directory, Words flags);

  const std::string& directory() const { return directory_; }
  const std::string& address() const { return address_; }

  // Starts a server, or another program: the flags follow `program`.
  std::unique_ptr<Process> Start(const Words& program = {
                                     RunfilePath("server/sluice_server")}) const;
  // Starts a server, and returns once it answers.
  std::unique_ptr<Process> StartAndAwait() const;

  // Starts pushing_worker_program as the worker `name`.
  std::unique_ptr<Process> StartWorker(const std::string& name, const Words& flags) const;

  // Expects that the worker runs. Also reads its output, because a process blocks when its pipe is
  // full. Call it regularly.
  static void ExpectAtWork(Process& worker);

  // Returns once the server has made that step or a later one. Expects no error.
  void WaitForStep(uint64_t step) const;

  // The newest incarnation that has a file `life-…` in the directory; 0 if there is none.
  Incarnation NewestIncarnation() const;

 private:
  const std::string directory_;
  const std::string address_;
  const Words flags_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_SERVER_LIVES_H_
