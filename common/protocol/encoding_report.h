// What a worker that chooses its encodings by itself tells the server, for people.

#ifndef SLUICE_COMMON_PROTOCOL_ENCODING_REPORT_H_
#define SLUICE_COMMON_PROTOCOL_ENCODING_REPORT_H_

#include <string>

namespace sluice {

// What was chosen for one direction, and by which numbers. Those that are unknown are 0.
struct ChosenEncoding {
  std::string encoding;              // as ParseEncoding() reads it; empty: nothing is chosen
  double link_bytes_per_second = 0;  // this worker's share of the link
  // Of the encoding on this worker's values: bytes of float32 for each byte sent, and bytes of
  // float32 per second of one thread.
  double ratio = 0;
  double encode_bytes_per_second = 0;
  double decode_bytes_per_second = 0;
};

struct EncodingReport {
  ChosenEncoding push;
  ChosenEncoding pull;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_ENCODING_REPORT_H_
