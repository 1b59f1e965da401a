#include "server/state/completions.h"

#include <string>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

// Completions that append letters to a string.
class CompletionsTest : public ::testing::Test {
 protected:
  void Add(Completions& completions, char letter) {
    completions.Add([this, letter] { ran_ += letter; });
  }

  std::string ran_;
};

TEST_F(CompletionsTest, RunOnceInTheOrderTheyCame) {
  Completions completions;
  Add(completions, 'a');
  Add(completions, 'b');
  EXPECT_EQ(ran_, "");
  completions.Run();
  EXPECT_EQ(ran_, "ab");
  completions.Run();
  EXPECT_EQ(ran_, "ab");
}

TEST_F(CompletionsTest, AreTakenOverBehindThoseAlreadyThere) {
  Completions ours;
  Completions theirs;
  Add(theirs, 'c');
  Add(theirs, 'd');
  Add(ours, 'a');
  ours.Take(theirs);
  theirs.Run();
  EXPECT_EQ(ran_, "");
  ours.Run();
  EXPECT_EQ(ran_, "acd");
}

TEST_F(CompletionsTest, RunOnceTheLockIsReleased) {
  absl::Mutex mu;
  {
    CompletingLock lock(&mu);
    lock.completions()->Add([&] {
      const bool is_free = mu.TryLock();
      if (is_free) mu.Unlock();
      ran_ += is_free ? 'a' : 'x';
    });
    EXPECT_EQ(ran_, "");
  }
  EXPECT_EQ(ran_, "a");
}

}  // namespace
}  // namespace sluice
