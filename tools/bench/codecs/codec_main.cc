// codec_main: measures ratio, error and speed of each encoding with real gradients and parameters,
// beside Blosc and lz4.
//
// tools/bench/codec starts it. Exit codes: 0 done; 1 training failed; 2 bad command line.

#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/malloc_tuning.h"
#include "tools/bench/codecs/codec_side.h"
#include "tools/bench/codecs/codec_table.h"
#include "tools/bench/codecs/model_vectors.h"
#include "tools/bench/harness/machine_info.h"
#include "tools/bench/harness/progress_flag.h"

namespace sluice::bench {
namespace {

constexpr char kPurpose[] =
    "Measures ratio, error and speed of every encoding, beside Blosc and lz4: with one thread, in "
    "chunks of 2^18 floats, on gradients and parameters of ResNet-18 and LeNet, which it first "
    "trains for some steps. tools/bench/README.md explains the columns.";

struct Flags {
  std::vector<std::string> only;
  std::vector<std::string> vectors;
  uint32_t passes = 9;
  double least_megabytes = 32;
  bool quiet = false;
};

std::vector<std::string> AllCodecs() {
  std::vector<std::string> names = {"none",
                                    "float32/nonzero/pdict",
                                    "float32/nonzero/zstd",
                                    "float32/planes/zstd",
                                    "float32/zstd",
                                    "float16",
                                    "float16/planes/zstd",
                                    "bfloat16",
                                    "bfloat16/planes/zstd",
                                    "bfloat16/nonzero/pdict",
                                    "int8",
                                    "int8:stochastic",
                                    "int8/zstd",
                                    "sign",
                                    "top-k:0.01",
                                    "top-k:0.01:float16",
                                    "random-k:0.01",
                                    "low-rank:4"};
  names.insert(names.end(), PeerCodecs().begin(), PeerCodecs().end());
  return names;
}

// LeNet's vectors are small, and its steps are quick.
const Training kTrainings[] = {{"resnet18", 6, 32}, {"lenet", 200, 64}};
constexpr char kGradient[] = "gradient";
const char* const kVectors[] = {kGradient, "parameters"};

std::string VectorName(const Training& training, const std::string& vector) {
  return absl::StrCat(training.model, "-", vector);
}

bool Wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::count(names.begin(), names.end(), name) > 0;
}

bool IsPeer(const std::string& name) {
  return std::count(PeerCodecs().begin(), PeerCodecs().end(), name) > 0;
}

double Norm(absl::Span<const float> values) {
  double sum = 0;
  for (float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// Returns the L2 norm of the loss in `decoded`, relative to that of `values`.
double ErrorOf(absl::Span<const float> values, absl::Span<const float> decoded) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = static_cast<double>(decoded[i]) - values[i];
    sum += difference * difference;
  }
  return sum == 0 ? 0 : std::sqrt(sum) / Norm(values);
}

// CPU time of this thread, which does all the work, so that other load on its core does not count.
double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Measures one codec with one vector.
class Racer {
 public:
  // A small vector is repeated until so many bytes have gone through.
  Racer(const std::string& name, std::unique_ptr<CodecSide> side, absl::Span<const float> values,
        double least_bytes)
      : side_(std::move(side)),
        values_(values),
        least_bytes_(least_bytes),
        decoded_(values.size()) {
    result_.name = name;
    side_->Keep();
    side_->Decode(absl::MakeSpan(decoded_));
    result_.error = ErrorOf(values, decoded_);
    result_.ratio = Bytes() / static_cast<double>(side_->Encode());
  }

  void Pass() {
    result_.encodes.push_back(SpeedOf([this] { side_->Encode(); }));
    result_.decodes.push_back(SpeedOf([this] { side_->Decode(absl::MakeSpan(decoded_)); }));
  }

  const CodecResult& result() const { return result_; }

 private:
  double Bytes() const { return static_cast<double>(values_.size() * sizeof(float)); }

