#include "tests/soak/process_size.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/file_descriptor.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

ProcessSize Mine() {
  const auto size = SizeOf(getpid());
  EXPECT_THAT(size, IsOk());
  return size.value_or(ProcessSize());
}

TEST(ProcessSizeTest, CountsFileDescriptors) {
  const double before = Mine().file_descriptors;
  const FileDescriptor one(open("/dev/null", O_RDONLY)), two(open("/dev/null", O_RDONLY));
  EXPECT_EQ(Mine().file_descriptors, before + 2);
}

TEST(ProcessSizeTest, CountsThreads) {
  const double before = Mine().threads;
  absl::Notification end;
  std::thread waits([&] { end.WaitForNotification(); });
  EXPECT_EQ(Mine().threads, before + 1);
  end.Notify();
  waits.join();
}

TEST(ProcessSizeTest, MeasuresResidentMemoryInMegabytes) {
  constexpr size_t kBytes = 100'000'000;
  const double before = Mine().rss_mb;
  std::vector<char> touched(kBytes);
  std::memset(touched.data(), 1, kBytes);
  const double grown = Mine().rss_mb - before;
  EXPECT_GT(grown, 99);
  EXPECT_LT(grown, 110);
}

TEST(ProcessSizeTest, AProcessThatIsGoneIsNamed) {
  EXPECT_THAT(SizeOf(1 << 30),
              HasCode(absl::StatusCode::kNotFound, ::testing::HasSubstr("process 1073741824")));
}

}  // namespace
}  // namespace sluice
