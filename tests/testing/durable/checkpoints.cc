#include "tests/testing/durable/checkpoints.h"

#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/status.h"

namespace sluice {

std::shared_ptr<const ShardCheckpoint> CheckpointOf(Shard& shard) {
  std::shared_ptr<const ShardCheckpoint> checkpoint;
  shard.durability().TakeCheckpoint([&](const auto& taken) {
    if (taken.ok()) checkpoint = *taken;
  });
  return checkpoint;
}

std::shared_ptr<const ShardCheckpoint> TrainedCheckpoint() {
  AdamOptions adam;
  adam.learning_rate = 0.5;
  ShardWorld world(Sync(2), LayoutOf({{"w", 3}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}}),
                   adam);
  world.Start({"a", "b"});
  for (uint64_t step : {0, 1}) {
    EXPECT_THAT(world.Push("a", step, {1, 2, 3, 4, 5, 6}), Accepted(step));
    EXPECT_THAT(world.Push("b", step, {3, 2, 1, 0, 5, 4}), Applied(step + 1));
  }
  return CheckpointOf(world.shard());
}

ShardCheckpoint CheckpointAt(uint64_t step, uint64_t incarnation) {
  ShardCheckpoint checkpoint;
  checkpoint.job_id = "job";
  checkpoint.step = Step(step);
  checkpoint.incarnations = IncarnationHistory(Incarnation(incarnation));
  checkpoint.layout = std::make_shared<const Layout>(ParametersOnly(1));
  auto parameters = std::make_shared<Snapshot>();
  parameters->step = checkpoint.step;
  parameters->values = FloatBuffer(1);
  parameters->values.span()[0] = static_cast<float>(step);
  checkpoint.parameters = parameters;
  return checkpoint;
}

Values AllValues(const ShardCheckpoint& checkpoint) {
  Values values = ValuesOf(checkpoint.parameters->values.span());
  for (const SlotCheckpoint& slot : checkpoint.slots) {
    const Values of_slot = ValuesOf(slot.values.span());
    values.insert(values.end(), of_slot.begin(), of_slot.end());
  }
  return values;
}

}  // namespace sluice
