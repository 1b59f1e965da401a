#include "tests/testing/durable/striped_checkpoints.h"

#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "common/tensor/stripes.h"
#include "gtest/gtest.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/durable/checkpoint/stripe_store.h"

namespace sluice {
namespace {

FloatBuffer RandomBits(uint64_t size, std::mt19937_64& random) {
  FloatBuffer values(size);
  for (float& value : values.span()) {
    const uint32_t bits = static_cast<uint32_t>(random());
    std::memcpy(&value, &bits, sizeof(value));
  }
  return values;
}

// Element by element: an independent truth.
FloatBuffer PartOf(absl::Span<const float> whole, StripePlace place) {
  const Stripes stripes(whole.size(), place.stripes);
  FloatBuffer part(stripes.SizeOf(place.stripe));
  for (uint64_t i = 0, at = 0; i < whole.size(); ++i) {
    if (i / stripes.unit() % place.stripes != place.stripe) continue;
    std::memcpy(part.from(at++), &whole[i], sizeof(float));
  }
  return part;
}

std::shared_ptr<const Snapshot> SnapshotOf(Step step, FloatBuffer values,
                                           std::shared_ptr<const RowSnapshot> rows = nullptr) {
  const auto snapshot = std::make_shared<Snapshot>();
  snapshot->step = step;
  snapshot->rows = std::move(rows);
  snapshot->values = std::move(values);
  return snapshot;
}

}  // namespace

std::shared_ptr<const Layout> LayoutOfSizes(const std::vector<uint64_t>& sizes) {
  std::vector<LayoutRange> ranges;
  uint64_t offset = 0;
  for (const uint64_t size : sizes) {
    LayoutRange range;
    range.name = absl::StrCat("t", ranges.size());
    range.offset = offset;
    range.length = size;
    range.shape = {static_cast<uint32_t>(size)};
    ranges.push_back(range);
    offset += size;
  }
  return std::make_shared<const Layout>(*Layout::Create(ranges));
}

ShardCheckpoint KnownCheckpoint(const CheckpointName& name, std::shared_ptr<const Layout> layout,
                                const std::vector<std::string>& slots) {
  std::mt19937_64 random(1000 * name.incarnation.value() + name.step.value());
  ShardCheckpoint checkpoint;
  checkpoint.job_id = "job";
  checkpoint.step = name.step;
  checkpoint.incarnations = IncarnationHistory(name.incarnation);
  checkpoint.layout = std::move(layout);
  const uint64_t size = checkpoint.layout->size();
  checkpoint.parameters = SnapshotOf(name.step, RandomBits(size, random));
  for (const std::string& slot : slots) {
    checkpoint.slots.push_back({slot, RandomBits(size, random)});
  }
  checkpoint.optimizer_steps = 7;
  return checkpoint;
}

StripeCheckpoint StripeOf(const ShardCheckpoint& checkpoint, StripePlace place) {
  StripeCheckpoint stripe;
  stripe.parameters =
      SnapshotOf(checkpoint.step, PartOf(checkpoint.parameters->values.span(), place),
                 checkpoint.parameters->rows);
  for (const SlotCheckpoint& slot : checkpoint.slots) {
    stripe.slots.push_back({slot.name, PartOf(slot.values.span(), place)});
  }
  stripe.optimizer_steps = checkpoint.optimizer_steps;
  stripe.row_slots = checkpoint.row_slots;
  stripe.row_steps = checkpoint.row_steps;
  return stripe;
}

absl::StatusOr<CheckpointSource> SaveAsServers(FileSystem& files, const std::string& directory,
                                               const ShardCheckpoint& checkpoint, uint32_t servers,
                                               uint32_t keep) {
  CheckpointSource source = SourceOf(checkpoint);
  CheckpointStore store(files, directory, keep, servers);
  if (servers == 1) {
    const auto saved = store.Save(checkpoint);
    if (!saved.ok()) return saved.status();
    return source;
  }
  const CheckpointName name = {source.incarnation, source.step};
  for (uint32_t stripe = 0; stripe < servers; ++stripe) {
    const StripePlace place = {stripe, servers};
    const auto saved =
        StripeStore(files, directory, place)
            .Save(source.job_id, name, *checkpoint.layout, StripeOf(checkpoint, place));
    if (!saved.ok()) return saved.status();
    source.stripes.push_back(*saved);
  }
  const auto saved = store.SaveStriped(checkpoint, source.stripes);
  if (!saved.ok()) return saved.status();
  return source;
}

bool SameBits(absl::Span<const float> a, absl::Span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

void ExpectSameStripe(const StripeCheckpoint& found, const StripeCheckpoint& expected) {
  EXPECT_EQ(found.parameters->step, expected.parameters->step);
  EXPECT_TRUE(SameBits(found.parameters->values.span(), expected.parameters->values.span()));
  EXPECT_EQ(found.optimizer_steps, expected.optimizer_steps);
  ASSERT_EQ(found.slots.size(), expected.slots.size());
  for (size_t i = 0; i < found.slots.size(); ++i) {
    EXPECT_EQ(found.slots[i].name, expected.slots[i].name);
    EXPECT_TRUE(SameBits(found.slots[i].values.span(), expected.slots[i].values.span()));
  }
}

}  // namespace sluice
