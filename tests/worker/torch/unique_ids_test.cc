#include "worker/torch/tables/unique_ids.h"

#include <torch/torch.h>

#include "gtest/gtest.h"

namespace sluice {
namespace {

void ExpectAsTorchFindsThem(const torch::Tensor& ids) {
  const UniqueIds unique = Unique(ids);
  const auto [expected, places] = torch::_unique(ids, /*sorted=*/true, /*return_inverse=*/true);
  EXPECT_TRUE(torch::equal(unique.ids, expected)) << unique.ids << expected;
  EXPECT_TRUE(torch::equal(unique.places, places)) << unique.places << places;
}

TEST(UniqueIdsTest, AreThoseThatTorchFinds) {
  torch::manual_seed(1);
  ExpectAsTorchFindsThem(torch::randint(0, 100, {1000}, torch::kInt64));
  ExpectAsTorchFindsThem(torch::randint(-50, 1000000, {1000}, torch::kInt64));
  ExpectAsTorchFindsThem(torch::full({7}, 9, torch::kInt64));
  ExpectAsTorchFindsThem(torch::empty({0}, torch::kInt64));
}

TEST(UniqueIdsTest, HavePlacesInTheShapeOfTheIds) {
  ExpectAsTorchFindsThem(torch::randint(0, 10, {3, 4, 5}, torch::kInt64));
  ExpectAsTorchFindsThem(torch::randint(0, 10, {6, 4}, torch::kInt64).transpose(0, 1));
  ExpectAsTorchFindsThem(torch::tensor(7, torch::kInt64));
}

}  // namespace
}  // namespace sluice
