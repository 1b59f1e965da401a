#include "worker/data/tables/triple_data.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/data/tables/made_batch.h"
#include "worker/data/tables/sample_numbers.h"

namespace sluice {
namespace {

// With all ids but those of the other synsets.
template <typename At>
Batch TriplesOf(size_t count, const At& at) {
  Batch batch;
  batch.labels.resize(count);
  batch.ids.resize(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const Triple& triple = at(i);
    batch.ids[i] = triple.head;
    batch.ids[count + i] = triple.tail;
    batch.labels[i] = triple.relation;
  }
  return batch;
}

absl::Status CheckSize(const WordnetGraph& graph, const std::string& folder) {
  const auto relations = static_cast<int64_t>(graph.relations.size());
  if (graph.train.empty() || graph.test.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " has ", graph.train.size() + graph.test.size(),
                     " relations between synsets, expected those of WordNet 3.0"));
  }
  if (graph.synsets <= TripleData::kSynsets && relations <= TripleData::kRelations) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      folder, " has ", graph.synsets, " synsets and ", relations, " kinds of relations, expected ",
      "at most ", TripleData::kSynsets, " and ", TripleData::kRelations, ", as WordNet 3.0 has"));
}

}  // namespace

absl::StatusOr<TripleData> TripleData::Read(const std::string& folder) {
  WordnetGraph graph;
  try {
    graph = ReadWordnet(folder);
  } catch (const std::runtime_error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  const absl::Status sized = CheckSize(graph, folder);
  if (!sized.ok()) return sized;
  return TripleData(std::move(graph));
}

TripleData::TripleData(WordnetGraph graph) : graph_(std::move(graph)), test_(TestBatch()) {}

Batch TripleData::MakeBatch(absl::Span<const int64_t> rows, int64_t /*epoch*/, int64_t step) const {
  Batch batch = TriplesOf(rows.size(), [&](size_t i) -> const Triple& {
    return graph_.train[static_cast<size_t>(rows[i])];
  });
  SampleNumbers random(kTrainSeed, static_cast<uint64_t>(step));
  for (int64_t i = 0; i < kOthers; ++i) {
    batch.ids.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(graph_.synsets)));
  }
  return batch;
}

// The triples of the test are in the order of the files, so it takes some at random.
Batch TripleData::TestBatch() const {
  const auto all = static_cast<int64_t>(graph_.test.size());
  Batch batch =
      TriplesOf(static_cast<size_t>(std::min(kTestSamples, all)), [&](size_t i) -> const Triple& {
        return graph_.test[SampleNumbers(kTestSeed, i)() % graph_.test.size()];
      });
  const std::vector<int64_t> synsets = FirstNumbers(graph_.synsets);
  batch.ids.insert(batch.ids.end(), synsets.begin(), synsets.end());
  return batch;
}

}  // namespace sluice
