// Which model is trained or evaluated, and on which data. It needs no header of LibTorch.

#ifndef SLUICE_WORKER_TORCH_TRAINING_MODEL_CHOICE_H_
#define SLUICE_WORKER_TORCH_TRAINING_MODEL_CHOICE_H_

#include <memory>
#include <string>

#include "worker/data/dataset.h"
#include "worker/data/tables/table_data.h"

namespace sluice {

struct ModelChoice {
  std::string model = "lenet";            // a name that MakeModel() or MakeTableModel() knows
  SampleForm form;                        // of a classifier's samples
  std::shared_ptr<const Dataset> test;    // that a classifier is tested on
  std::shared_ptr<const TableData> data;  // of a model with tables; null: a classifier
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_MODEL_CHOICE_H_
