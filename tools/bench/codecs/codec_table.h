// Prints the results of the codec benchmark as a table.

#ifndef SLUICE_TOOLS_BENCH_CODECS_CODEC_TABLE_H_
#define SLUICE_TOOLS_BENCH_CODECS_CODEC_TABLE_H_

#include <string>
#include <vector>

namespace sluice::bench {

// The measurements of one codec with one vector.
struct CodecResult {
  std::string name;
  double ratio = 1;             // bytes of the values / bytes when encoded
  double error = 0;             // L2 norm of the loss / of the values
  std::vector<double> encodes;  // GB/s of the values' bytes, pass by pass
  std::vector<double> decodes;
};

// Returns the bandwidth in Gbit/s below which values arrive sooner encoded than plain, or 0 if they
// never do. Sender and receiver have one thread each, and encode and decode while other chunks are
// on their way. So the slowest of encoder, link and decoder decides.
double PaysBelow(const CodecResult& result);

// Returns two lines of headings, and a line for each result: medians, least and most.
std::string CodecTable(const std::vector<CodecResult>& results);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CODECS_CODEC_TABLE_H_
