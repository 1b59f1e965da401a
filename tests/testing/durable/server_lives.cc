#include "tests/testing/durable/server_lives.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/checkpoint/numbered_name.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {

ServerLives::ServerLives(std::string directory, Words flags)
    : directory_(std::move(directory)),
      address_(absl::StrCat("127.0.0.1:", FreePort())),
      flags_(std::move(flags)) {
  std::filesystem::remove_all(directory_);
}

std::unique_ptr<Process> ServerLives::Start(const Words& program) const {
  Words words = program;
  words.push_back(absl::StrCat("--listen=", address_));
  words.push_back(absl::StrCat("--checkpoint-dir=", directory_));
  words.insert(words.end(), flags_.begin(), flags_.end());
  return sluice::Start(words);
}

std::unique_ptr<Process> ServerLives::StartAndAwait() const {
  auto server = Start();
  EXPECT_THAT(server->WaitForOutput("listening on"), IsOk());
  return server;
}

std::unique_ptr<Process> ServerLives::StartWorker(const std::string& name,
                                                  const Words& flags) const {
  Words words = {RunfilePath("tests/testing/process/pushing_worker_program"),
                 absl::StrCat("--name=", name), absl::StrCat("--server=", address_)};
  words.insert(words.end(), flags.begin(), flags.end());
  return sluice::Start(words);
}

void ServerLives::ExpectAtWork(Process& worker) {
  EXPECT_THAT(worker.Wait(absl::ZeroDuration()),
              HasCode(absl::StatusCode::kDeadlineExceeded, ::testing::_));
}

void ServerLives::WaitForStep(uint64_t step) const {
  absl::StatusOr<uint64_t> now = StepOf(address_);
  while (now.ok() && *now < step) now = StepOf(address_);
  EXPECT_THAT(now, IsOk());
}

Incarnation ServerLives::NewestIncarnation() const {
  Incarnation newest;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    const auto life = ParseNumberedName("life-", entry.path().filename().string());
    if (life.has_value()) newest = std::max(newest, life->first);
  }
  return newest;
}

}  // namespace sluice
