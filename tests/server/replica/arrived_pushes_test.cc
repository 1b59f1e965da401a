#include "server/replica/arrived_pushes.h"

#include <atomic>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

class ArrivedPushesTest : public ::testing::Test {
 protected:
  // Keeps a push of session `id`. Returns the memory of its gradient.
  std::weak_ptr<const void> Keep(uint64_t id) {
    PushHeader header;
    header.session = SessionId(id);
    auto push = std::make_unique<PendingPush>(PushId(id), header, layout_,
                                              std::make_shared<std::atomic<uint64_t>>(0));
    TensorChunk chunk = ChunkOf(0, {1, 1});
    const std::weak_ptr<const void> memory = chunk.owner;
    push->Place(std::move(chunk));
    arrived_.Keep(std::move(push));
    return memory;
  }

  const std::shared_ptr<const Layout> layout_ = std::make_shared<const Layout>(ParametersOnly(2));
  ArrivedPushes arrived_;
};

TEST_F(ArrivedPushesTest, KeepsGradientsUntilTheyAreTakenOrDropped) {
  const std::weak_ptr<const void> first = Keep(1);
  const std::weak_ptr<const void> second = Keep(2);
  EXPECT_EQ(arrived_.Take(PushId(2))->id(), PushId(2));
  EXPECT_TRUE(second.expired());
  EXPECT_FALSE(first.expired());
  std::unique_ptr<PendingPush> dropped = arrived_.Drop(PushId(1));
  EXPECT_EQ(arrived_.Drop(PushId(1)), nullptr);
  EXPECT_FALSE(first.expired());
  dropped = nullptr;
  EXPECT_TRUE(first.expired());
}

TEST_F(ArrivedPushesTest, DropsWhatAnEndedSessionHasButForTheExceptions) {
  Keep(1);
  Keep(2);
  EXPECT_TRUE(arrived_.DropSession(SessionId(1), {PushId(1)}).empty());
  EXPECT_EQ(arrived_.DropSession(SessionId(1), {}).size(), 1u);
  EXPECT_EQ(arrived_.Drop(PushId(1)), nullptr);
  EXPECT_NE(arrived_.Drop(PushId(2)), nullptr);
}

}  // namespace
}  // namespace sluice
