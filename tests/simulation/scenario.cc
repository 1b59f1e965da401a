#include "tests/simulation/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/simulation/twin_rows.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr uint32_t kSmallestRoom = 3;
constexpr double kNormGuard = 1000;
constexpr uint64_t kUnit = 64;  // of small vectors; see Stripes

// Each server has one to three units, and the last unit is not whole. The second tensor begins
// within a unit.
Layout DrawStripedLayout(Dice& dice, uint32_t servers) {
  const uint64_t units = dice.Between(servers, 2 * servers);
  const auto size = static_cast<uint32_t>(units * kUnit + dice.Between(1, kUnit - 1));
  const auto second = static_cast<uint32_t>(dice.Between(1, kUnit + kUnit / 2));
  const RangeKind kind = dice.Percent(40) ? RangeKind::kStatistic : RangeKind::kParameter;
  return LayoutOf({{"w", size - second}, {"b", second, kind}});
}

Layout DrawVector(Dice& dice, uint32_t servers) {
  if (servers > 1) return DrawStripedLayout(dice, servers);
  const auto parameters = static_cast<uint32_t>(dice.Between(1, 3));
  if (dice.Percent(40)) return LayoutOf({{"w", parameters}, {"mean", 1, RangeKind::kStatistic}});
  return LayoutOf({{"w", parameters}, {"b", 1}});
}

Layout DrawLayout(Dice& dice, uint32_t servers) {
  const Layout vector = DrawVector(dice, servers);
  if (dice.Percent(50)) return vector;
  return TwinRows::Add(vector, servers > 1 ? 10 : 1);
}

void DrawRoom(Dice& dice, Scenario* scenario) {
  scenario->options.most_row_bytes = 1000;
  const uint64_t rows = scenario->layout.tables().empty() ? 0 : scenario->options.most_row_bytes;
  const uint64_t vector = scenario->layout.size() * sizeof(float) + rows;
  if (dice.Percent(30)) {
    scenario->room = UINT32_MAX;
    return;
  }
  scenario->room = static_cast<uint32_t>(dice.Between(kSmallestRoom, 6));
  // Less is not to be had.
  const bool too_little = scenario->room == kSmallestRoom && dice.Percent(50);
  scenario->options.max_in_flight_bytes = too_little ? 1 : scenario->room * vector;
}

LearningRateSchedule DrawSchedule(Dice& dice) {
  LearningRateSchedule schedule;
  if (dice.Percent(70)) return schedule;
  schedule.kind = ScheduleKind::kStep;
  schedule.step_size = dice.Between(2, 6);
  schedule.gamma = 0.5;
  return schedule;
}

}  // namespace

Consistency DrawConsistency(Dice& dice, const Scenario& scenario) {
  using Mode = ConsistencyMode;
  Consistency c;
  c.mode = dice.Of({Mode::kSync, Mode::kBackup, Mode::kBounded, Mode::kSsp, Mode::kAsync});
  const bool once = c.mode == Mode::kSync || c.mode == Mode::kBackup;
  if (c.HasQuorum()) c.quorum = static_cast<uint32_t>(dice.Between(1, scenario.workers + 1));
  if (c.mode == Mode::kBounded) c.max_staleness = static_cast<uint32_t>(dice.Below(4));
  if (c.mode == Mode::kSsp) c.slack = static_cast<uint32_t>(dice.Below(4));
  c.reduction = dice.Of({Reduction::kMean, Reduction::kWeightedMean, Reduction::kSum});
  if (c.mode == Mode::kSync && dice.Percent(50)) c.order = ReductionOrder::kRank;
  if (!once) c.discount_stale = dice.Percent(33);
  if (c.mode == Mode::kAsync && scenario.servers == 1) c.inconsistent_reads = dice.Percent(25);
  if (dice.Percent(50)) c.max_step_wait = absl::Seconds(dice.Of({1, 5, 10, 25}));
  c.on_max_step_wait =
      dice.Of({StepWaitAction::kWait, StepWaitAction::kProceed, StepWaitAction::kEvict});
  return c;
}

