#include "server/durable/checkpoint/stripe_store.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/tensor/stripes.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_copy.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "server/durable/format/unfinished_file.h"

namespace sluice {
namespace {

// Memory is allocated for what a source names, before its files are read.
constexpr size_t kMostSlots = 8;      // an optimizer has at most 3
constexpr size_t kMostStripes = 256;  // as many as a job may have servers

absl::Status CheckSource(const CheckpointSource& source) {
  if (source.slots.size() <= kMostSlots && source.stripes.size() <= kMostStripes) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "the checkpoint of step ", source.step.value(), " names ", source.slots.size(),
      " slots of the optimizer and ", source.stripes.size(), " stripes, expected at most ",
      kMostSlots, " and ", kMostStripes, "; it is damaged, or of a newer server"));
}

StripeCheckpoint MakeRoom(const CheckpointSource& source, uint64_t size) {
  StripeCheckpoint stripe;
  for (const std::string& slot : source.slots) stripe.slots.push_back({slot, FloatBuffer(size)});
  stripe.optimizer_steps = source.optimizer_steps;
  return stripe;
}

// A missing file is damage to the checkpoint; other errors may be temporary.
absl::Status InFile(const std::string& path, const absl::Status& error) {
  if (absl::IsNotFound(error)) {
    return absl::DataLossError(absl::StrCat(
        path,
        " is missing: it is a part of a checkpoint; copy it there from the server that "
        "saved it"));
  }
  return absl::Status(error.code(), absl::StrCat(path, ": ", error.message()));
}

bool Contains(absl::Span<const CheckpointName> names, const CheckpointName& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const CheckpointName& one) { return one.FileName() == name.FileName(); });
}

}  // namespace

absl::StatusOr<uint64_t> StripeStore::Save(const std::string& job_id,
                                           const CheckpointName& checkpoint, const Layout& whole,
                                           const StripeView& stripe) {
  const StripeName name = {job_id, checkpoint.incarnation, checkpoint.step, place_.stripe,
                           place_.stripes};
  if (!sync_.error().ok()) return sync_.error();
  std::vector<RowFile> row_files;
  if (stripe.rows != nullptr) {
    auto rows = rows_.Save(
        {job_id, checkpoint.incarnation, checkpoint.step, whole, stripe.row_slots}, *stripe.rows);
    if (!rows.ok()) return rows.status();
    row_files = *std::move(rows);
  }
  uint64_t checksum = 0;
  absl::Status saved =
      WriteThenName(files_, PathOf(name.FileName()), [&](WritableFile& file) -> absl::Status {
        const auto written = WriteStripe(name, whole, stripe, file, row_files);
        checksum = written.value_or(0);
        return written.status();
      });
  if (saved.ok()) saved = sync_.Sync();
  if (!saved.ok()) return saved;
  return checksum;
}

absl::Status StripeStore::ReadSource(const CheckpointSource& source, const Layout& whole,
                                     uint32_t stripe, const StripePieces& pieces,
                                     StripeRows* rows) const {
  const bool one_file = source.stripes.empty();
  StripeName name = {source.job_id, source.incarnation, source.step, stripe,
                     static_cast<uint32_t>(source.stripes.size())};
  const std::string path = PathOf(
      one_file ? CheckpointName{source.incarnation, source.step}.FileName() : name.FileName());
  const auto file = files_.Open(path);
  if (!file.ok()) return InFile(path, file.status());
  absl::Status read;
  if (one_file) {
    ShardCheckpoint state;
    read = ReadCheckpointValues(**file, source, whole, pieces, &state);
    *rows = {std::move(state.row_files), state.row_steps};
  } else {
    const ExpectedStripe expected = {std::move(name), whole, source.slots, source.optimizer_steps,
                                     source.stripes[stripe]};
    read = ReadStripe(**file, expected, pieces, rows);
  }
  return read.ok() ? read : InFile(path, read);
}

