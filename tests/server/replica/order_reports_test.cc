#include "server/replica/order_reports.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr uint32_t kReplicas = 3;

StripeReport BadAt(uint64_t element) {
  StripeReport report;
  report.bad = element;
  return report;
}

TEST(OrderReportsTest, AnOrderIsCarriedOutWhenAllReplicasHaveReported) {
  OrderReports reports;
  for (const uint64_t order : {10, 20}) {
    reports.Begin(kReplicas, absl::UnixEpoch());
    reports.Take(1, BadAt(order + 1));
    reports.Take(1, BadAt(order + 9));
    reports.Take(0, BadAt(order));
    EXPECT_FALSE(reports.complete());
    reports.Take(2, BadAt(order + 2));
    ASSERT_TRUE(reports.complete());
    reports.Take(2, BadAt(order + 8));
    const std::vector<StripeReport> all = reports.TakeAll();
    ASSERT_EQ(all.size(), kReplicas);
    for (uint32_t i = 0; i < kReplicas; ++i) EXPECT_EQ(all[i].bad, order + i);
    reports.Take(1, BadAt(order));  // on no order
    EXPECT_FALSE(reports.complete());
  }
}

TEST(OrderReportsTest, TheReplicaWithTheLowestNumberIsAwaited) {
  OrderReports reports;
  EXPECT_FALSE(reports.awaited().has_value());
  const absl::Time now = absl::UnixEpoch() + absl::Seconds(7);
  reports.Begin(kReplicas, now);
  reports.Take(0, {});
  ASSERT_TRUE(reports.awaited().has_value());
  EXPECT_EQ(reports.awaited()->server, 1);
  EXPECT_EQ(reports.awaited()->since, now);
  reports.Take(2, {});
  reports.Take(1, {});
  EXPECT_FALSE(reports.awaited().has_value());
}

}  // namespace
}  // namespace sluice
