#include "worker/torch/gradient_watch.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/protocol/protocol_types.h"

namespace sluice {
namespace {

std::logic_error Changed(const std::string& name) {
  return std::logic_error(absl::StrCat(
      "the gradient of \"", name, "\" has changed since it left for the server during backward; ",
      "with Overlap::kBackward there is one backward() for a step(), and nothing changes gradients "
      "in between: make the optimizer with Overlap::kOff to add gradients up or to clip them (or "
      "let the server clip: --clip-norm), and call zero_grad() to drop this one"));
}

}  // namespace

class GradientWatch::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(GradientWatch& watch, size_t index) : watch_(watch), index_(index) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    watch_.NoteComplete(index_);
    return outputs;
  }

 private:
  GradientWatch& watch_;
  const size_t index_;
};

GradientWatch::GradientWatch(const FlatModel& model, Leave leave) : leave_(std::move(leave)) {
  for (GradientView& view : model.gradient_views()) {
    Watched watched;
    watched.accumulator = torch::autograd::impl::grad_accumulator(view.parameter);
    watched.hook =
        watched.accumulator->add_post_hook(std::make_unique<Hook>(*this, watched_.size()));
    watched.view = std::move(view);
    watched_.push_back(std::move(watched));
  }
}

GradientWatch::~GradientWatch() {
  for (Watched& watched : watched_) watched.accumulator->del_post_hook(watched.hook);
}

void GradientWatch::Reset() {
  for (Watched& watched : watched_) watched.complete = watched.left = false;
  ready_.clear();
  any_left_ = false;
  changed_.clear();
}

void GradientWatch::ThrowChanged(uint64_t offset) {
  for (const Watched& watched : watched_) {
    if (watched.view.offset <= offset || changed_.empty()) changed_ = watched.view.name;
  }
  throw Changed(changed_);
}

void GradientWatch::Check() const {
  if (!changed_.empty()) throw Changed(changed_);
}

void GradientWatch::NoteComplete(size_t index) {
  Watched& watched = watched_[index];
  // Autograd has added to a gradient that has left.
  if (watched.left) ThrowChanged(watched.view.offset);
  // If the gradient is not in the view, GatherGradients() copies it in step().
  if (watched.complete || !HasGradientIn(watched.view.gradient, watched.view.parameter)) return;
  watched.complete = true;
  NoteReady(watched.view.offset, watched.view.offset + watched.view.length);
}

// Backward begins with the last layers, so a run grows towards lower offsets, and its upper end
// leaves.
void GradientWatch::NoteReady(uint64_t begin, uint64_t end) {
  const auto after = ready_.find(end);
  if (after != ready_.end()) {
    end = after->second;
    ready_.erase(after);
  }
  auto run = ready_.upper_bound(begin);
  if (run != ready_.begin() && std::prev(run)->second == begin) {
    begin = std::prev(run)->first;
    ready_.erase(std::prev(run));
  }
  for (; end - begin >= kChunkElements; end -= kChunkElements) LetLeave(end - kChunkElements, end);
  if (begin < end) ready_.emplace(begin, end);
}

void GradientWatch::LetLeave(uint64_t begin, uint64_t end) {
  any_left_ = true;
  const auto is_before = [begin](const Watched& watched) {
    return watched.view.offset + watched.view.length <= begin;
  };
  auto watched = std::partition_point(watched_.begin(), watched_.end(), is_before);
  for (; watched != watched_.end() && watched->view.offset < end; ++watched) watched->left = true;
  leave_(begin, end - begin);
}

}  // namespace sluice
