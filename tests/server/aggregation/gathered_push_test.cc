#include "server/aggregation/gathered_push.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "common/base/parallel.h"
#include "common/encoding/transform_registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSize = 2 * kPartElements;  // so large that Parallel helps with it

// Calls `meanwhile` before each part, as another thread may.
class Interrupting final : public Parallel {
 public:
  void For(size_t count, absl::FunctionRef<void(size_t)> part) override {
    for (size_t i = 0; i < count; ++i) {
      meanwhile();
      part(i);
    }
  }

  std::function<void()> meanwhile = [] {};
};

class GatheredPushTest : public ::testing::Test {
 protected:
  const std::shared_ptr<const Layout> layout_ =
      std::make_shared<const Layout>(ParametersOnly(kSize));
  std::shared_ptr<FloatBuffer> memory_ = std::make_shared<FloatBuffer>(kSize);
  const std::weak_ptr<const FloatBuffer> held_ = memory_;
  const TransformRegistry transforms_;
  Interrupting parallel_;
  GatheredPush push_{
      std::make_unique<PendingPush>(PushId(1), PushHeader(), layout_,
                                    std::make_shared<std::atomic<uint64_t>>(0), std::move(memory_)),
      transforms_, parallel_};
};

TEST_F(GatheredPushTest, PutsChunksIntoTheMemoryOfThePush) {
  EXPECT_TRUE(push_.Add(ChunkOf(0, Values(kSize, 3))));
  const GatheredPush::Gathered gathered = push_.End();
  EXPECT_THAT(gathered.error, IsOk());
  EXPECT_THAT(gathered.push->gradient().memory()->span(), ::testing::Each(3));
}

TEST_F(GatheredPushTest, KeepsNoMemoryOfAPushThatHasEnded) {
  push_.End();
  EXPECT_TRUE(held_.expired());
  EXPECT_FALSE(push_.Add(ChunkOf(0, Values(kSize, 3))));
}

TEST_F(GatheredPushTest, AChunkIsWrittenToLivingMemoryAlsoIfThePushEndsMeanwhile) {
  GatheredPush::Gathered gathered;
  parallel_.meanwhile = [&] {
    GatheredPush::Gathered ended = push_.End();
    if (ended.push != nullptr) gathered.error = ended.error;  // the first time
    ended.push = nullptr;
    EXPECT_FALSE(held_.expired());
  };
  EXPECT_FALSE(push_.Add(ChunkOf(0, Values(kSize, 3))));
  EXPECT_THAT(gathered.error, IsError(Reason::kBadChunk, HasSubstr("ended before its lanes")));
  EXPECT_TRUE(held_.expired());
}

}  // namespace
}  // namespace sluice
