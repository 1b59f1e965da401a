#include "server/closing_table.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/observe/server_state.h"
#include "tests/testing/process/launch.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

// A job of 4 steps in 2 s.
v1::ServerState State() {
  v1::ServerState state;
  state.set_job_id("1f2e");
  state.set_step(4);
  state.set_servers(1);
  v1::PushCounters& pushes = *state.mutable_pushes();
  pushes.set_received(13);
  pushes.set_accepted(8);
  pushes.set_stale(1);
  pushes.set_skipped(1);
  pushes.set_duplicate(1);
  pushes.set_rejected(1);
  pushes.set_aborted(1);
  state.mutable_staleness()->set_mean(0.375);
  state.set_bytes_received(123'456'789);
  state.set_bytes_sent(49'999);
  state.set_wire_bytes_received(61'728'394);
  state.set_wire_bytes_sent(50'000);
  state.mutable_mean_step_time()->set_nanos(500'000'000);
  state.mutable_longest_wait()->set_nanos(750'000'000);
  state.set_incarnation(1);
  state.set_phase(v1::FINISHED);
  state.set_steps_made(4);
  state.mutable_verdict()->set_kind(v1::Verdict::FINISHED);
  state.mutable_verdict()->set_text("it has finished");
  state.mutable_since_initialized()->set_seconds(5);
  state.mutable_since_last_step()->set_seconds(3);
  state.set_samples(1280);
  return state;
}

void AddWarning(v1::ServerState& state, const std::string& text, absl::optional<uint64_t> over) {
  v1::TrainingWarning& warning = *state.add_warnings();
  warning.set_text(text);
  if (over.has_value()) warning.set_over(*over);
}

TEST(ClosingTableTest, TellsHowTheJobEndedAndThenWhatItCost) {
  v1::ServerState state = State();
  state.set_loss(0.25);
  state.mutable_last_checkpoint()->set_step(4);
  EXPECT_EQ(ClosingTable(state, {{"test accuracy", 0.89456}}, 0x9ae0daaf),
            "Sluice job 1f2e: it has finished\n"
            "  test accuracy              0.8946\n"
            "  training loss              0.2500\n"
            "  steps                           4\n"
            "  time per step            0.5000 s\n"
            "  longest wait for a step  0.7500 s\n"
            "  samples per second            640\n"
            "  checkpoint of step              4\n"
            "  parameters' CRC-32       9ae0daaf\n"
            "  pushes received                13\n"
            "    accepted                      8\n"
            "    stale                         1\n"
            "    skipped                       1\n"
            "    duplicate                     1\n"
            "    rejected                      1\n"
            "    aborted                       1\n"
            "  mean staleness               0.38\n"
            "  received from workers    123.5 MB\n"
            "    received on the wire    61.7 MB\n"
            "  sent to workers            0.0 MB\n"
            "    sent on the wire         0.1 MB\n");
}

TEST(ClosingTableTest, BeginsWithHowTheJobHasEnded) {
  v1::ServerState state = State();
  const auto title = [&state] {
    const std::string table = ClosingTable(state, {}, absl::nullopt);
    return table.substr(0, table.find('\n'));
  };
  state.set_incarnation(2);
  EXPECT_EQ(
      title(),
      "Sluice job 1f2e: it has finished (all numbers but the steps are those of incarnation 2)");
  state.set_incarnation(1);
  state.mutable_verdict()->set_kind(v1::Verdict::DIVERGED);
  EXPECT_EQ(title(), "Sluice job 1f2e: training has diverged, and ended at step 4");
  state.set_phase(v1::TRAINING);
  state.mutable_verdict()->set_kind(v1::Verdict::SLOW);
  EXPECT_EQ(title(), "Sluice job 1f2e: the server ended at step 4, 2 s after it began");
}

TEST(ClosingTableTest, EndsWithTheWarnings) {
  v1::ServerState state = State();
  AddWarning(state, "training diverges since step 7: it rises", 9);
  AddWarning(state, "workers are lost since step 8", absl::nullopt);
  const std::string table = ClosingTable(state, {}, absl::nullopt);
  EXPECT_NE(table.find("    sent on the wire         0.1 MB\n"
                       "  warning  training diverges since step 7: it rises (until step 9)\n"
                       "  warning  workers are lost since step 8\n"),
            std::string::npos)
      << table;
}

TEST(ClosingTableTest, BeginsWithWhatTheWorkersReported) {
  const std::string table =
      ClosingTable(State(), {{"test accuracy", 0.89456}, {"best loss", 1}}, absl::nullopt);
  EXPECT_NE(table.find("\n  best loss                  1.0000\n"
                       "  test accuracy              0.8946\n"
                       "  steps                           4\n"),
            std::string::npos)
      << table;
}

// As mpirun forwards it: a line of stderr between two rows of stdout.
TEST(ClosingTableTest, IsReadThoughALineOfTheLogStandsBetweenItsRows) {
  std::string output = ClosingTable(State(), {{"test accuracy", 0.89456}}, absl::nullopt);
  output.insert(output.find("  mean staleness"),
                "I20261122 20:11:19.704716  4631 directory.cc:252] saved a checkpoint\n");
  const auto rows = ClosingRows(output);
  EXPECT_THAT(rows, Contains(Pair("aborted", "1")));
  EXPECT_THAT(rows, Contains(Pair("test accuracy", "0.8946")));
}

TEST(ClosingTableTest, MakesRoomForALongName) {
  const std::string table =
      ClosingTable(State(), {{"a result of a very long name", 1}}, absl::nullopt);
  EXPECT_NE(table.find("  steps                                4\n"), std::string::npos) << table;
  EXPECT_NE(table.find("  a result of a very long name    1.0000\n"), std::string::npos) << table;
}

TEST(ClosingTableTest, ListsPushesThatWereCutOffAmongThePushes) {
  v1::ServerState state = State();
  state.mutable_pushes()->set_in_progress(2);
  const std::string table = ClosingTable(state, {}, absl::nullopt);
  EXPECT_NE(table.find("    aborted                       1\n"
                       "    in progress                   2\n"
                       "  mean staleness               0.38\n"
                       "  received from workers    123.5 MB\n"),
            std::string::npos)
      << table;
}

TEST(ClosingTableTest, LeavesOutWhatTheFirstOfSeveralServersDoesNotKnow) {
  v1::ServerState state = State();
  state.set_servers(3);
  const std::string table = ClosingTable(state, {}, absl::nullopt);
  EXPECT_THAT(table, HasSubstr("received from workers"));
  EXPECT_THAT(table, Not(HasSubstr("on the wire")));
}

TEST(ClosingTableTest, DescribesAJobThatNeverBegan) {
  EXPECT_EQ(ClosingTable(ToProto(ShardStatus()), {}, absl::nullopt),
            "Sluice job : the server ended at step 0\n"
            "  steps            0\n"
            "  pushes received  0\n");
}

}  // namespace
}  // namespace sluice
