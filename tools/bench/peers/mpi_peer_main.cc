// mpi_peer_main: a peer of Sluice that mpirun starts. Rank 0 is the server: it receives gradients
// by MPI_Send and MPI_Recv, applies a step of SGD and sends the parameters back. With --allreduce
// there is no server, and each worker applies the step itself. Exit codes: 0 done; 1 failed; 2 bad
// command line.

// Without MPI's old C++ bindings, which need a library of their own.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tools/bench/harness/gradient.h"
#include "tools/bench/harness/participant.h"

namespace sluice::bench {
namespace {

constexpr int kServer = 0;
constexpr int kTag = 0;
constexpr size_t kPieceElements = (size_t{1} << 20) / sizeof(float);

using Floats = absl::Span<float>;

// Calls `visit` with each piece of `vector`, and where the piece begins.
template <typename Visit>
void ForEachPiece(Floats vector, const Visit& visit) {
  for (size_t begin = 0; begin < vector.size(); begin += kPieceElements) {
    visit(vector.subspan(begin, kPieceElements), begin);
  }
}

// By default MPI ends all ranks at an error, so that no call returns one.
void Send(Floats piece, int rank) {
  MPI_Send(piece.data(), static_cast<int>(piece.size()), MPI_FLOAT, rank, kTag, MPI_COMM_WORLD);
}

void Receive(Floats piece, int rank) {
  MPI_Recv(piece.data(), static_cast<int>(piece.size()), MPI_FLOAT, rank, kTag, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

void ApplySgd(absl::Span<const float> sum, uint32_t workers, Floats parameters) {
  const auto rate = static_cast<float>(kLearningRate / workers);
  for (size_t i = 0; i < sum.size(); ++i) parameters[i] -= rate * sum[i];
}

// Receives a piece from every worker, sums it and applies it while it is in the cache.
void ServeRound(uint32_t workers, Floats parameters) {
  std::vector<float> sum(kPieceElements), received(kPieceElements);
  const auto last = static_cast<int>(workers);
  ForEachPiece(parameters, [&](Floats piece, size_t) {
    const Floats total = absl::MakeSpan(sum).first(piece.size());
    const Floats one = absl::MakeSpan(received).first(piece.size());
    Receive(total, 1);
    for (int rank = 2; rank <= last; ++rank) {
      Receive(one, rank);
      std::transform(one.begin(), one.end(), total.begin(), total.begin(), std::plus<float>());
    }
    ApplySgd(total, workers, piece);
  });
  ForEachPiece(parameters, [&](Floats piece, size_t) {
    for (int rank = 1; rank <= last; ++rank) Send(piece, rank);
  });
}

void ExchangeWithServer(Floats gradient, Floats parameters) {
  ForEachPiece(gradient, [](Floats piece, size_t) { Send(piece, kServer); });
  ForEachPiece(parameters, [](Floats piece, size_t) { Receive(piece, kServer); });
}

void ExchangeByAllreduce(Floats gradient, Floats sum, uint32_t workers, Floats parameters) {
  MPI_Allreduce(gradient.data(), sum.data(), static_cast<int>(gradient.size()), MPI_FLOAT, MPI_SUM,
                MPI_COMM_WORLD);
  ApplySgd(sum, workers, parameters);
}

absl::Status RunServer(const Participant& participant) {
  std::vector<float> parameters(participant.elements);
  return AnswerParent("", [&] {
    ServeRound(participant.workers, absl::MakeSpan(parameters));
    return absl::OkStatus();
  });
}

absl::Status RunWorker(const Participant& participant, bool allreduce) {
  std::vector<float> gradient = SyntheticGradient(participant.elements);
  std::vector<float> parameters(participant.elements), sum(allreduce ? participant.elements : 0);
  uint64_t rounds = 0;
  const absl::Status answered = AnswerParent("", [&] {
    if (allreduce) {
      ExchangeByAllreduce(absl::MakeSpan(gradient), absl::MakeSpan(sum), participant.workers,
                          absl::MakeSpan(parameters));
    } else {
      ExchangeWithServer(absl::MakeSpan(gradient), absl::MakeSpan(parameters));
    }
    ++rounds;
    return absl::OkStatus();
  });
  return answered.ok() ? CheckParameters(gradient, rounds, parameters) : answered;
}

absl::Status RunRank(const Participant& participant, bool allreduce) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int expected = static_cast<int>(participant.workers) + (allreduce ? 0 : 1);
  if (ranks != expected) {
    return absl::InvalidArgumentError(absl::StrCat(ranks, " ranks, expected ", expected));
  }
  return !allreduce && rank == kServer ? RunServer(participant) : RunWorker(participant, allreduce);
}

int Main(int argc, char** argv) {
  CLI::App app("A rank that is a peer of Sluice; tools/bench/round starts it.", "mpi_peer_main");
  Participant participant;
  AddParticipantFlags(app, participant);
  bool allreduce = false;
  app.add_flag("--allreduce", allreduce, "no server: workers reduce among themselves");
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  const absl::Status ran = RunRank(participant, allreduce);
  if (!ran.ok()) {
    std::cerr << "mpi_peer_main: " << ran.message() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
