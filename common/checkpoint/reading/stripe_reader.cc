#include "common/checkpoint/reading/stripe_reader.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/checkpoint_file.h"
#include "common/tensor/stripes.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_copy.h"

namespace sluice {
namespace {

// Memory is allocated for what a source names, before its files are read.
constexpr size_t kMostSlots = 8;      // an optimizer has at most 3
constexpr size_t kMostStripes = 256;  // as many as a job may have servers

absl::Status CheckNumbers(const CheckpointSource& source) {
  if (source.slots.size() <= kMostSlots && source.stripes.size() <= kMostStripes) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "the checkpoint of step ", source.step.value(), " names ", source.slots.size(),
      " slots of the optimizer and ", source.stripes.size(), " stripes, expected at most ",
      kMostSlots, " and ", kMostStripes, "; it is damaged, or of a newer server"));
}

uint32_t SourcesOf(const CheckpointSource& source) {
  return static_cast<uint32_t>(std::max<size_t>(source.stripes.size(), 1));
}

}  // namespace

// No unit is in both of two stripes, if they differ modulo `common`: units u of them have u mod
// common = stripe mod common. The same holds for buckets of rows.
std::vector<uint32_t> StripeReader::StripesNeeded(const CheckpointSource& source) const {
  const uint32_t sources = SourcesOf(source);
  const uint32_t common = std::gcd(sources, stripe_.stripes);
  std::vector<uint32_t> needed;
  for (uint32_t stripe = 0; stripe < sources; ++stripe) {
    if (stripe % common == stripe_.stripe % common) needed.push_back(stripe);
  }
  return needed;
}

absl::StatusOr<PartFile> StripeReader::OpenSource(const CheckpointSource& source,
                                                  uint32_t stripe) const {
  const bool one_file = source.stripes.empty();
  if (one_file && !place_.file.empty()) {
    auto file = files_.Open(place_.file);
    if (!file.ok()) return file.status();
    return PartFile{place_.file, *std::move(file)};
  }
  const StripeName name = {source.job_id, source.incarnation, source.step, stripe,
                           SourcesOf(source)};
  if (one_file) {
    return OpenPart(files_, place_.directories,
                    CheckpointName{source.incarnation, source.step}.FileName(),
                    "it is the checkpoint of a server");
  }
  return OpenPart(files_, place_.directories, name.FileName(),
                  absl::StrCat("it is the part of server ", stripe, " of ", SourcesOf(source)));
}

absl::Status StripeReader::Check(const CheckpointSource& source, const Layout& whole) const {
  const absl::Status sound = CheckNumbers(source);
  if (!sound.ok()) return sound;
  const Stripes stripes(whole.size(), SourcesOf(source));
  for (const uint32_t stripe : StripesNeeded(source)) {
    const auto file = OpenSource(source, stripe);
    if (!file.ok()) return file.status();
    const uint64_t bytes = (1 + source.slots.size()) * stripes.SizeOf(stripe) * sizeof(float);
    if (file->file->size() >= bytes) continue;
    // It cannot be the right one. Reading it tells why, and needs no memory for the values.
    StripeRows rows;
    const auto drop = [](size_t, uint64_t, absl::Span<const float>) {};
    const absl::Status read = ReadSource(source, whole, stripe, drop, &rows);
    if (!read.ok()) return read;
  }
  return absl::OkStatus();
}

absl::Status StripeReader::ReadSource(const CheckpointSource& source, const Layout& whole,
                                      uint32_t stripe, const StripePieces& pieces,
                                      StripeRows* rows) const {
  const auto part = OpenSource(source, stripe);
  if (!part.ok()) return part.status();
  absl::Status read;
  if (source.stripes.empty()) {
    CheckpointContents contents;
    read = ReadCheckpointValues(*part->file, source, whole, pieces, &contents);
    *rows = {std::move(contents.row_files), contents.row_steps};
  } else {
    const StripeName name = {source.job_id, source.incarnation, source.step, stripe,
                             SourcesOf(source)};
    read = ReadStripe(*part->file,
                      {name, whole, source.slots, source.optimizer_steps, source.stripes[stripe]},
                      pieces, rows);
  }
  return read.ok() ? read : InFile(part->path, read);
}

absl::StatusOr<SavedRowFiles> StripeReader::ReadSources(const CheckpointSource& source,
                                                        const Layout& whole,
                                                        const SourcePieces& take) const {
  SavedRowFiles rows;
  for (const uint32_t stripe : StripesNeeded(source)) {
    StripeRows found;
    const absl::Status read = ReadSource(
        source, whole, stripe,
        [&](size_t vector, uint64_t offset, absl::Span<const float> values) {
          take(stripe, vector, offset, values);
        },
        &found);
    if (!read.ok()) return read;
    rows.servers.push_back({{stripe, SourcesOf(source)}, std::move(found.files)});
    rows.steps = found.steps;
  }
  return rows;
}

absl::StatusOr<SavedRowFiles> StripeReader::Read(
    const CheckpointSource& source, const Layout& whole, absl::Span<const absl::Span<float>> to,
    const std::function<void(uint64_t bytes)>& on_read) const {
  const absl::Status sound = CheckNumbers(source);
  if (!sound.ok()) return sound;
  const Stripes target(whole.size(), stripe_.stripes);
  const Stripes from(whole.size(), SourcesOf(source));
  return ReadSources(
      source, whole,
      [&](uint32_t stripe, size_t vector, uint64_t offset, absl::Span<const float> values) {
        if (on_read) on_read(values.size() * sizeof(float));
        if (vector >= to.size()) return;
        ForEachUnit(from.unit(), offset, offset + values.size(), [&](uint64_t begin, uint64_t end) {
          const uint64_t place = from.InVector(stripe, begin);
          if (target.StripeOf(place) != stripe_.stripe) return;
          CopyTo(AsPiece(values.subspan(begin - offset, end - begin)),
                 to[vector].subspan(target.Before(stripe_.stripe, place), end - begin));
        });
      });
}

absl::StatusOr<std::unique_ptr<RowChain>> StripeReader::OpenRows(const CheckpointSource& source,
                                                                 const Layout& whole,
                                                                 std::vector<RowFiles> rows) const {
  if (whole.tables().empty()) return std::unique_ptr<RowChain>();
  return RowChain::Open(
      files_, {place_.directories, source.job_id, source.incarnation, source.step, std::move(rows)},
      whole, /*whole=*/true);
}

}  // namespace sluice
