// One option of an optimizer, as flags, messages and checks see it: a name, the values that are
// valid, a line of help, and a number. The table of optimizers (optimizer_options.h) is made of
// these.

#ifndef SLUICE_COMMON_PROTOCOL_OPTIMIZER_OPTION_H_
#define SLUICE_COMMON_PROTOCOL_OPTIMIZER_OPTION_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace sluice {

// The values that an option may have. All of them are finite.
enum class OptionDomain {
  kFinite,
  kNotNegative,
  kPositive,      // above 0, also when it is rounded to float32
  kBelowOne,      // 0 ≤ x < 1
  kUpToOne,       // 0 ≤ x ≤ 1
  kRate,          // 0 < x ≤ 1
  kLearningRate,  // 0 ≤ x ≤ kLargestLearningRate
  kCount,         // an integer, at least 1
  kSwitch,        // on or off
};

// A larger learning rate is a mistake: it makes every parameter infinite within a few steps.
inline constexpr double kLargestLearningRate = 1e6;

// Options with one name mean the same in all optimizers.
struct OptionInfo {
  const char* name;  // in messages and errors; a flag has dashes where this has underscores
  OptionDomain domain;
  const char* help;  // of its flag
};

// Refers to a field of an optimizer's options and must not outlive it.
struct OptionRef {
  OptionInfo info;
  std::variant<double*, bool*, uint32_t*> field;

  // A switch is 1 or 0.
  double value() const;
  // A number that a count cannot hold becomes 0, which is not a valid count.
  void set(double value) const;
};

// A slot: a number that the server stores for each element between steps. The vector of a slot
// exists only if a group of parameters needs it.
struct SlotInfo {
  const char* name;  // torch::optim's, and a key of checkpoints
  bool needed = true;
};

struct OptimizerNames {
  const char* name;   // in flags and messages
  const char* title;  // in sentences
};

// Whether `value` is in the domain, and the text of an error that describes the domain ("at least
// 0, less than 1").
bool IsIn(OptionDomain domain, double value);
std::string Expected(OptionDomain domain);

namespace option {

inline constexpr OptionInfo kLearningRate = {"learning_rate", OptionDomain::kLearningRate,
                                             "size of a step"};
inline constexpr OptionInfo kMomentum = {"momentum", OptionDomain::kNotNegative,
                                         "share of the last step that is added to this one"};
inline constexpr OptionInfo kDampening = {"dampening", OptionDomain::kFinite,
                                          "share of the gradient that momentum leaves out"};
inline constexpr OptionInfo kNesterov = {"nesterov", OptionDomain::kSwitch, "Nesterov momentum"};
inline constexpr OptionInfo kWeightDecay = {
    "weight_decay", OptionDomain::kNotNegative,
    "pull towards 0: an L2 penalty, or decoupled from the gradient with adamw and lamb"};
inline constexpr OptionInfo kBeta1 = {"beta1", OptionDomain::kBelowOne,
                                      "decay of the mean gradient"};
inline constexpr OptionInfo kBeta2 = {"beta2", OptionDomain::kBelowOne,
                                      "decay of the mean squared gradient"};
inline constexpr OptionInfo kEps = {"eps", OptionDomain::kPositive,
                                    "added to the divisor, so that it is not 0"};
inline constexpr OptionInfo kAmsgrad = {"amsgrad", OptionDomain::kSwitch,
                                        "divide by the largest mean square so far"};
inline constexpr OptionInfo kLrDecay = {"lr_decay", OptionDomain::kNotNegative,
                                        "decay of the learning rate with the steps"};
inline constexpr OptionInfo kInitialAccumulatorValue = {"initial_accumulator_value",
                                                        OptionDomain::kNotNegative,
                                                        "sum of squares before the first step"};
inline constexpr OptionInfo kAlpha = {"alpha", OptionDomain::kUpToOne,
                                      "decay of the mean squared gradient"};
inline constexpr OptionInfo kCentered = {"centered", OptionDomain::kSwitch,
                                         "divide by the standard deviation"};
inline constexpr OptionInfo kKindCrc32 = {"kind_crc32", OptionDomain::kCount,
                                          "checksum of the optimizer's class and other options"};
inline constexpr OptionInfo kMovingRate = {"moving_rate", OptionDomain::kRate,
                                           "share of the way to the workers' mean"};
inline constexpr OptionInfo kLocalSteps = {"local_steps", OptionDomain::kCount,
                                           "steps of a worker between two pushes"};
inline constexpr OptionInfo kOuterMomentum = {
    "outer_momentum", OptionDomain::kBelowOne,
    "share of the server's last step that is added to this one"};
inline constexpr OptionInfo kOuterNesterov = {"outer_nesterov", OptionDomain::kSwitch,
                                              "Nesterov momentum of the server's steps"};

}  // namespace option

// The options that Adam, AdamW and LAMB share, then `others`.
template <typename Options>
std::vector<OptionRef> MomentOptions(Options& o, std::vector<OptionRef> others = {}) {
  others.insert(others.begin(), {{option::kLearningRate, &o.learning_rate},
                                 {option::kBeta1, &o.beta1},
                                 {option::kBeta2, &o.beta2},
                                 {option::kEps, &o.eps},
                                 {option::kWeightDecay, &o.weight_decay}});
  return others;
}

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_OPTIMIZER_OPTION_H_
