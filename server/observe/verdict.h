// How a job is, in a word and in a sentence: what everything that shows a job shows first.

#ifndef SLUICE_SERVER_OBSERVE_VERDICT_H_
#define SLUICE_SERVER_OBSERVE_VERDICT_H_

#include "sluice/v1/inspector.pb.h"

namespace sluice {

// Judges `state`, of which everything but the verdict is filled in. Any thread may call it.
//
// The verdicts are judged in the order of their numbers, and the first that is true is given. A job
// is slow if its step has waited for 5 s and for as long as four usual steps; the first step of
// this process, for a minute. It is slow, too, if no step was made for a minute and for as long as
// 20 usual steps; before the first step, for 5 minutes; and if workers have stalled. A server is
// away when the step has waited for it for 5 s.
v1::Verdict VerdictOn(const v1::ServerState& state);

}  // namespace sluice

#endif  // SLUICE_SERVER_OBSERVE_VERDICT_H_
