#include "worker/connection/exit_notice.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ExitedWithCode;
using ::testing::Not;

std::unique_ptr<ExitNotice> Notice(const char* name) {
  return std::make_unique<ExitNotice>(
      [name](int code) { fprintf(stderr, "%s told %d.", name, code); });
}

TEST(ExitNoticeTest, TellsTheCodeOfExit) {
  const auto ends = [] {
    const auto notice = Notice("a");
    exit(3);
  };
  EXPECT_EXIT(ends(), ExitedWithCode(3), "^a told 3\\.$");
}

TEST(ExitNoticeTest, EachThatExistsTellsItOnce) {
  const auto ends = [] {
    const auto first = Notice("a");
    auto second = Notice("b");
    second = nullptr;
    exit(0);
  };
  EXPECT_EXIT(ends(), ExitedWithCode(0), "^a told 0\\.$");
}

TEST(ExitNoticeTest, AForkOfTheProcessTellsNothing) {
  const auto ends = [] {
    const auto notice = Notice("a");
    if (fork() == 0) exit(5);
    int status = 0;
    wait(&status);
    exit(WEXITSTATUS(status));
  };
  EXPECT_EXIT(ends(), ExitedWithCode(5), "^a told 5\\.$");
}

TEST(ExitNoticeTest, AProcessThatDoesNotCallExitTellsNothing) {
  const auto ends = [] {
    const auto notice = Notice("a");
    _exit(6);
  };
  EXPECT_EXIT(ends(), ExitedWithCode(6), Not(::testing::HasSubstr("told")));
}

}  // namespace
}  // namespace sluice
