#ifndef SLUICE_TESTS_FUZZ_SILENCE_H_
#define SLUICE_TESTS_FUZZ_SILENCE_H_

#include <glog/logging.h>
#include <google/protobuf/stubs/logging.h>

namespace sluice {

// No warnings of bad input, of which there will be thousands a second.
inline void SilenceWarnings() {
  FLAGS_minloglevel = google::GLOG_FATAL;
  google::protobuf::SetLogHandler(nullptr);
}

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_SILENCE_H_
