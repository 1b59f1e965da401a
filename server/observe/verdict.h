// How a job is, in a word and in a sentence: what everything that shows a job shows first.

#ifndef SLUICE_SERVER_OBSERVE_VERDICT_H_
#define SLUICE_SERVER_OBSERVE_VERDICT_H_

#include "sluice/v1/inspector.pb.h"

namespace sluice {

// Judges `state`, of which everything but the verdict is filled in. Any thread may call it.
//
// A step is slow when it has waited for 5 s, and four times as long as a step usually takes; the
// first one after a minute. So is a job that makes no step for a minute, and twenty times as long;
// before the first one, for 5 minutes.
v1::Verdict VerdictOn(const v1::ServerState& state);

}  // namespace sluice

#endif  // SLUICE_SERVER_OBSERVE_VERDICT_H_