// Reads the files that have a part of the stripe, or rows of its buckets.
absl::Status StripeStore::ReadSources(const CheckpointSource& source, const Layout& whole,
                                      const SourcePieces& take, StripeCheckpoint* loaded) const {
  const uint32_t sources = std::max<size_t>(source.stripes.size(), 1);
  const uint32_t common = std::gcd(sources, place_.stripes);
  RowSource rows = {directory_, source.job_id, source.incarnation, source.step};
  for (uint32_t stripe = 0; stripe < sources; ++stripe) {
    // Else no unit is in both: units u of them have u mod common = stripe mod common. The same
    // holds for buckets of rows.
    if (stripe % common != place_.stripe % common) continue;
    StripeRows found;
    const absl::Status read = ReadSource(
        source, whole, stripe,
        [&](size_t vector, uint64_t offset, absl::Span<const float> values) {
          take(stripe, vector, offset, values);
        },
        &found);
    if (!read.ok()) return read;
    rows.servers.push_back({{stripe, sources}, std::move(found.files)});
    loaded->row_steps = found.steps;
  }
  return OpenRows(std::move(rows), whole, loaded);
}

absl::StatusOr<StripeCheckpoint> StripeStore::Load(
    const CheckpointSource& source, const Layout& whole,
    const std::function<void(uint64_t bytes)>& on_read) const {
  const absl::Status sound = CheckSource(source);
  if (!sound.ok()) return sound;
  const Stripes to(whole.size(), place_.stripes);
  StripeCheckpoint loaded = MakeRoom(source, to.SizeOf(place_.stripe));
  const auto parameters = std::make_shared<Snapshot>();
  parameters->step = source.step;
  parameters->values = FloatBuffer(to.SizeOf(place_.stripe));
  const Stripes from(whole.size(), std::max<size_t>(source.stripes.size(), 1));
  const auto take = [&](uint32_t stripe, size_t vector, uint64_t offset,
                        absl::Span<const float> values) {
    if (on_read) on_read(values.size() * sizeof(float));
    const absl::Span<float> target =
        vector == 0 ? parameters->values.span() : loaded.slots[vector - 1].values.span();
    ForEachUnit(from.unit(), offset, offset + values.size(), [&](uint64_t begin, uint64_t end) {
      const uint64_t place = from.InVector(stripe, begin);
      if (to.StripeOf(place) != place_.stripe) return;
      CopyTo(AsPiece(values.subspan(begin - offset, end - begin)),
             target.subspan(to.Before(place_.stripe, place), end - begin));
    });
  };
  const absl::Status read = ReadSources(source, whole, take, &loaded);
  if (!read.ok()) return read;
  loaded.parameters = parameters;
  return loaded;
}

absl::StatusOr<StripeCheckpoint> StripeStore::LoadRows(const CheckpointSource& source,
                                                       const Layout& whole) const {
  const absl::Status sound = CheckSource(source);
  if (!sound.ok()) return sound;
  StripeCheckpoint loaded;
  const auto skip = [](uint32_t, size_t, uint64_t, absl::Span<const float>) {};
  const absl::Status read = ReadSources(source, whole, skip, &loaded);
  if (!read.ok()) return read;
  return loaded;
}

absl::Status StripeStore::OpenRows(RowSource source, const Layout& whole,
                                   StripeCheckpoint* loaded) const {
  if (whole.tables().empty()) return absl::OkStatus();
  auto rows = RowChain::Open(files_, std::move(source), whole, /*whole=*/true);
  if (!rows.ok()) return rows.status();
  loaded->row_slots = (*rows)->slots();
  loaded->rows = *std::move(rows);
  return absl::OkStatus();
}

void StripeStore::RemoveOthers(absl::Span<const CheckpointName> keep) const {
  const auto names = files_.List(directory_);
  if (!names.ok() || keep.empty()) return;
  const CheckpointName newest = *std::max_element(keep.begin(), keep.end());
  std::vector<IncarnationAndStep> numbers;
  for (const CheckpointName& name : keep) numbers.emplace_back(name.incarnation, name.step);
  rows_.RemoveOthers(numbers);
  for (const std::string& name : *names) {
    const absl::string_view finished = absl::StripSuffix(name, kUnfinished);
    const auto stripe = StripeName::Parse(finished);
    if (!stripe.has_value() || stripe->stripe % place_.stripes != place_.stripe) continue;
    const CheckpointName of = {stripe->incarnation, stripe->step};
    const bool counts = finished == name && (!(of < newest) || Contains(keep, of));
    const absl::Status removed = counts ? absl::OkStatus() : files_.Remove(PathOf(name));
    LOG_IF(WARNING, !removed.ok()) << removed.message();
  }
}

}  // namespace sluice
