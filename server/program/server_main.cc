// sluice_server: rank 0 of a launch by mpirun, or a server on its own.
//
// Exit codes: 0 the job is over, or the server was drained; 1 it could not start, or not go back to
// a checkpoint; 2 bad command line; 3 every worker was lost; 4 the counters of pushes do not
// balance, which is a bug; 5 the last checkpoint could not be saved; 6 the journal could not be
// synced, or a row in --table-dir could not be read; 7 training diverged, and --on-divergence says
// that the job ends then; 8 every worker was lost, and gradients that were not finite were refused.

#include "server/program/server_program.h"

int main(int argc, char** argv) { return sluice::RunServerProgram(argc, argv); }
