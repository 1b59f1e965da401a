// The optimizer that a program gives its server through the C interface.

#ifndef SLUICE_WORKER_C_SERVER_OPTIMIZER_H_
#define SLUICE_WORKER_C_SERVER_OPTIMIZER_H_

#include "common/protocol/program_optimizer.h"
#include "worker/c/sluice.h"

namespace sluice {

// Makes optimizers by these functions, which may be called as long as the factory, or what it has
// made, lives.
ProgramOptimizerFactory FactoryOf(const sluice_server_optimizer& functions);

}  // namespace sluice

#endif  // SLUICE_WORKER_C_SERVER_OPTIMIZER_H_
