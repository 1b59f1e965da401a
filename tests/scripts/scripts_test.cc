// Plays the stories of all scripts in this folder, each with each of its rows of servers. A story
// is a test: Script/modes.A_worker_goes_on/3.

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/scripts/player.h"
#include "tests/testing/process/process.h"

namespace sluice {
namespace {

class ScriptTest : public ::testing::Test {
 public:
  ScriptTest(Story story, std::string path, std::string row)
      : story_(std::move(story)), path_(std::move(path)), row_(std::move(row)) {}
  void TestBody() override { Play(story_, path_, row_); }

 private:
  const Story story_;
  const std::string path_;
  const std::string row_;
};

std::string NameOf(const Story& story, const std::string& row) {
  std::string name = story.sentence;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return absl::StrCat(name, "/", row);
}

void Register(const std::filesystem::path& path) {
  for (const Story& story : ReadScript(path.string())) {
    for (const std::string& row : story.rows) {
      ::testing::RegisterTest(
          absl::StrCat("Script/", path.stem().string()).c_str(), NameOf(story, row).c_str(),
          nullptr, nullptr, path.filename().c_str(), 1,
          [=]() -> ::testing::Test* { return new ScriptTest(story, path.filename(), row); });
    }
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (const auto& file :
       std::filesystem::directory_iterator(sluice::RunfilePath("tests/scripts"))) {
    if (file.path().extension() == ".txt") sluice::Register(file.path());
  }
  return RUN_ALL_TESTS();
}
