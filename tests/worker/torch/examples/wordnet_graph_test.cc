#include "worker/torch/examples/wordnet_graph.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::examples {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Lines of the files as wndb(5WN) describes them.
constexpr char kNouns[] =
    "  1 This software and database\n"
    "00000010 03 n 01 entity 0 001 ~ 00000020 n 0000 | that which is\n"
    "00000020 03 n 02 thing 0 object 1 002 @ 00000010 n 0000 + 00000010 v 0101 | a thing\n";
constexpr char kVerbs[] = "00000010 29 v 01 exist 0 001 @ 00000010 v 0000 01 + 02 00 | be\n";
constexpr char kAdjectives[] =
    "00000010 00 a 01 able 0 001 & 00000020 a 0000 | having means\n"
    "00000020 00 s 01 fit(p) 0 001 & 00000010 a 0000 | suited\n";

class WordnetGraphTest : public ::testing::Test {
 protected:
  WordnetGraphTest() {
    folder_ = ::testing::TempDir() + "wordnet" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    mkdir(folder_.c_str(), 0700);
    Write("noun", kNouns);
    Write("verb", kVerbs);
    Write("adj", kAdjectives);
    Write("adv", "");
  }

  void Write(const std::string& part, const std::string& text) {
    std::ofstream(folder_ + "/data." + part) << text;
  }
  std::string PathOf(const std::string& part) const { return folder_ + "/data." + part; }

  std::string folder_;
};

// All triples as "head relation tail", in the order of their texts.
std::vector<std::string> All(const WordnetGraph& graph) {
  std::vector<std::string> all;
  for (const auto* part : {&graph.train, &graph.test}) {
    for (const Triple& triple : *part) {
      all.push_back(std::to_string(triple.head) + " " +
                    graph.relations.at(static_cast<size_t>(triple.relation)) + " " +
                    std::to_string(triple.tail));
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

// The relation "+" is between two words. The satellite ("s") is found among the adjectives.
TEST_F(WordnetGraphTest, HasTheRelationsBetweenSynsets) {
  const WordnetGraph graph = ReadWordnet(folder_);
  EXPECT_EQ(graph.synsets, 5);
  EXPECT_THAT(graph.relations, ElementsAre("~", "@", "&"));
  EXPECT_THAT(All(graph), ElementsAre("0 ~ 1", "1 @ 0", "2 @ 2", "3 & 4", "4 & 3"));
}

TEST_F(WordnetGraphTest, SaysWhichFileIsMissing) {
  EXPECT_THAT([] { ReadWordnet("/nowhere"); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("/nowhere/data.noun"), HasSubstr("wordnet-base"))));
}

TEST_F(WordnetGraphTest, SaysWhichLineIsNoSynset) {
  Write("verb", "\n00000010 29 v 01 exist 0 002 @ 00000010 v 0000\n");
  EXPECT_THAT([&] { ReadWordnet(folder_); },
              ThrowsMessage<std::runtime_error>(HasSubstr(PathOf("verb") + ", line 2")));
}

TEST_F(WordnetGraphTest, RefusesARelationToASynsetThatDoesNotExist) {
  Write("adv", "00000010 02 r 01 well 0 001 ! 00000030 r 0000 | good\n");
  EXPECT_THAT([&] { ReadWordnet(folder_); },
              ThrowsMessage<std::runtime_error>(HasSubstr("leads to synset 30")));
}

}  // namespace
}  // namespace sluice::examples