Scenario DrawScenario(Dice& dice, uint32_t servers) {
  Scenario scenario;
  scenario.servers = servers;
  scenario.workers = static_cast<uint32_t>(dice.Between(1, 6));
  scenario.events = static_cast<uint32_t>(dice.Between(60, 240));
  scenario.layout = DrawLayout(dice, servers);
  scenario.order_matters = dice.Percent(50);
  scenario.own_indices = dice.Percent(50);
  scenario.optimizer.learning_rate = dice.Of({1.0, 0.5, 0.25});
  ShardOptions& options = scenario.options;
  options.job_id = "job";
  options.incarnation = Incarnation(dice.Of({1, 3}));
  options.session_base = SessionId(1000 * dice.Below(3));
  scenario.stops = dice.Percent(30);
  if (scenario.stops) options.tick = absl::Seconds(dice.Of({1, 5}));
  options.consistency = DrawConsistency(dice, scenario);
  options.expected_workers = static_cast<uint32_t>(dice.Between(1, scenario.workers));
  if (dice.Percent(50)) options.start_timeout = absl::Seconds(dice.Between(5, 30));
  options.lease = absl::Seconds(dice.Of({4, 10, 20}));
  options.schedule = DrawSchedule(dice);
  options.guards.skip_not_finite = dice.Percent(50);
  if (!scenario.order_matters && dice.Percent(30)) options.guards.max_push_norm = kNormGuard;
  DrawRoom(dice, &scenario);
  return scenario;
}

std::string Words(const Consistency& c) {
  std::string words = absl::StrCat(ConsistencyModeName(c.mode), ", ", ReductionName(c.reduction));
  if (c.HasQuorum()) absl::StrAppend(&words, ", quorum ", c.quorum);
  if (c.max_staleness.has_value()) absl::StrAppend(&words, ", max_staleness ", *c.max_staleness);
  if (c.mode == ConsistencyMode::kSsp) absl::StrAppend(&words, ", slack ", c.slack);
  if (c.order == ReductionOrder::kRank) absl::StrAppend(&words, ", in the order of ranks");
  if (c.discount_stale) absl::StrAppend(&words, ", discounting");
  if (c.max_step_wait != absl::InfiniteDuration()) {
    absl::StrAppend(&words, ", max_step_wait ", absl::FormatDuration(c.max_step_wait), " then ",
                    StepWaitActionName(c.on_max_step_wait));
  }
  return words;
}

std::string Words(const Scenario& scenario) {
  const ShardOptions& options = scenario.options;
  std::string words = absl::StrCat(
      Words(options.consistency), "; ", options.expected_workers, " of ", scenario.workers,
      " workers expected, start_timeout ", absl::FormatDuration(options.start_timeout), ", lease ",
      absl::FormatDuration(options.lease), ", incarnation ", options.incarnation.value());
  if (scenario.room != UINT32_MAX) absl::StrAppend(&words, ", room for ", scenario.room);
  absl::StrAppend(&words, options.guards.skip_not_finite ? ", skips NaN" : ", refuses NaN");
  if (options.guards.max_push_norm.has_value()) absl::StrAppend(&words, ", guards the norm");
  if (scenario.stops) absl::StrAppend(&words, ", tick ", absl::FormatDuration(options.tick));
  absl::StrAppend(&words, "; ", scenario.layout.size(), " elements");
  if (!scenario.layout.tables().empty()) absl::StrAppend(&words, " and twins of rows");
  if (scenario.rows_on_disk) absl::StrAppend(&words, ", some on the disk");
  if (scenario.servers > 1) absl::StrAppend(&words, " on ", scenario.servers, " servers");
  if (scenario.journal) absl::StrAppend(&words, ", with a journal");
  return words;
}

}  // namespace sluice
