// The trace span of one push or pull. The rpc layer begins it in one gRPC callback and ends it in
// another.

#ifndef SLUICE_SERVER_SHARD_CALL_SPAN_H_
#define SLUICE_SERVER_SHARD_CALL_SPAN_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/protocol/protocol_types.h"
#include "common/trace/trace.h"
#include "server/replica/parameter_store.h"

namespace sluice {

// Externally synchronized. Does nothing if nobody records a trace when it begins.
class CallSpan {
 public:
  // Begins the span in the row "<name> <worker>". `name` is a string literal.
  void Begin(const ParameterStore& store, const char* name, SessionId session, Step step) {
    trace_ = Recording(store.trace());
    if (trace_ == nullptr) return;
    name_ = name;
    row_ = absl::StrCat(name, " ", store.NameOf(session));
    step_ = step;
    begin_ = trace_->Now();
  }

  // Ends the span, if it has begun.
  void End() {
    if (trace_ != nullptr) trace_->Add(row_, name_, begin_, trace_->Now(), step_);
    trace_ = nullptr;
  }

  // The row, for spans inside this one.
  const std::string& row() const { return row_; }

 private:
  Trace* trace_ = nullptr;
  const char* name_ = "";
  std::string row_;
  Step step_;
  absl::Time begin_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_CALL_SPAN_H_
