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
  // The servers get `flags` beside where they listen and what they keep where. Nothing is left in
  // `directory` of an earlier run.
  ServerLives(std::string directory, Words flags);

  const std::string& directory() const { return directory_; }
  const std::string& address() const { return address_; }

  // A server, or another program that takes its flags after words of its own.
  std::unique_ptr<Process> Start(const Words& program = {
                                     RunfilePath("server/sluice_server")}) const;
  // As above, and returns once it answers.
  std::unique_ptr<Process> StartAndAwait() const;

  // A pushing_worker_program.
  std::unique_ptr<Process> StartWorker(const std::string& name, const Words& flags) const;

  // Expects that it has not ended, and reads what it has written: it would stop once its pipe is
  // full.
  static void ExpectAtWork(Process& worker);

  // Returns once the server is at that step, or later; expects no error.
  void WaitForStep(uint64_t step) const;

  // The number of the newest life that has left its mark; 0 if none has.
  Incarnation NewestIncarnation() const;

 private:
  const std::string directory_;
  const std::string address_;
  const Words flags_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_SERVER_LIVES_H_
