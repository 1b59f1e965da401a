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
                                    const StripeSpan<float>& to) {
  const auto view = ViewOf(name);
  if (!view.ok()) return view.status();
  const absl::Span<const float> from = (*view)->floats();
  if (from.size() < to.size()) {
    return absl::UnavailableError(
        absl::StrCat("the server's memory holds ", from.size(), " elements, expected ", to.size()));
  }
  const bool streams = to.size() >= kStreamedElements;
  FloatPiece rest = AsPiece(from.first(to.size()));
  to.ForEachPiece(to.begin(), to.end(), [&](absl::Span<float> part) {
    const FloatPiece piece = rest.first(part.size());
    streams ? StreamTo(piece, part) : CopyTo(piece, part);
    rest.remove_prefix(part.size());
  });
  EndStreams();
  if ((*view)->IsStill(generation)) return absl::OkStatus();
  return absl::AbortedError("the parameters were overwritten while they were read");
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
