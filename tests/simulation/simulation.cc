#include "tests/simulation/simulation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/simulation/calm.h"
#include "tests/simulation/chaos.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/world.h"

namespace sluice {
namespace {

constexpr size_t kEventsShown = 30;

// A job of several servers takes about three times as long as a job of one.
uint32_t DrawServers(Dice& dice) {
  return dice.Percent(85) ? 1 : static_cast<uint32_t>(dice.Between(2, 5));
}

std::string InWords(const Choice& choice) {
  std::string flags;
  if (choice.servers != Choice::kAnyServers) absl::StrAppend(&flags, " --servers=", choice.servers);
  if (choice.journal.has_value()) {
    absl::StrAppend(&flags, " --durability=", *choice.journal ? "journal" : "memory");
  }
  return flags;
}

void AbandonAll(World& world) {
  while (world.ok() && !world.Arriving().empty()) {
    world.AbandonPush(world.Arriving().front(), Abandoned::kAborted);
  }
}

// Ends the job: the server drains or all workers leave. Pushes that are in flight are abandoned.
void End(Dice& dice, Chaos& chaos, World& world) {
  if (!world.oracle().draining() && dice.Percent(40)) world.Drain();
  for (int i = 0; i < 10 && world.ok() && world.oracle().draining(); ++i) chaos.Act();
  AbandonAll(world);
  for (const SimulatedProcess* const process : chaos.Alive()) {
    if (world.ok()) world.Leave(process->welcomes.back().session);
  }
  AbandonAll(world);  // those that were admitted when others left
  if (world.ok()) world.CheckEnd();
}

}  // namespace

Story Simulate(uint64_t seed, bool tell, const Choice& choice) {
  Story story;
  Dice dice(seed);
  Dice other_dice(~seed);
  const uint32_t drawn = DrawServers(other_dice);
  Scenario scenario =
      DrawScenario(dice, choice.servers == Choice::kAnyServers ? drawn : choice.servers);
  scenario.link_seed = static_cast<uint32_t>(other_dice.Next());
  const bool journal = other_dice.Percent(scenario.servers > 1 ? 50 : 15);
  scenario.journal = choice.journal.value_or(journal);
  scenario.sync_chance = other_dice.Of({10u, 40u, 80u});
  const bool rows = scenario.servers > 1 && !scenario.layout.tables().empty();
  scenario.rows_on_disk = rows && other_dice.Percent(50);
  if (tell) story.events.push_back(absl::StrCat("seed ", seed, ": ", Words(scenario)));
  World world(scenario, tell ? &story.events : nullptr);
  Chaos chaos(scenario, dice, world);
  if (dice.Percent(80)) chaos.Launch();
  for (uint32_t i = 0; i < scenario.events && world.ok(); ++i) chaos.Act();
  world.Spare();
  world.FreeDisks();
  // A server that drains while much is under way has no calm before its end.
  if (world.ok() && dice.Percent(15)) world.Drain();
  if (world.ok() && !world.oracle().draining()) GetOn(scenario, chaos, world);
  if (world.ok()) End(dice, chaos, world);
  story.violation = world.violation();
  return story;
}

std::string Report(uint64_t seed, const Choice& choice) {
  const Story story = Simulate(seed, true, choice);
  const size_t shown = std::min(story.events.size() - 1, kEventsShown);
  return absl::StrCat("The contract is broken. ", story.events.front(), "\n",
                      absl::StrJoin(story.events.end() - shown, story.events.end(), "\n"),
                      "\nViolation at ", story.violation,
                      "\nReplay: bazel run //tests/simulation -- --seed=", seed, InWords(choice),
                      "\n");
}

}  // namespace sluice
