// Files that are taken for segments of a journal: records are read up to the first that is damaged,
// each as a step that is written, and read again, as the same; a replay makes steps without a gap.
// Checksums keep what is changed at random out, so the target makes records, too, whose checksums
// fit.
#include "server/durable/journal/journal.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/format/saved_state.h"
#include "server/durable/journal/journal_format.h"
#include "server/durable/journal/journal_replay.h"
#include "server/durable/journal/row_sums_format.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr char kDirectory[] = "d";

// Of the tables of the model.
const std::vector<uint32_t> kWidths = {2, 1};

// A record of the state and the rows that the input has, and of a sum of that many elements if it
// says so.
std::string TakeRecord(Input& input, uint64_t elements) {
  const bool has_sum = input.Byte() % 2 == 0;
  const Values sum(has_sum ? elements : 0, 0.5f);
  const std::string state(input.Word());
  const std::string rows(input.Byte() % 2 == 0 ? input.Word() : "");
  const JournalFrame frame = FrameOf(state, sum, rows);
  return absl::StrCat(frame.head, BytesOf(sum), rows, frame.tail);
}

void CheckComesBack(const JournaledStep& step, uint64_t elements) {
  const std::string state = EncodeSavedStep(step.record, CountsOf(step.rows));
  const std::string rows = EncodeRowSums(step.rows);
  const JournalFrame frame = FrameOf(state, step.sum.span(), rows);
  FaultyFiles files;
  CHECK((*files.Create("d/again"))
            ->Append(absl::StrCat(frame.head, BytesOf(step.sum.span()), rows, frame.tail))
            .ok());
  const auto file = files.Open("d/again");
  JournalReader reader(**file, elements, kWidths);
  const auto again = reader.Next();
  CHECK(again.ok()) << again.status();
  CHECK(again->has_value());
  CHECK(EncodeSavedStep((*again)->record, CountsOf((*again)->rows)) == state);
  CHECK(EncodeRowSums((*again)->rows) == rows);
  CHECK(BytesOf((*again)->sum.span()) == BytesOf(step.sum.span()));
  const auto end = reader.Next();
  CHECK(end.ok() && !end->has_value());
}

void ReadAll(const ReadableFile& file, uint64_t elements) {
  JournalReader reader(file, elements, kWidths);
  for (;;) {
    const auto next = reader.Next();
    if (!next.ok()) {
      CheckRefusal(next.status(),
                   {absl::StatusCode::kDataLoss, absl::StatusCode::kFailedPrecondition});
      CHECK(absl::StartsWith(next.status().message(), "the record at byte "));
      return;
    }
    if (!next->has_value()) return;
    CHECK(((*next)->record.gradients > 0) == ((*next)->sum.size() > 0));
    if ((*next)->complete) CheckComesBack(**next, elements);
  }
}

void ReplayAll(FaultyFiles& files, uint64_t elements, Step from) {
  ShardCheckpoint checkpoint;
  checkpoint.step = from;
  checkpoint.layout = std::make_shared<const Layout>(ParametersOnly(elements));
  Step reached = from;
  const auto check = [&](const JournaledStep& step) {
    CHECK(step.record.step == reached.Next());
    CHECK(step.record.terms.learning_rates.size() == 1);
    CHECK(step.complete);
    reached = step.record.step;
    return absl::OkStatus();
  };
  const Step last(std::numeric_limits<uint64_t>::max());
  const auto replayed =
      ReplayJournal(files, kDirectory, StartAfter(checkpoint, {}, 1), checkpoint, last, check);
  if (!replayed.ok()) {
    return CheckRefusal(replayed.status(),
                        {absl::StatusCode::kDataLoss, absl::StatusCode::kFailedPrecondition});
  }
  CHECK(*replayed == reached);
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const bool made = input.Byte() % 4 != 0;
  const uint64_t elements = 1 + input.Byte() % 8;
  const Step from(input.Byte());
  FaultyFiles files;
  for (uint64_t after : {0, 2}) {  // two segments
    const SegmentName name = {Incarnation(1), Step(after)};
    const std::string path = absl::StrCat(kDirectory, "/", name.FileName());
    auto file = files.Create(path);
    if (made) {
      for (int record = 0; record < 2; ++record) {
        CHECK((*file)->Append(TakeRecord(input, elements)).ok());
      }
    } else {
      CHECK((*file)->Append(input.Take(4 * size_t{input.Byte()})).ok());
    }
    ReadAll(**files.Open(path), elements);
  }
  ReplayAll(files, elements, from);
}

}  // namespace sluice
