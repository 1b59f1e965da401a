// Prints the results of the codec benchmark as a table.

#ifndef SLUICE_TOOLS_BENCH_CODECS_CODEC_TABLE_H_
#define SLUICE_TOOLS_BENCH_CODECS_CODEC_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::bench {

// The measurements of one codec with one vector.
struct CodecResult {
  std::string name;
  double at_least = 0;          // the goal for its GB/s each way; 0: none
  double times_blosc = 0;       // the goal for its GB/s of encoding beside Blosc's; 0: none
  double ratio = 1;             // bytes of the values / bytes when encoded
  double error = 0;             // L2 norm of the loss / of the values
  std::vector<double> encodes;  // GB/s of the values' bytes, pass by pass
  std::vector<double> decodes;
};

// Returns the bandwidth in Gbit/s below which values arrive sooner encoded than plain, or 0 if they
// never do. Sender and receiver have one thread each, and encode and decode while other chunks are
// on their way. So the slowest of encoder, link and decoder decides.
double PaysBelow(const CodecResult& result);

// Returns the result of Blosc to compare `result` with: the fastest encoder among those whose ratio
// is not better. Returns null if there is none.
const CodecResult* BloscBeside(const CodecResult& result, const std::vector<CodecResult>& results);

// Returns two lines of headings, and a line for each result: medians, least and most, goals.
std::string CodecTable(const std::vector<CodecResult>& results);

// Returns the number of results that miss their goal.
uint32_t CountMissed(const std::vector<CodecResult>& results);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CODECS_CODEC_TABLE_H_
