#include "common/wire/optimizer.h"

#include <utility>

#include "common/base/error.h"

namespace sluice {
namespace {

// ---- Values to messages ----

template <typename Options, typename Message>
void PutMoments(const Options& from, Message* to) {
  to->set_learning_rate(from.learning_rate);
  to->set_beta1(from.beta1);
  to->set_beta2(from.beta2);
  to->set_eps(from.eps);
  to->set_weight_decay(from.weight_decay);
}

// One overload for each kind, which std::visit chooses from.
struct Put {
  v1::OptimizerConfig* message;

  void operator()(const SgdOptions& from) const {
    v1::SgdOptions* const to = message->mutable_sgd();
    to->set_learning_rate(from.learning_rate);
    to->set_momentum(from.momentum);
    to->set_dampening(from.dampening);
    to->set_weight_decay(from.weight_decay);
    to->set_nesterov(from.nesterov);
  }
  void operator()(const AveragingOptions& from) const {
    message->mutable_averaging()->set_moving_rate(from.moving_rate);
    message->mutable_averaging()->set_local_steps(from.local_steps);
  }
  void operator()(const AdamOptions& from) const {
    PutMoments(from, message->mutable_adam());
    message->mutable_adam()->set_amsgrad(from.amsgrad);
  }
  void operator()(const AdamWOptions& from) const {
    PutMoments(from, message->mutable_adamw());
    message->mutable_adamw()->set_amsgrad(from.amsgrad);
  }
  void operator()(const AdagradOptions& from) const {
    v1::AdagradOptions* const to = message->mutable_adagrad();
    to->set_learning_rate(from.learning_rate);
    to->set_lr_decay(from.lr_decay);
    to->set_weight_decay(from.weight_decay);
    to->set_initial_accumulator_value(from.initial_accumulator_value);
    to->set_eps(from.eps);
  }
  void operator()(const RmsPropOptions& from) const {
    v1::RmsPropOptions* const to = message->mutable_rmsprop();
    to->set_learning_rate(from.learning_rate);
    to->set_alpha(from.alpha);
    to->set_eps(from.eps);
    to->set_weight_decay(from.weight_decay);
    to->set_momentum(from.momentum);
    to->set_centered(from.centered);
  }
  void operator()(const LambOptions& from) const { PutMoments(from, message->mutable_lamb()); }
};

// ---- Messages to values ----

SgdOptions Take(const v1::SgdOptions& from) {
  return {from.learning_rate(), from.momentum(), from.dampening(), from.weight_decay(),
          from.nesterov()};
}

AveragingOptions Take(const v1::AveragingOptions& from) {
  return {from.moving_rate(), from.local_steps()};
}

AdamOptions Take(const v1::AdamOptions& from) {
  return {from.learning_rate(), from.beta1(),        from.beta2(),
          from.eps(),           from.weight_decay(), from.amsgrad()};
}

AdamWOptions Take(const v1::AdamWOptions& from) {
  return {from.learning_rate(), from.beta1(),        from.beta2(),
          from.eps(),           from.weight_decay(), from.amsgrad()};
}

AdagradOptions Take(const v1::AdagradOptions& from) {
  return {from.learning_rate(), from.lr_decay(), from.weight_decay(),
          from.initial_accumulator_value(), from.eps()};
}

RmsPropOptions Take(const v1::RmsPropOptions& from) {
  return {from.learning_rate(), from.alpha(),    from.eps(),
          from.weight_decay(),  from.momentum(), from.centered()};
}

LambOptions Take(const v1::LambOptions& from) {
  return {from.learning_rate(), from.beta1(), from.beta2(), from.eps(), from.weight_decay()};
}

absl::StatusOr<OptimizerOptions> TakeOptions(const v1::OptimizerConfig& message) {
  switch (message.optimizer_case()) {
    case v1::OptimizerConfig::kSgd:
      return Take(message.sgd());
    case v1::OptimizerConfig::kAveraging:
      return Take(message.averaging());
    case v1::OptimizerConfig::kAdam:
      return Take(message.adam());
    case v1::OptimizerConfig::kAdamw:
      return Take(message.adamw());
    case v1::OptimizerConfig::kAdagrad:
      return Take(message.adagrad());
    case v1::OptimizerConfig::kRmsprop:
      return Take(message.rmsprop());
    case v1::OptimizerConfig::kLamb:
      return Take(message.lamb());
    case v1::OptimizerConfig::OPTIMIZER_NOT_SET:
      break;
  }
  return MakeError(Reason::kBadOptimizer,
                   "no optimizer that this server knows; it knows sgd, adam, adamw, adagrad, "
                   "rmsprop, lamb and averaging");
}

}  // namespace

v1::OptimizerConfig ToProto(const OptimizerConfig& config) {
  v1::OptimizerConfig message;
  std::visit(Put{&message}, config.options);
  for (const OptimizerGroup& from : config.groups) {
    v1::OptimizerGroup* const to = message.add_groups();
    to->mutable_parameters()->Add(from.parameters.begin(), from.parameters.end());
    std::visit(Put{to->mutable_options()}, from.options);
  }
  return message;
}

absl::StatusOr<OptimizerConfig> FromProto(const v1::OptimizerConfig& message) {
  auto options = TakeOptions(message);
  if (!options.ok()) return options.status();
  OptimizerConfig config = {*std::move(options)};
  for (const v1::OptimizerGroup& from : message.groups()) {
    auto own = TakeOptions(from.options());
    if (!own.ok()) return own.status();
    if (from.options().groups_size() > 0) {
      return MakeError(Reason::kBadOptimizer,
                       "a group of the optimizer has groups of its own, expected none");
    }
    config.groups.push_back(
        {{from.parameters().begin(), from.parameters().end()}, *std::move(own)});
  }
  const absl::Status valid = Validate(config);
  if (!valid.ok()) return valid;
  return config;
}

}  // namespace sluice
