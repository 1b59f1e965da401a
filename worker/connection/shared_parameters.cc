#include "worker/connection/shared_parameters.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/tensor/vector_copy.h"

namespace sluice {
namespace {

// The latest snapshot, the next one, and one that others still read.
constexpr size_t kMostMapped = 4;

}  // namespace

absl::Status SharedParameters::Read(const SharedMemoryName& name, uint64_t generation,
                                    absl::Span<float> to) {
  const auto view = ViewOf(name);
  if (!view.ok()) return view.status();
  const absl::Span<const float> from = (*view)->floats();
  if (from.size() < to.size()) {
    return absl::UnavailableError(
        absl::StrCat("the server's memory holds ", from.size(), " elements, expected ", to.size()));
  }
  const FloatPiece piece = AsPiece(from.subspan(0, to.size()));
  to.size() >= kStreamedElements ? StreamTo(piece, to) : CopyTo(piece, to);
  EndStreams();
  if ((*view)->IsStill(generation)) return absl::OkStatus();
  return absl::UnavailableError("the parameters were overwritten while they were read");
}

absl::StatusOr<std::shared_ptr<const SharedMemoryView>> SharedParameters::ViewOf(
    const SharedMemoryName& name) {
  for (const Mapped& mapped : mapped_) {
    if (mapped.cookie == name.cookie) return mapped.view;
  }
  auto view = SharedMemoryView::Open(name);
  if (!view.ok()) return view;
  if (mapped_.size() == kMostMapped) mapped_.erase(mapped_.begin());
  mapped_.push_back({name.cookie, *view});
  return view;
}

}  // namespace sluice
