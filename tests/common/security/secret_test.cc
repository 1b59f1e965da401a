#include "common/security/secret.h"

#include <string>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(SecretTest, IsTheSameOnlyIfAllOfItIs) {
  EXPECT_TRUE(SameSecret("open sesame", "open sesame"));
  EXPECT_TRUE(SameSecret("", ""));
  EXPECT_FALSE(SameSecret("open sesame", "open barley!"));
  EXPECT_FALSE(SameSecret("open sesame", "open"));
}

TEST(SecretTest, LeavesNothingInItsMemory) {
  std::string secret(100, 's');
  const char* const memory = secret.data();
  Wipe(secret);
  EXPECT_EQ(secret, "");
  EXPECT_EQ(memory[50], '\0');  // the string keeps its memory
}

}  // namespace
}  // namespace sluice
