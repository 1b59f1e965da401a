// Joins the embeddings of a model to the worker's client: what they pull, and what they push.

#ifndef SLUICE_WORKER_TORCH_CLIENT_ROWS_H_
#define SLUICE_WORKER_TORCH_CLIENT_ROWS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/client/parameter_client.h"
#include "worker/torch/tables/remote_embedding.h"
#include "worker/torch/tables/row_puller.h"

namespace sluice {

// Rows that a client pulls: the worker's, and when training has ended the observer's. Only the
// thread that trains uses it; `await` is called before each use of the client, and ends what
// another thread does with it. Both are used until Close().
class ClientRows final : public RowPuller, public std::enable_shared_from_this<ClientRows> {
 public:
  ClientRows(ParameterClient& client, std::function<void()> await)
      : client_(&client), await_(std::move(await)) {}

  std::unique_ptr<PendingRows> Start(uint32_t table, const std::vector<RowId>& ids) override;

  // From now on this client pulls, also what the one before was asked for and was not read.
  void Use(ParameterClient& client) { client_ = &client; }

  // The client goes: `why` is a sentence for those who still pull. Rows that are on their way may
  // be given up after that, but not read.
  void Close(std::string why) {
    client_ = nullptr;
    closed_ = std::move(why);
  }

 private:
  class Pull;

  ParameterClient& client() const;  // throws RemoteError after Close()

  ParameterClient* client_;
  std::string closed_;
  const std::function<void()> await_;
};

// The gradients of what was looked up, in the order of the layout's tables.
RowGradients GradientsOf(const std::vector<NamedEmbedding>& embeddings);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_CLIENT_ROWS_H_
