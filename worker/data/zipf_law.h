// Numbers drawn by Zipf's law: what words, items and users in real data follow, nearly.

#ifndef SLUICE_WORKER_DATA_ZIPF_LAW_H_
#define SLUICE_WORKER_DATA_ZIPF_LAW_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace sluice {

// Number k, of 0 to count − 1, has a probability in proportion to (k + 1)^(−exponent). Immutable.
// It takes no memory for the numbers, and the time of a draw does not depend on their count:
// rejection-inversion (Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from
// monotone discrete distributions").
class ZipfLaw {
 public:
  // `count` is at least 1. `exponent` is above 0 and not 1.
  ZipfLaw(uint64_t count, double exponent);

  // `uniform` returns numbers in [0, 1), and is called once or more.
  uint64_t Draw(absl::FunctionRef<double()> uniform) const;

 private:
  double Integral(double x) const;  // of x^(−exponent), from 1
  double InverseOfIntegral(double area) const;

  const double count_;
  const double exponent_;
  const double lowest_;   // the area where the first number begins
  const double highest_;  // where the last one ends
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_ZIPF_LAW_H_