  // Returns the GB/s of `body` on all values.
  template <typename Body>
  double SpeedOf(const Body& body) const {
    const int times = static_cast<int>(std::ceil(least_bytes_ / Bytes()));
    const double start = ThreadSeconds();
    for (int i = 0; i < times; ++i) body();
    return Bytes() * times / (ThreadSeconds() - start) / 1e9;
  }

  const std::unique_ptr<CodecSide> side_;
  const absl::Span<const float> values_;
  const double least_bytes_;
  std::vector<float> decoded_;
  CodecResult result_;
};

// Measures the passes of one codec after the other. The first pass of each warms up.
std::vector<CodecResult> Race(const Flags& flags, const std::string& vector,
                              absl::Span<const float> values,
                              const std::vector<TensorShape>& tensors) {
  std::vector<CodecResult> results;
  const std::vector<std::string> names = AllCodecs();
  ProgressLine progress("measuring with " + vector, names.size(), ProgressUnless(flags.quiet),
                        RealClock());
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    progress.Reach(i);
    if (!Wanted(flags.only, name)) continue;
    absl::StatusOr<std::unique_ptr<CodecSide>> side;
    if (IsPeer(name)) {
      side = MakePeerCodec(name, values);
    } else {
      side = MakeSluiceCodec(*ParseEncoding(name), values, tensors);
    }
    if (!side.ok()) {
      std::cout << name << " left out: " << side.status().message() << "\n";
      continue;
    }
    Racer racer(name, *std::move(side), values, flags.least_megabytes * 1e6);
    for (uint32_t pass = 0; pass < flags.passes; ++pass) racer.Pass();
    results.push_back(racer.result());
  }
  return results;
}

// Prints a table for each wanted vector of the model.
void MeasureVectors(const Flags& flags, const Training& training, const ModelVectors& trained) {
  for (const char* const vector : kVectors) {
    const std::string name = VectorName(training, vector);
    if (!Wanted(flags.vectors, name)) continue;
    const auto& values = vector == kGradient ? trained.gradient : trained.parameters;
    std::cout << absl::StrFormat("\n%s, %d floats, after %d steps with batches of %d\n", name,
                                 values.size(), training.steps, training.batch_size);
    std::cout << CodecTable(Race(flags, name, values, trained.tensors)) << std::flush;
  }
}

int Measure(const Flags& flags) {
  std::cout << absl::StrFormat("1 thread of %d cores; %d passes; load before %.2f\n",
                               std::thread::hardware_concurrency(), flags.passes, LoadAverage());
  for (const Training& training : kTrainings) {
    const bool wanted = std::any_of(
        std::begin(kVectors), std::end(kVectors),
        [&](const char* vector) { return Wanted(flags.vectors, VectorName(training, vector)); });
    if (!wanted) continue;
    const auto trained = TrainModel(training);
    if (!trained.ok()) {
      std::cerr << "codec: " << trained.status().message() << "\n";
      return 1;
    }
    MeasureVectors(flags, training, *trained);
  }
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app(kPurpose, "tools/bench/codec");
  Flags flags;
  const std::vector<std::string> names = AllCodecs();
  std::vector<std::string> vectors;
  for (const Training& training : kTrainings) {
    for (const char* vector : kVectors) vectors.push_back(VectorName(training, vector));
  }
  app.add_option("--only", flags.only, absl::StrJoin(names, ","))
      ->check(CLI::IsMember(names))
      ->delimiter(',');
  app.add_option("--vectors", flags.vectors, absl::StrJoin(vectors, ","))
      ->check(CLI::IsMember(vectors))
      ->delimiter(',');
  app.add_option("--passes", flags.passes,
                 "measured passes each way; one pass before them does not count")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--least-megabytes", flags.least_megabytes,
                 "a small vector is repeated until so much has gone through")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddQuietFlag(app, flags.quiet);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  KeepFreedMemory();  // as servers and workers do
  return Measure(flags);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
