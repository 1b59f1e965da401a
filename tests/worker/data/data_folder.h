// A folder in which a test of a reader puts a data set's files, byte by byte.

#ifndef SLUICE_TESTS_WORKER_DATA_DATA_FOLDER_H_
#define SLUICE_TESTS_WORKER_DATA_DATA_FOLDER_H_

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace sluice {

using Bytes = std::vector<uint8_t>;

inline Bytes BytesOf(absl::string_view text) { return {text.begin(), text.end()}; }

// The folder is empty at first, and belongs to the running test.
class DataFolderTest : public ::testing::Test {
 protected:
  DataFolderTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/data_",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  void WritePlain(const std::string& name, const Bytes& bytes) const {
    std::ofstream file(Path(name), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  void WriteGzip(const std::string& name, const Bytes& bytes) const {
    gzFile file = gzopen(Path(name).c_str(), "wb");
    ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
  }

  const std::string folder_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_WORKER_DATA_DATA_FOLDER_H_
