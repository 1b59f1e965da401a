// A model server behind sluice.h: a ModuleHost whose sessions are functions of the program.

#ifndef SLUICE_WORKER_C_SERVED_MODULE_H_
#define SLUICE_WORKER_C_SERVED_MODULE_H_

#include <memory>
#include <string>
#include <utility>

#include "worker/c/sluice.h"
#include "worker/connection/module/module_host.h"

struct sluice_module_host {
  explicit sluice_module_host(std::unique_ptr<sluice::ModuleHost> started)
      : host(std::move(started)), address(host->address().ToString()) {}

  const std::unique_ptr<sluice::ModuleHost> host;
  const std::string address;
};

namespace sluice {

// Makes sessions by these functions, which may be called as long as the factory, or what it has
// made, lives.
ModuleSessionFactory SessionsOf(const sluice_module_functions& functions);

}  // namespace sluice

#endif  // SLUICE_WORKER_C_SERVED_MODULE_H_
