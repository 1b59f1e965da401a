// What a race of codecs came to, for people.

#ifndef SLUICE_TOOLS_BENCH_CODECS_CODEC_TABLE_H_
#define SLUICE_TOOLS_BENCH_CODECS_CODEC_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::bench {

// What one codec did with one vector.
struct CodecResult {
  std::string name;
  double at_least = 0;          // the goal for its GB/s each way; 0: none
  double times_blosc = 0;       // the goal for its GB/s of encoding beside Blosc's; 0: none
  double ratio = 1;             // bytes of the values / bytes of what they became
  double error = 0;             // L2 norm of what was lost / of the values
  std::vector<double> encodes;  // GB/s of the values' bytes, pass by pass
  std::vector<double> decodes;
};

// The bandwidth in Gbit/s below which values arrive sooner encoded than plain, by a sender and a
// receiver with one thread each, which encode and decode while other chunks are on their way: then
// the slowest of the three decides. 0 if they never do.
double PaysBelow(const CodecResult& result);

// Blosc's result to hold `result` against: of those whose ratio is no better, the one that encodes
// fastest. Null if there is none.
const CodecResult* BloscBeside(const CodecResult& result, const std::vector<CodecResult>& results);

// Two lines of headings, and one for each result: medians, least and most, and goals.
std::string CodecTable(const std::vector<CodecResult>& results);

// Results whose goal was missed.
uint32_t CountMissed(const std::vector<CodecResult>& results);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CODECS_CODEC_TABLE_H_
