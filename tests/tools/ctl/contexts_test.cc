// Named servers: the file, and which server a command then asks.

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ContextsTest : public ::testing::Test {
 protected:
  ContextsTest() { std::filesystem::remove_all(folder_); }

  // What sluicectl prints with this file of contexts; its exit code must be `code`.
  std::string Ctl(const Words& words, int code = 0, const Process::Environment& more = {}) {
    Process::Environment environment = more;
    environment["SLUICE_CONTEXTS"] = path_;
    const auto process =
        Process::Start(With({RunfilePath("tools/ctl/sluicectl")}, words), environment);
    EXPECT_THAT(process, IsOk());
    EXPECT_THAT((*process)->Wait(), IsOkAndHolds(code)) << (*process)->output();
    return (*process)->output();
  }

  std::string JobAt(const Words& words, const Process::Environment& more = {}) {
    return JsonAt(Ctl(With({"status", "--json"}, words), 0, more), "jobId");
  }

  void WriteFile(const std::string& text, mode_t mode = 0600) {
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }

  static ShardOptions JobNamed(const std::string& id) {
    ShardOptions options = Sync(1);
    options.job_id = id;
    return options;
  }

  const std::string folder_ = TestPath("home");
  const std::string path_ = folder_ + "/sluice/contexts.json";
  ServerWorld one_{JobNamed("one")};
  ServerWorld two_{JobNamed("two")};
  const std::string at_one_ = one_.address().ToString();
  const std::string at_two_ = two_.address().ToString();
};

TEST_F(ContextsTest, WithoutContextsTheListSaysHowToAddOne) {
  EXPECT_EQ(Ctl({"context", "list"}),
            "no contexts; sluicectl context add NAME --server=host:port adds one\n");
}

TEST_F(ContextsTest, TheFirstContextIsTheCurrentOneUntilAnotherIsUsed) {
  EXPECT_EQ(Ctl({"context", "add", "a", "--server=" + at_one_}),
            "added a, which is the current one\n");
  EXPECT_EQ(Ctl({"context", "add", "b", "--server=" + at_two_}), "added b\n");
  EXPECT_EQ(JobAt({}), "one");
  EXPECT_EQ(Ctl({"context", "use", "b"}), absl::StrCat("using b: ", at_two_, "\n"));
  EXPECT_EQ(JobAt({}), "two");
  EXPECT_EQ(Ctl({"context", "list"}),
            absl::StrCat("   NAME  SERVER           ACCESS\n   a     ", at_one_,
                         "  plaintext\n*  b     ", at_two_, "  plaintext\n"));
  EXPECT_EQ(Ctl({"context", "remove", "b"}), "removed b\n");
  EXPECT_THAT(Ctl({"status"}, 2), HasSubstr("choose one with context use"));
}

TEST_F(ContextsTest, TheCommandLineCountsBeforeTheEnvironmentAndThatBeforeTheCurrentContext) {
  Ctl({"context", "add", "a", "--server=" + at_one_});
  EXPECT_EQ(JobAt({"--server=" + at_two_}), "two");
  EXPECT_EQ(JobAt({}, {{"SLUICE_SERVER", at_two_}}), "two");
  EXPECT_EQ(JobAt({"--context=a"}, {{"SLUICE_SERVER", at_two_}}), "one");
  EXPECT_EQ(JobAt({"--server=" + at_two_}, {{"SLUICE_CONTEXT", "a"}}), "two");
  EXPECT_THAT(Ctl({"status", "--context=a", "--server=" + at_two_}, 2),
              HasSubstr("expected one of them; leave one out"));
}

TEST_F(ContextsTest, TheFileIsOfItsOwnerAloneAndHasPathsOnly) {
  Ctl({"context", "add", "a", "--server=" + at_one_, "--token-file=some/token"});
  struct stat facts = {};
  ASSERT_EQ(stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  const std::string json = Ctl({"context", "list", "--json"});
  EXPECT_EQ(JsonAt(json, "current"), "a");
  EXPECT_EQ(JsonAt(json, "contexts.a.token_file"),
            (std::filesystem::current_path() / "some/token").string());
}

TEST_F(ContextsTest, AFileThatOthersMayWriteIsNotTrusted) {
  WriteFile("{}", 0660);
  EXPECT_THAT(Ctl({"status"}, 1),
              AllOf(HasSubstr("other users may write it"), HasSubstr("run chmod 600 ")));
  EXPECT_EQ(JobAt({"--server=" + at_one_}), "one");
}

TEST_F(ContextsTest, ADamagedFileIsNamedAndLeftAsItIs) {
  for (const std::string text : {"{\"contexts\":", "[]", "{\"contexts\":{\"a\":1}}",
                                 "{\"contexts\":{\"a\":{\"tokn\":\"\"}}}"}) {
    WriteFile(text);
    EXPECT_THAT(Ctl({"context", "add", "b", "--server=" + at_one_}, 1),
                AllOf(HasSubstr(path_), HasSubstr("; mend it, or remove it")));
    EXPECT_EQ(std::filesystem::file_size(path_), text.size());
  }
}

TEST_F(ContextsTest, WrongNamesAndAddressesEndWithTwo) {
  EXPECT_THAT(Ctl({"context", "use", "a"}, 2),
              HasSubstr("there is no context \"a\"; context add makes one"));
  Ctl({"context", "add", "a", "--server=" + at_one_});
  EXPECT_THAT(Ctl({"context", "use", "b"}, 2), HasSubstr("expected one of a"));
  EXPECT_THAT(Ctl({"status", "--context=b"}, 2), HasSubstr("there is no context \"b\""));
  EXPECT_THAT(Ctl({"context", "add", "a b", "--server=" + at_one_}, 2),
              HasSubstr("expected 1 to 64"));
  EXPECT_THAT(Ctl({"context", "add", "c"}, 2), HasSubstr("expected --server=host:port"));
  EXPECT_THAT(Ctl({"context", "add", "c", "--server=10.0.0.1:1"}, 2),
              HasSubstr("--insecure-on-network"));
}

}  // namespace
}  // namespace sluice
