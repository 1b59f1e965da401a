#include "worker/data/zipf_law.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

class Uniform {
 public:
  double operator()() { return distribution_(engine_); }

 private:
  std::mt19937_64 engine_{1};
  std::uniform_real_distribution<double> distribution_{0, 1};
};

// The share of each number, against its probability, within six standard deviations.
void ExpectFrequencies(uint64_t count, double exponent) {
  constexpr int kDraws = 200'000;
  const ZipfLaw law(count, exponent);
  Uniform uniform;
  std::vector<int> drawn(count);
  for (int i = 0; i < kDraws; ++i) ++drawn.at(law.Draw(uniform));
  double sum = 0;
  for (uint64_t k = 1; k <= count; ++k) sum += std::pow(k, -exponent);
  for (uint64_t k = 1; k <= count; ++k) {
    const double expected = kDraws * std::pow(k, -exponent) / sum;
    EXPECT_NEAR(drawn[k - 1], expected, 6 * std::sqrt(expected)) << k << " of " << count;
  }
}

TEST(ZipfLawTest, DrawsEachNumberAsOftenAsItsProbabilitySays) {
  ExpectFrequencies(10, 1.1);
  ExpectFrequencies(100, 0.7);
  ExpectFrequencies(30, 2.5);
}

TEST(ZipfLawTest, ASingleNumberIsAlwaysDrawn) {
  const ZipfLaw law(1, 1.1);
  Uniform uniform;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(law.Draw(uniform), 0u);
}

TEST(ZipfLawTest, StaysBelowItsCountAtBothEndsOfTheUniformNumbers) {
  const ZipfLaw law(uint64_t{1} << 33, 1.1);
  EXPECT_EQ(law.Draw([] { return 1.0 / 3 * 0; }), 0u);
  EXPECT_EQ(law.Draw([] { return std::nextafter(1.0, 0.0); }), (uint64_t{1} << 33) - 1);
}

}  // namespace
}  // namespace sluice
