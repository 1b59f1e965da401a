#include "worker/connection/grpc/local_sockets.h"

#include <grpc/support/sync.h>

#include "common/net/local_tcp.h"

// gRPC takes a mutator in its public interface and exports the function that makes one, but Debian
// does not install the header that says what a mutator is. This is that part of it. The functions
// keep their places from version to version, and new ones are added at the end; gRPC does not call
// those that are null.
struct grpc_socket_mutator_vtable {
  bool (*mutate)(int socket, grpc_socket_mutator* self);  // before it connects
  int (*compare)(grpc_socket_mutator* one, grpc_socket_mutator* other);
  void (*destroy)(grpc_socket_mutator* self);
  void* added[4];
};
struct grpc_socket_mutator {
  const grpc_socket_mutator_vtable* vtable;
  gpr_refcount references;
};
void grpc_socket_mutator_init(grpc_socket_mutator* mutator,
                              const grpc_socket_mutator_vtable* vtable);

namespace sluice {
namespace {

bool Mutate(int socket, grpc_socket_mutator*) {
  SendWithoutPacing(socket);
  return true;
}

// All are alike, so channels that have one may share a connection.
int Compare(grpc_socket_mutator*, grpc_socket_mutator*) { return 0; }

void Destroy(grpc_socket_mutator* mutator) { delete mutator; }

constexpr grpc_socket_mutator_vtable kFunctions = {Mutate, Compare, Destroy, {}};

}  // namespace

void SendWithoutPacing(grpc::ChannelArguments& arguments) {
  auto* const mutator = new grpc_socket_mutator();
  grpc_socket_mutator_init(mutator, &kFunctions);
  arguments.SetSocketMutator(mutator);  // and owns it
}

}  // namespace sluice
