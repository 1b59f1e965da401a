#include "common/tensor/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<SharedMemory> MemoryOf(uint64_t elements) {
  auto memory = SharedMemory::Create(elements);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return memory.ok() ? *memory : nullptr;
}

std::string PathOf(const SharedMemoryName& name) {
  return absl::StrCat("/proc/", name.pid, "/fd/", name.fd);
}

auto IsUnavailable(const std::string& words) {
  return HasCode(absl::StatusCode::kUnavailable, HasSubstr(words));
}

absl::Status OpeningOf(const SharedMemoryName& name) {
  return SharedMemoryView::Open(name).status();
}

TEST(SharedMemoryTest, IsReadByAnotherProcess) {
  const auto memory = MemoryOf(1000);
  memory->floats()[999] = 2.5f;
  const pid_t child = fork();
  if (child == 0) {
    const auto view = SharedMemoryView::Open(memory->name());
    _exit(view.ok() && (*view)->floats().size() == 1000 && (*view)->floats()[999] == 2.5f ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SharedMemoryTest, BeginsAsZeroes) {
  EXPECT_THAT(MemoryOf(3)->floats(), ElementsAre(0, 0, 0));
  EXPECT_THAT(MemoryOf(3000)->floats(), Each(0));
}

TEST(SharedMemoryTest, OutlivesItsMakerForThoseThatReadIt) {
  auto memory = MemoryOf(2);
  memory->floats()[1] = 7;
  const auto view = SharedMemoryView::Open(memory->name());
  ASSERT_THAT(view, IsOk());
  memory = nullptr;
  EXPECT_THAT((*view)->floats(), ElementsAre(0, 7));
}

TEST(SharedMemoryTest, IsOpenToItsUserAlone) {
  const auto memory = MemoryOf(1);
  struct stat info = {};
  ASSERT_EQ(stat(PathOf(memory->name()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(SharedMemoryTest, NeitherShrinksNorIsWrittenByOthers) {
  const auto memory = MemoryOf(1);
  const int fd = open(PathOf(memory->name()).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(ftruncate(fd, 0), -1);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(write(fd, "x", 1), -1);
  close(fd);
}

TEST(SharedMemoryTest, ANameOfNothingIsRefused) {
  const auto memory = MemoryOf(4);
  SharedMemoryName name = memory->name();
  name.fd = 1'000'000;
  EXPECT_THAT(OpeningOf(name), IsUnavailable("cannot open"));
  name = memory->name();
  name.pid = 4'000'000'000;
  EXPECT_THAT(OpeningOf(name), IsUnavailable("cannot open"));
}

TEST(SharedMemoryTest, AnotherMemoryThanTheNamedOneIsRefused) {
  SharedMemoryName name = MemoryOf(4)->name();
  const auto memory = MemoryOf(4);
  name.fd = memory->name().fd;
  EXPECT_THAT(OpeningOf(name), IsUnavailable("not the one that it named"));
}

TEST(SharedMemoryTest, MoreThanThereIsIsRefused) {
  SharedMemoryName name = MemoryOf(4)->name();
  const auto memory = MemoryOf(4);
  name = memory->name();
  name.elements = 1'000'000;
  EXPECT_THAT(OpeningOf(name),
              IsUnavailable("smaller than its name says, not sealed, or another user"));
  name.elements = UINT64_MAX / 2;
  EXPECT_THAT(OpeningOf(name), IsUnavailable("more elements than fit into an address space"));
}

TEST(SharedMemoryTest, AFileThatCouldShrinkIsRefused) {
  char path[] = "/tmp/sluice-test-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  unlink(path);
  ASSERT_EQ(ftruncate(fd, 1 << 20), 0);
  SharedMemoryName name;
  name.pid = static_cast<uint32_t>(getpid());
  name.fd = static_cast<uint32_t>(fd);
  name.elements = 4;
  EXPECT_THAT(OpeningOf(name),
              IsUnavailable("smaller than its name says, not sealed, or another user"));
  close(fd);
}

TEST(SharedMemoryTest, APartOfItHasAnIndex) {
  const auto memory = MemoryOf(10);
  const absl::Span<const float> all = memory->floats();
  EXPECT_EQ(memory->IndexOf(all), 0u);
  EXPECT_EQ(memory->IndexOf(all.subspan(3, 7)), 3u);
  EXPECT_EQ(memory->IndexOf(all.subspan(10, 0)), 10u);
  EXPECT_EQ(memory->IndexOf({all.data() + 3, 8}), absl::nullopt);
  const float elsewhere = 0;
  EXPECT_EQ(memory->IndexOf({&elsewhere, 1}), absl::nullopt);
}

TEST(SharedMemoryTest, TellsAReaderThatItWasWrittenAgain) {
  const auto memory = MemoryOf(1);
  memory->StartGeneration();
  const uint64_t read = memory->generation();
  const auto view = SharedMemoryView::Open(memory->name());
  ASSERT_THAT(view, IsOk());
  EXPECT_TRUE((*view)->IsStill(read));
  memory->StartGeneration();
  EXPECT_FALSE((*view)->IsStill(read));
}

}  // namespace
}  // namespace sluice
