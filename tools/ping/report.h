// What sluice_ping prints.

#ifndef SLUICE_TOOLS_PING_REPORT_H_
#define SLUICE_TOOLS_PING_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ping/measure.h"
#include "tools/ping/recommendation.h"

namespace sluice {

struct PingReport {
  std::string address;
  bool tls = false;
  double cipher_rate = 0;  // with TLS: bytes per second that a core of this machine encrypts
  PathReport path;
  std::vector<PricedEncoding> encodings;  // for `elements`
  uint64_t elements = 0;                  // of the model
  Recommendation recommendation;
};

// A few tables, and the recommendation as the last paragraph.
std::string ReportText(const PingReport& report);

// One object, in one line. Times are in seconds, rates in bytes per second.
std::string ReportJson(const PingReport& report);

}  // namespace sluice

#endif  // SLUICE_TOOLS_PING_REPORT_H_
