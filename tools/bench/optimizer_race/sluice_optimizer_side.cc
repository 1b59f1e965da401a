#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/thread_pool.h"
#include "common/protocol/consistency.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"
#include "server/aggregation/staged_vector.h"
#include "server/aggregation/step_director.h"
#include "server/aggregation/stripe_executor.h"
#include "tools/bench/optimizer_race/optimizer_side.h"

namespace sluice::bench {
namespace {

Layout LayoutOf(const std::vector<uint64_t>& tensors) {
  std::vector<LayoutRange> ranges;
  for (const uint64_t elements : tensors) {
    LayoutRange range;
    range.name = absl::StrCat("tensor", ranges.size());
    range.shape = {static_cast<uint32_t>(elements)};
    range.offset = ranges.empty() ? 0 : ranges.back().end();
    range.length = elements;
    ranges.push_back(std::move(range));
  }
  return Layout::Create(std::move(ranges)).value();
}

// A gradient that has arrived in chunks, which refer to `gradient`.
StagedVector Staged(absl::Span<const float> gradient, const Layout& layout) {
  StagedVector staged(std::make_shared<const Layout>(layout));
  for (uint64_t begin = 0; begin < gradient.size(); begin += kChunkElements) {
    TensorChunk chunk;
    chunk.offset = begin;
    chunk.pieces = {AsPiece(gradient.subspan(begin, kChunkElements))};
    staged.Add(std::move(chunk)).IgnoreError();  // it is ours, and finite
  }
  staged.Seal();
  return staged;
}

class SluiceSide final : public OptimizerSide {
 public:
  SluiceSide(const OptimizerOptions& options, const Layout& layout,
             absl::Span<const float> gradient, uint32_t threads)
      : pool_(threads),
        director_(layout, {options}, Stripes(layout.size(), 1)),
        stripe_(layout, {options}, Stripes(layout.size(), 1), 0, pool_),
        gradient_(Staged(gradient, layout)),
        terms_({Consistency(), {LearningRateOf(options)}, nullptr, absl::nullopt}),
        current_(FloatBuffer::Zeroed(layout.size())),
        next_(layout.size()) {}

  void Step() override {
    stripe_.Keep({&gradient_, director_.Count(PushHeader(), 0, terms_)});
    const StepVectors vectors = {current_.span(), next_.span(), nullptr};
    director_.Make(terms_, [&](const StepOrder& order) {
      return std::vector<StripeReport>{stripe_.Carry(order, vectors)};
    });
    stripe_.Clear();
    director_.Clear();
    std::swap(current_, next_);
  }

  std::vector<float> Parameters() const override {
    return {current_.span().begin(), current_.span().end()};
  }

 private:
  ThreadPool pool_;
  StepDirector director_;
  StripeExecutor stripe_;
  const StagedVector gradient_;
  const StepTerms terms_;
  FloatBuffer current_;
  FloatBuffer next_;
};

}  // namespace

std::unique_ptr<OptimizerSide> MakeSluiceSide(const OptimizerOptions& options,
                                              const std::vector<uint64_t>& tensors,
                                              absl::Span<const float> gradient, uint32_t threads) {
  return std::make_unique<SluiceSide>(options, LayoutOf(tensors), gradient, threads);
}

}  // namespace sluice::bench
