#include "common/security/role.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(RoleTest, IsWrittenAsAUri) {
  for (const Role role : {Role::kWorker, Role::kObserver, Role::kAdmin, Role::kServer}) {
    EXPECT_EQ(RoleFromUri(RoleUri(role)), role);
  }
  EXPECT_EQ(RoleUri(Role::kObserver), "sluice:observer");
}

TEST(RoleTest, IsNoOtherUri) {
  for (const char* uri : {"", "sluice:", "sluice:root", "worker", "sluice:worker2", "SLUICE:worker",
                          "https://sluice:worker"}) {
    EXPECT_EQ(RoleFromUri(uri), absl::nullopt) << uri;
  }
}

TEST(RoleTest, SetsOfRolesMeetInTheirRoles) {
  const Roles both = Roles(Role::kWorker) | Role::kAdmin;
  EXPECT_TRUE(both.Meet(Role::kAdmin));
  EXPECT_FALSE(both.Meet(Role::kObserver));
  EXPECT_FALSE(Roles().Meet(Roles::All()));
  EXPECT_EQ(both.ToString(), "worker or admin");
  EXPECT_EQ(Roles().ToString(), "none");
}

}  // namespace
}  // namespace sluice
