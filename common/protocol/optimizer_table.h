// The table of optimizers: the names, options and slots of each.
//
// Flags, their help, messages, checks, the benchmark's list and the tests' lists are all derived
// from this table. An optimizer is a plain struct that is listed in OptimizerOptions and has:
//   kNames     its name in flags and messages, and its name in sentences
//   fields     its options, with their defaults
//   options()  one entry for each field, in the order of the fields
//   slots()    what the server remembers of each element between steps
// server/optimizers/README.md tells how to add one.

#ifndef SLUICE_COMMON_PROTOCOL_OPTIMIZER_TABLE_H_
#define SLUICE_COMMON_PROTOCOL_OPTIMIZER_TABLE_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "common/protocol/optimizer_option.h"

namespace sluice {

// Stochastic gradient descent. The options of this and of the next four have the names, defaults
// and meaning of torch::optim, where learning_rate is lr. Unlike there, an eps of 0 is refused,
// because it makes NaN of a gradient of 0.
struct SgdOptions {
  static constexpr OptimizerNames kNames = {"sgd", "SGD"};
  double learning_rate = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  // needs momentum above 0 and a dampening of 0

  std::vector<OptionRef> options() {
    return {{option::kLearningRate, &learning_rate},
            {option::kMomentum, &momentum},
            {option::kDampening, &dampening},
            {option::kWeightDecay, &weight_decay},
            {option::kNesterov, &nesterov}};
  }
  std::vector<SlotInfo> slots() const { return {{"momentum_buffer", momentum != 0}}; }
};

struct AdamOptions {
  static constexpr OptimizerNames kNames = {"adam", "Adam"};
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // an L2 penalty: added to the gradient
  bool amsgrad = false;

  std::vector<OptionRef> options() { return MomentOptions(*this, {{option::kAmsgrad, &amsgrad}}); }
  std::vector<SlotInfo> slots() const {
    return {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq", amsgrad}};
  }
};

struct AdamWOptions {
  static constexpr OptimizerNames kNames = {"adamw", "AdamW"};
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  // times the learning rate, of the parameters themselves
  bool amsgrad = false;

  std::vector<OptionRef> options() { return MomentOptions(*this, {{option::kAmsgrad, &amsgrad}}); }
  std::vector<SlotInfo> slots() const {
    return {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq", amsgrad}};
  }
};

struct AdagradOptions {
  static constexpr OptimizerNames kNames = {"adagrad", "Adagrad"};
  double learning_rate = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;

  std::vector<OptionRef> options() {
    return {{option::kLearningRate, &learning_rate},
            {option::kLrDecay, &lr_decay},
            {option::kWeightDecay, &weight_decay},
            {option::kInitialAccumulatorValue, &initial_accumulator_value},
            {option::kEps, &eps}};
  }
  std::vector<SlotInfo> slots() const { return {{"sum"}}; }
};

struct RmsPropOptions {
  static constexpr OptimizerNames kNames = {"rmsprop", "RMSprop"};
  double learning_rate = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;

  std::vector<OptionRef> options() {
    return {{option::kLearningRate, &learning_rate},
            {option::kAlpha, &alpha},
            {option::kEps, &eps},
            {option::kWeightDecay, &weight_decay},
            {option::kMomentum, &momentum},
            {option::kCentered, &centered}};
  }
  std::vector<SlotInfo> slots() const {
    return {{"square_avg"}, {"momentum_buffer", momentum > 0}, {"grad_avg", centered}};
  }
};

// LAMB, which torch::optim lacks, with the weight decay of its paper's experiments.
struct LambOptions {
  static constexpr OptimizerNames kNames = {"lamb", "LAMB"};
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0.01;

  std::vector<OptionRef> options() { return MomentOptions(*this); }
  std::vector<SlotInfo> slots() const { return {{"exp_avg"}, {"exp_avg_sq"}}; }
};

// No optimizer: a step's parameters are its mean gradient, and the workers, which have the model,
// step with optimizers of their own.
struct MeanGradientOptions {
  static constexpr OptimizerNames kNames = {"mean_gradient", "the mean gradient"};

  std::vector<OptionRef> options() { return {}; }
  std::vector<SlotInfo> slots() const { return {}; }
};

// An optimizer of the program that runs the server (program_optimizer.h). Its
// state has no slots that are known here.
struct ProgramOptions {
  static constexpr OptimizerNames kNames = {"program", "the program's optimizer"};
  double learning_rate = 1e-3;
  uint32_t kind_crc32 = 1;  // of its class and its other options, as the programs compute it

  std::vector<OptionRef> options() {
    return {{option::kLearningRate, &learning_rate}, {option::kKindCrc32, &kind_crc32}};
  }
  std::vector<SlotInfo> slots() const { return {}; }
};

// Periodic and elastic averaging. A worker takes `local_steps` steps with an optimizer of its own,
// then pushes its parameters. A step of the server moves its parameters towards the mean of these,
// with a momentum of its own ("outer" in the words of Douillard et al. 2023, DiLoCo).
struct AveragingOptions {
  static constexpr OptimizerNames kNames = {"averaging", "averaging"};
  double moving_rate = 1;  // 1: without momentum, the mean replaces the server's parameters
  double outer_momentum = 0;
  uint32_t local_steps = 1;  // between two pushes
  bool outer_nesterov = false;

  std::vector<OptionRef> options() {
    return {{option::kMovingRate, &moving_rate},
            {option::kLocalSteps, &local_steps},
            {option::kOuterMomentum, &outer_momentum},
            {option::kOuterNesterov, &outer_nesterov}};
  }
  std::vector<SlotInfo> slots() const { return {{"momentum_buffer", outer_momentum != 0}}; }
};

using OptimizerOptions =
    std::variant<SgdOptions, AdamOptions, AdamWOptions, AdagradOptions, RmsPropOptions, LambOptions,
                 MeanGradientOptions, AveragingOptions, ProgramOptions>;

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_OPTIMIZER_TABLE_H_
