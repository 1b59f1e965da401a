// What the examples with tables share: the same model trains with its tables on servers, or in one
// process with tensors in their place.
//
//   mpirun -n 3 PROGRAM [--epochs=N] [--batches=N]    rank 0 serves, two workers train
//   PROGRAM --single [--epochs=N] [--batches=N]       one process, with torch::nn::Embedding
//
// Both see the same samples: a batch of the job is cut into a slice for each worker, and what a
// sample is follows from its number alone. So in sync both have nearly the same loss.

#ifndef SLUICE_WORKER_TORCH_EXAMPLES_TABLE_TRAINING_H_
#define SLUICE_WORKER_TORCH_EXAMPLES_TABLE_TRAINING_H_

#include <torch/torch.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "worker/job.h"
#include "worker/torch/remote_optimizer.h"
#include "worker/torch/run_worker.h"
#include "worker/torch/tables/dense_twin.h"
#include "worker/torch/tables/remote_embedding.h"

namespace sluice::examples {

// Where a model's embeddings are: on servers.
struct RemoteTables {
  using Embedding = RemoteEmbedding;
  using Bag = RemoteEmbeddingBag;

  static Embedding MakeEmbedding(const std::string&, int64_t,
                                 const RemoteEmbeddingOptions& options) {
    return Embedding(options);
  }
  static Bag MakeBag(const std::string&, int64_t, const RemoteEmbeddingOptions& options) {
    return Bag(options, RemoteEmbeddingBagImpl::Mode::kSum);
  }
};

// In this process, with the same first values.
struct LocalTables {
  using Embedding = torch::nn::Embedding;
  using Bag = torch::nn::EmbeddingBag;

  static torch::Tensor Weight(const std::string& name, int64_t rows,
                              const RemoteEmbeddingOptions& options) {
    return FirstRows(RemoteEmbeddingImpl(options).SpecOf(name), rows);
  }
  static Embedding MakeEmbedding(const std::string& name, int64_t rows,
                                 const RemoteEmbeddingOptions& options) {
    Embedding embedding(
        torch::nn::EmbeddingOptions(rows, options.width)._weight(Weight(name, rows, options)));
    return embedding;
  }
  static Bag MakeBag(const std::string& name, int64_t rows, const RemoteEmbeddingOptions& options) {
    Bag bag(torch::nn::EmbeddingBagOptions(rows, options.width)
                .mode(torch::kSum)
                ._weight(Weight(name, rows, options)));
    return bag;
  }
};

// Which samples a process takes of each batch.
struct Slice {
  int64_t index = 0;
  int64_t workers = 1;
};

struct Length {
  int epochs = 8;
  int64_t batches = 0;  // of an epoch
};

// An example has: `Model<Tables>`, a module; `Batch MakeBatch(first, count)`, of samples by number;
// `Loss(model, batch)`; `Tell(model, epoch)`, which prints how good the model is; kBatch, the
// samples of a batch of the job; kBatches, those of an epoch; kRate, Adagrad's learning rate.
template <typename Example, typename Model, typename Optimizer, typename Step>
void TrainEpochs(Example& example, Model& model, Optimizer& optimizer, Slice slice, Length length,
                 bool speaks, const Step& step) {
  const int64_t count = Example::kBatch / slice.workers;
  for (int epoch = 1; epoch <= length.epochs; ++epoch) {
    for (int64_t batch = 0; batch < length.batches; ++batch) {
      const int64_t first = ((epoch - 1) * length.batches + batch) * Example::kBatch;
      optimizer.zero_grad();
      const torch::Tensor loss =
          example.Loss(model, example.MakeBatch(first + slice.index * count, count));
      loss.backward();
      step(count, loss.template item<float>());
    }
    if (!speaks) continue;
    const torch::NoGradGuard no_gradients;
    model.eval();
    example.Tell(model, epoch);
    model.train();
  }
}

template <typename Example>
void TrainWith(const Job& job, Length length) {
  torch::manual_seed(1);
  Example example;
  typename Example::template Model<RemoteTables> model;
  RemoteOptimizer optimizer(job, model, torch::optim::AdagradOptions(Example::kRate));
  const Slice slice = {optimizer.index(), std::max<int64_t>(optimizer.workers(), 1)};
  TrainEpochs(
      example, model, optimizer, slice, length, slice.index == 0,
      [&](int64_t count, float loss) { optimizer.step(static_cast<uint32_t>(count), loss); });
}

template <typename Example>
void TrainAlone(Length length) {
  torch::manual_seed(1);
  Example example;
  typename Example::template Model<LocalTables> model;
  torch::optim::Adagrad optimizer(model.parameters(), torch::optim::AdagradOptions(Example::kRate));
  TrainEpochs(example, model, optimizer, {}, length, true,
              [&](int64_t, float) { optimizer.step(); });
}

// The main() of an example.
template <typename Example>
int Main(int argc, char** argv) {
  torch::set_num_threads(1);
  Length length;
  length.batches = Example::kBatches;
  bool single = false;
  for (int i = 1; i < argc; ++i) {
    std::sscanf(argv[i], "--epochs=%d", &length.epochs);
    std::sscanf(argv[i], "--batches=%" SCNd64, &length.batches);
    single = single || std::strcmp(argv[i], "--single") == 0;
  }
  if (single) {
    TrainAlone<Example>(length);
    return 0;
  }
  auto job = Job::Start(&argc, &argv);
  if (job.is_server()) return job.Serve();
  return RunWorker(argv[0], [&] { TrainWith<Example>(job, length); });
}

}  // namespace sluice::examples

#endif  // SLUICE_WORKER_TORCH_EXAMPLES_TABLE_TRAINING_H_
