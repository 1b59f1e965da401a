// What sluice_train trains on.

#ifndef SLUICE_WORKER_PROGRAM_TRAINING_DATA_H_
#define SLUICE_WORKER_PROGRAM_TRAINING_DATA_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "worker/data/training_samples.h"
#include "worker/program/model_flags.h"
#include "worker/torch/training/model_choice.h"
#include "worker/training/trainer.h"

namespace sluice {

struct TrainingData {
  TrainingSamples samples;
  ModelChoice choice;  // with the data of the test
};

// Reads the data of the model. INVALID_ARGUMENT if one worker cannot train on them with these
// options; other errors are those of LoadDataset() and LoadTableData(). Call it before the worker
// joins: others would wait for one that cannot train.
absl::StatusOr<TrainingData> LoadTrainingData(const ModelFlags& flags,
                                              const TrainerOptions& options);

// The training samples of an epoch; 0 if this process does not have the data.
uint64_t CountTrainingSamples(const ModelFlags& flags);

}  // namespace sluice

#endif  // SLUICE_WORKER_PROGRAM_TRAINING_DATA_H_
