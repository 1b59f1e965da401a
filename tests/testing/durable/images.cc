#include "tests/testing/durable/images.h"

#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/status.h"

namespace sluice {

std::shared_ptr<const ShardImage> ImageOf(Shard& shard) {
  std::shared_ptr<const ShardImage> image;
  shard.TakeImage([&](const auto& taken) {
    if (taken.ok()) image = *taken;
  });
  return image;
}

std::shared_ptr<const ShardImage> TrainedImage() {
  AdamOptions adam;
  adam.learning_rate = 0.5;
  ShardWorld world(Sync(2), LayoutOf({{"w", 3}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}}),
                   adam);
  world.Start({"a", "b"});
  for (uint64_t step : {0, 1}) {
    EXPECT_THAT(world.Push("a", step, {1, 2, 3, 4, 5, 6}), Accepted(step));
    EXPECT_THAT(world.Push("b", step, {3, 2, 1, 0, 5, 4}), Applied(step + 1));
  }
  return ImageOf(world.shard());
}

ShardImage ImageAt(uint64_t step, uint64_t incarnation) {
  ShardImage image;
  image.job_id = "job";
  image.step = Step(step);
  image.lineage = Lineage(Incarnation(incarnation));
  image.layout = std::make_shared<const Layout>(ParametersOnly(1));
  auto parameters = std::make_shared<Snapshot>();
  parameters->step = image.step;
  parameters->values = FloatBuffer(1);
  parameters->values.span()[0] = static_cast<float>(step);
  image.parameters = parameters;
  return image;
}

Values AllValues(const ShardImage& image) {
  Values values = ValuesOf(image.parameters->values.span());
  for (const SlotImage& slot : image.slots) {
    const Values of_slot = ValuesOf(slot.values.span());
    values.insert(values.end(), of_slot.begin(), of_slot.end());
  }
  return values;
}

}  // namespace sluice
