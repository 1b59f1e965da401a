#include "worker/data/tables/wordnet_graph.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/data/tables/wordnet_folder.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class WordnetGraphTest : public ::testing::Test {
 protected:
  const WordnetFolder folder_;
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
  const WordnetGraph graph = ReadWordnet(folder_.path());
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
  folder_.Write("verb", "\n00000010 29 v 01 exist 0 002 @ 00000010 v 0000\n");
  EXPECT_THAT([&] { ReadWordnet(folder_.path()); },
              ThrowsMessage<std::runtime_error>(HasSubstr(folder_.PathOf("verb") + ", line 2")));
}

TEST_F(WordnetGraphTest, RefusesARelationToASynsetThatDoesNotExist) {
  folder_.Write("adv", "00000010 02 r 01 well 0 001 ! 00000030 r 0000 | good\n");
  EXPECT_THAT([&] { ReadWordnet(folder_.path()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("leads to synset 30")));
}

}  // namespace
}  // namespace sluice
