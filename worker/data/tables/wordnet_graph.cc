#include "worker/data/tables/wordnet_graph.h"

#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "common/tensor/table_spec.h"
#include "worker/data/inflating_file.h"

namespace sluice {
namespace {

constexpr uint64_t kMostFileBytes = uint64_t{1} << 32;
constexpr uint64_t kTestPart = 20;  // one triple of so many is for the test

// A synset is named by its part of speech and its place in the file. Satellites of adjectives ("s")
// are in the file of adjectives.
using Name = std::pair<char, int64_t>;

Name NameOf(char part, int64_t place) { return {part == 's' ? 'a' : part, place}; }

struct Pointer {
  Name from;
  std::string symbol;
  Name to;
};

struct Files {
  std::map<Name, int64_t> numbers;
  std::vector<Pointer> pointers;
};

// "00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 …": place, file, part of speech, the number of
// words in base 16, each word with a number, the number of pointers, and each pointer. "0000" says
// that it is between the synsets, and not between two words.
void ReadSynset(const std::string& line, Files& files) {
  std::istringstream in(line);
  in.exceptions(std::ios::failbit);
  int64_t place = 0;
  int64_t words = 0;
  int64_t pointers = 0;
  std::string skipped;
  char part = 0;
  in >> place >> skipped >> part >> std::hex >> words >> std::dec;
  for (int64_t i = 0; i < 2 * words; ++i) in >> skipped;
  in >> pointers;
  const Name name = NameOf(part, place);
  files.numbers.emplace(name, static_cast<int64_t>(files.numbers.size()));
  for (int64_t i = 0; i < pointers; ++i) {
    std::string symbol;
    std::string between;
    in >> symbol >> place >> part >> between;
    if (between == "0000") files.pointers.push_back({name, symbol, NameOf(part, place)});
  }
}

void ReadFile(const std::string& path, Files& files) {
  InflatingFile file(path);
  const absl::Status opened = file.Open();
  const auto bytes = opened.ok() ? ReadAtMost(file, kMostFileBytes) : opened;
  if (!bytes.ok()) {
    throw std::runtime_error(std::string(bytes.status().message()) +
                             "; the package wordnet-base has it");
  }
  std::istringstream in(std::string(bytes->begin(), bytes->end()));
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == ' ') continue;  // the licence
    try {
      ReadSynset(line, files);
    } catch (const std::ios_base::failure&) {
      throw std::runtime_error(path + ", line " + std::to_string(number) +
                               ": expected a synset as wndb(5WN) describes it");
    }
  }
}

bool IsForTest(const Triple& triple) {
  uint64_t hash = 0;
  for (const int64_t part : {triple.head, triple.relation, triple.tail}) {
    hash = MixId(hash ^ static_cast<uint64_t>(part + 1));
  }
  return hash % kTestPart == 0;
}

}  // namespace

WordnetGraph ReadWordnet(const std::string& folder) {
  Files files;
  for (const char* part : {"noun", "verb", "adj", "adv"}) {
    ReadFile(folder + "/data." + part, files);
  }
  WordnetGraph graph;
  graph.synsets = static_cast<int64_t>(files.numbers.size());
  std::map<std::string, int64_t> relations;
  for (const Pointer& pointer : files.pointers) {
    const auto to = files.numbers.find(pointer.to);
    if (to == files.numbers.end()) {
      throw std::runtime_error(folder + ": a relation " + pointer.symbol + " leads to synset " +
                               std::to_string(pointer.to.second) + ", which no file has");
    }
    const auto relation = relations.emplace(pointer.symbol, static_cast<int64_t>(relations.size()));
    if (relation.second) graph.relations.push_back(pointer.symbol);
    const Triple triple = {files.numbers.at(pointer.from), relation.first->second, to->second};
    (IsForTest(triple) ? graph.test : graph.train).push_back(triple);
  }
  return graph;
}

}  // namespace sluice
