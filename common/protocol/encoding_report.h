// The report of a worker with `auto` encodings to the server. ListWorkers shows it to people.

#ifndef SLUICE_COMMON_PROTOCOL_ENCODING_REPORT_H_
#define SLUICE_COMMON_PROTOCOL_ENCODING_REPORT_H_

#include <string>

namespace sluice {

// The choice for one direction, and the numbers behind it. An unknown number is 0.
struct ChosenEncoding {
  std::string encoding;              // syntax: ParseEncoding(); empty: nothing is chosen
  double link_bytes_per_second = 0;  // this worker's share of the link
  // Measured on this worker's values: bytes of float32 for each byte sent, and bytes of float32
  // that one thread encodes and decodes in a second.
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
