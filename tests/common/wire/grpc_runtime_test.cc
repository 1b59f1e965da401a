#include "common/wire/grpc_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace sluice {
namespace {

constexpr char kVariable[] = "GRPC_EXPERIMENTS";

std::string After(const char* before) {
  setenv(kVariable, before, 1);
  BoundReadBuffers();
  const std::string after = getenv(kVariable);
  unsetenv(kVariable);
  return after;
}

TEST(BoundReadBuffersTest, TurnsOneExperimentOff) { EXPECT_EQ(After(""), "-tcp_read_chunks"); }

TEST(BoundReadBuffersTest, KeepsTheExperimentsThatTheUserChose) {
  EXPECT_EQ(After("tcp_frame_size_tuning"), "tcp_frame_size_tuning,-tcp_read_chunks");
}

TEST(BoundReadBuffersTest, LeavesItsOwnExperimentToTheUser) {
  EXPECT_EQ(After("tcp_read_chunks"), "tcp_read_chunks");
}

}  // namespace
}  // namespace sluice
