#include "worker/job_flags.h"

#include <CLI/CLI.hpp>
#include <locale>
#include <string>

#include "common/base/command_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// As in German.
class Commas : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

std::string ConfigOfJob() {
  CLI::App app;
  JobFlags flags;
  AddJobFlags(app, flags);
  const char* const words[] = {"program", "--print-config"};
  try {
    ParseArguments(app, 2, words);
  } catch (const CLI::CallForVersion& text) {
    return text.what();
  }
  return "";
}

TEST(JobFlagsTest, TheConfigIsTheSameInAnyLocaleOfTheProgram) {
  const std::string expected = ConfigOfJob();
  EXPECT_THAT(expected, HasSubstr("\"row-cache-memory\": 256"));
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Commas));
  EXPECT_EQ(ConfigOfJob(), expected);
  EXPECT_EQ(std::use_facet<std::numpunct<char>>(std::locale()).decimal_point(), ',');
  std::locale::global(before);
}

}  // namespace
}  // namespace sluice
