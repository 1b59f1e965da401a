// The triples of WordNet's graph (wordnet_graph.h), and synsets that their tails compete with.

#ifndef SLUICE_WORKER_DATA_TABLES_TRIPLE_DATA_H_
#define SLUICE_WORKER_DATA_TABLES_TRIPLE_DATA_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/tables/table_data.h"
#include "worker/data/tables/wordnet_graph.h"

namespace sluice {

// Batch::labels has the relations of the triples. Batch::ids has their heads, then their tails,
// then the other synsets. Those are kOthers synsets at random, the same for all workers of a batch,
// so that its loss does not depend on their number. The test has all synsets there, in their order.
// An epoch has each triple once.
class TripleData final : public TableData {
 public:
  static constexpr int64_t kSynsets = 117'659;  // at most: of WordNet 3.0
  static constexpr int64_t kRelations = 64;     // at most
  static constexpr int64_t kOthers = 256;
  static constexpr int64_t kTestSamples = 1000;  // at most

  // Reads the folder of Debian's package wordnet-base. INVALID_ARGUMENT if it is not there, is no
  // WordNet, or has more than the above.
  static absl::StatusOr<TripleData> Read(const std::string& folder);

  int64_t size() const override { return static_cast<int64_t>(graph_.train.size()); }
  Batch MakeBatch(absl::Span<const int64_t> rows, int64_t epoch, int64_t step) const override;
  const Batch& test() const override { return test_; }

 private:
  explicit TripleData(WordnetGraph graph);

  Batch TestBatch() const;

  WordnetGraph graph_;
  Batch test_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_TABLES_TRIPLE_DATA_H_
