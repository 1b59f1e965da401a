// The graph of WordNet: its synsets, and the relations between them.

#ifndef SLUICE_WORKER_DATA_TABLES_WORDNET_GRAPH_H_
#define SLUICE_WORKER_DATA_TABLES_WORDNET_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// "The synset `head` has the relation to the synset `tail`."
struct Triple {
  int64_t head = 0;
  int64_t relation = 0;
  int64_t tail = 0;
};

struct WordnetGraph {
  int64_t synsets = 0;                 // numbered from 0, in the order of the files
  std::vector<std::string> relations;  // pointer symbols such as "@", a hypernym
  // Relations between whole synsets, cut at random as in WN18 (Bordes et al. 2013): where one of
  // the test has an inverse, that is often in `train`.
  std::vector<Triple> train;
  std::vector<Triple> test;  // about one in 20
};

// Reads data.noun, data.verb, data.adj and data.adv of that folder, in the format of wndb(5WN).
// Throws std::runtime_error with the file and the line of what is wrong.
WordnetGraph ReadWordnet(const std::string& folder);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_TABLES_WORDNET_GRAPH_H_
