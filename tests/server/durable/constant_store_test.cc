#include "server/durable/constant_store.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/checkpoint/reading/constants_file.h"
#include "common/encoding/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::vector<ConstantTensor> Constants() {
  return {{"mask", {2}, "F32"}, {"nothing", {0}, "I64"}, {"base", {3}, "I8"}};
}

constexpr char kBytes[] = "0123456789a";  // 8 and 3

class ConstantStoreTest : public ::testing::Test {
 protected:
  ConstantStoreTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  ConstantStore Store(const std::string& job = "job") { return {job, folder_, RealFileSystem()}; }

  const std::string folder_ = ::testing::TempDir() + "/constants";
  const std::string path_ = folder_ + "/constants.safetensors";
};

TEST_F(ConstantStoreTest, TheFirstCountAndAreThereAfterARestart) {
  ConstantStore first = Store();
  EXPECT_EQ(first.values(), nullptr);
  ASSERT_THAT(first.Adopt(Constants(), kBytes), IsOk());
  const auto known = first.Adopt(Constants(), "later bytes");
  ASSERT_THAT(known, IsOk());
  EXPECT_EQ((*known)->bytes, kBytes);
  EXPECT_EQ((*known)->checksum, Checksum(kBytes));
  ConstantStore second = Store();
  ASSERT_THAT(second.Restore(Constants()), IsOk());
  EXPECT_EQ(second.values()->bytes, kBytes);
  EXPECT_EQ(second.values()->checksum, Checksum(kBytes));
}

TEST_F(ConstantStoreTest, AModelWithoutThemNeedsNoFile) {
  ConstantStore store = Store();
  EXPECT_THAT(store.Restore({}), IsOk());
  EXPECT_EQ(store.values(), nullptr);
}

TEST_F(ConstantStoreTest, AFileThatIsNotTheJobsIsNamed) {
  const auto restored = [&](const std::string& job, const std::vector<ConstantTensor>& constants) {
    return Store(job).Restore(constants);
  };
  EXPECT_THAT(restored("job", Constants()),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr(path_ + " is missing")));
  ASSERT_THAT(Store().Adopt(Constants(), kBytes), IsOk());
  EXPECT_THAT(restored("another", Constants()),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr(path_ + ": it is of job job")));
  EXPECT_THAT(restored("job", {{"mask", {2}, "F32"}}),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("not the constants")));
  const auto size = std::filesystem::file_size(path_);
  for (const uintmax_t at : {size - 20, size - 1}) {  // the last byte of the values; the checksum
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
    file.close();
    EXPECT_THAT(restored("job", Constants()),
                HasCode(absl::StatusCode::kDataLoss, HasSubstr(path_)));
  }
  std::filesystem::resize_file(path_, size - 1);
  EXPECT_THAT(restored("job", Constants()), HasCode(absl::StatusCode::kDataLoss, HasSubstr(path_)));
}

TEST_F(ConstantStoreTest, WhatCannotBeSavedDoesNotCount) {
  FaultyFiles files;
  files.SetRoom(40);
  ConstantStore store("job", "/disk", files);
  EXPECT_THAT(store.Adopt(Constants(), kBytes),
              HasCode(absl::StatusCode::kResourceExhausted, ::testing::_));
  EXPECT_EQ(store.values(), nullptr);
  files.SetRoom(absl::nullopt);
  EXPECT_THAT(store.Adopt(Constants(), kBytes), IsOk());
}

}  // namespace
}  // namespace sluice
