#include "worker/training/progress.h"

#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace sluice {
namespace {

// A Progress whose output and time the test controls.
class ProgressWorld {
 public:
  explicit ProgressWorld(bool terminal) : progress_(out_, terminal, clock_) {}

  // Lets time pass, then notes a batch.
  void Note(absl::Duration after, float loss, uint64_t step, uint64_t staleness = 0,
            int64_t samples = 50) {
    clock_.Advance(after);
    LearnReport report;
    report.loss = loss;
    report.step = Step(step);
    report.staleness = staleness;
    progress_.Note({epoch, samples, left, report});
  }

  // What was written since the last look.
  std::string Written() {
    const std::string written = out_.str();
    out_.str("");
    return written;
  }

  std::string Finish(absl::Duration after) {
    clock_.Advance(after);
    progress_.Finish();
    return Written();
  }

  int epoch = 0;
  absl::optional<int64_t> left;

 private:
  FakeClock clock_;
  std::ostringstream out_;
  Progress progress_;
};

constexpr absl::Duration kInstant = absl::Nanoseconds(1);

TEST(ProgressTest, WritesAPlainLineEveryFiveSeconds) {
  ProgressWorld world(false);
  world.Note(absl::Seconds(2), 3, 1);
  world.Note(absl::Seconds(3) - kInstant, 2, 2);
  EXPECT_EQ(world.Written(), "");
  world.Note(kInstant, 1, 3);
  EXPECT_EQ(world.Written(), "epoch 1  step 3  loss 2.0000  30 images/s  staleness 0\n");
}

TEST(ProgressTest, TellsOnlyWhatIsNew) {
  ProgressWorld world(false);
  world.Note(absl::Seconds(5), 9, 1, 7);
  world.Written();
  world.epoch = 3;
  world.Note(absl::Seconds(5), 0.5, 21, 2, 200);
  EXPECT_EQ(world.Written(), "epoch 4  step 21  loss 0.5000  40 images/s  staleness 2\n");
}

TEST(ProgressTest, TellsTheGreatestStaleness) {
  ProgressWorld world(false);
  world.Note(absl::Seconds(1), 1, 1, 3);
  world.Note(absl::Seconds(4), 1, 9, 1);
  EXPECT_EQ(world.Written(), "epoch 1  step 9  loss 1.0000  20 images/s  staleness 3\n");
}

TEST(ProgressTest, RenewsItsLineOnATerminalFiveTimesASecond) {
  ProgressWorld world(true);
  world.Note(absl::Milliseconds(200) - kInstant, 1, 1);
  EXPECT_EQ(world.Written(), "");
  world.Note(kInstant, 3, 2);
  EXPECT_EQ(world.Written(), "\r\033[Kepoch 1  step 2  loss 2.0000  500 images/s  staleness 0");
  world.Note(absl::Milliseconds(200), 1, 3);
  EXPECT_EQ(world.Written(), "\r\033[Kepoch 1  step 3  loss 1.0000  250 images/s  staleness 0");
}

TEST(ProgressTest, TellsTheTimeLeftIfItIsKnown) {
  ProgressWorld world(false);
  world.left = 97;
  world.Note(absl::Seconds(9), 1, 1);  // it waited for the other workers
  EXPECT_EQ(world.Written(), "epoch 1  step 1  loss 1.0000  6 images/s  staleness 0\n");
  world.left = 96;
  world.Note(absl::Seconds(2), 1, 2);
  world.left = 95;
  world.Note(absl::Seconds(3), 1, 3);
  EXPECT_EQ(world.Written(),
            "epoch 1  step 3  loss 1.0000  20 images/s  staleness 0  3 min 57 s left\n");
  world.left = 0;
  world.Note(absl::Seconds(5), 1, 4);
  EXPECT_EQ(world.Written(), "epoch 1  step 4  loss 1.0000  10 images/s  staleness 0\n");
}

TEST(ProgressTest, WritesTheRestWhenItFinishes) {
  ProgressWorld world(false);
  world.Note(absl::Seconds(1), 0.25, 7);
  EXPECT_EQ(world.Finish(absl::Seconds(1)),
            "epoch 1  step 7  loss 0.2500  25 images/s  staleness 0\n");
}

TEST(ProgressTest, EndsTheLineOfATerminalWhenItFinishes) {
  ProgressWorld world(true);
  world.Note(absl::Milliseconds(100), 0.25, 7);
  EXPECT_EQ(world.Finish(absl::Milliseconds(100)),
            "\r\033[Kepoch 1  step 7  loss 0.2500  250 images/s  staleness 0\n");
}

TEST(ProgressTest, EndsALineThatSaysAllAlready) {
  ProgressWorld terminal(true);
  terminal.Note(absl::Seconds(1), 1, 1);
  terminal.Written();
  EXPECT_EQ(terminal.Finish(absl::Seconds(1)), "\n");
  ProgressWorld plain(false);
  plain.Note(absl::Seconds(5), 1, 1);
  plain.Written();
  EXPECT_EQ(plain.Finish(absl::Seconds(1)), "");
}

TEST(ProgressTest, WritesNothingIfNothingWasNoted) {
  EXPECT_EQ(ProgressWorld(false).Finish(absl::Seconds(9)), "");
  EXPECT_EQ(ProgressWorld(true).Finish(absl::Seconds(9)), "");
}

TEST(ProgressTest, BearsABatchThatTookNoTime) {
  ProgressWorld world(false);
  world.Note(absl::ZeroDuration(), 1, 1, 0, 0);
  EXPECT_EQ(world.Finish(absl::ZeroDuration()),
            "epoch 1  step 1  loss 1.0000  0 images/s  staleness 0\n");
}

// A batch with its samples, its time, and the part of it that was not computing.
void NoteBatch(FakeClock& clock, Progress& progress, absl::Duration took, absl::Duration exchange,
               int64_t samples) {
  clock.Advance(took);
  LearnReport report;
  report.exchange = exchange;
  progress.Note({0, samples, absl::nullopt, report});
}

TEST(PaceTest, IsThatOfAllBatchesButTheFirst) {
  FakeClock clock;
  std::ostringstream out;
  Progress progress(out, false, clock);
  EXPECT_FALSE(progress.pace().has_value());
  NoteBatch(clock, progress, absl::Seconds(9), absl::Seconds(8), 1000);
  EXPECT_FALSE(progress.pace().has_value());
  NoteBatch(clock, progress, absl::Seconds(1), absl::Seconds(0), 40);
  NoteBatch(clock, progress, absl::Seconds(3), absl::Seconds(1), 40);
  ASSERT_TRUE(progress.pace().has_value());
  EXPECT_DOUBLE_EQ(progress.pace()->samples_per_second, 20);
  EXPECT_DOUBLE_EQ(progress.pace()->exchange_share, 0.25);
}

TEST(PaceTest, EndsWithTheLastBatch) {
  FakeClock clock;
  std::ostringstream out;
  Progress progress(out, false, clock);
  NoteBatch(clock, progress, absl::Seconds(1), absl::ZeroDuration(), 10);
  NoteBatch(clock, progress, absl::Seconds(1), absl::ZeroDuration(), 10);
  clock.Advance(absl::Seconds(100));
  progress.Finish();
  EXPECT_DOUBLE_EQ(progress.pace()->samples_per_second, 10);
}

}  // namespace
}  // namespace sluice
