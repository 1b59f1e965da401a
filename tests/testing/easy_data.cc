#include "tests/testing/easy_data.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr size_t kSide = 28;

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string Images(uint32_t count) {
  std::string bytes =
      absl::StrCat(BigEndian(0x803), BigEndian(count), BigEndian(kSide), BigEndian(kSide));
  for (uint32_t i = 0; i < count; ++i) {
    std::string image(kSide * kSide, '\0');
    image.replace(i % 10 * 2 * kSide, 2 * kSide, 2 * kSide, '\xff');
    bytes += image;
  }
  return bytes;
}

std::string Labels(uint32_t count) {
  std::string bytes = absl::StrCat(BigEndian(0x801), BigEndian(count));
  for (uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

std::string WriteEasyData(const std::string& folder, uint32_t training_images,
                          uint32_t test_images) {
  std::filesystem::create_directories(folder);
  WriteFile(folder + "/train-images-idx3-ubyte", Images(training_images));
  WriteFile(folder + "/train-labels-idx1-ubyte", Labels(training_images));
  WriteFile(folder + "/t10k-images-idx3-ubyte", Images(test_images));
  WriteFile(folder + "/t10k-labels-idx1-ubyte", Labels(test_images));
  return folder;
}

}  // namespace sluice
