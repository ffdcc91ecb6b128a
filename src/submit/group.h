// Calls between tuttiGroupStart and tuttiGroupEnd, collected per thread and submitted together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "progress/stream.h"
#include "submit/batch.h"
#include "submit/host_staged_batch.h"

namespace tutti {

class InOrder;

class Group {
 public:
  /// The calling thread's group.
  static Group& current();

  /// Whether the calling thread's group is open.
  static bool open() { return depth_ > 0; }
  void start() { ++depth_; }

  /// Adds a call, which goes as its route says; `stream`: its host stream, or null. Errors: invalid_usage (calls on one
  /// communicator that cannot be in one group).
  template <class R>
  Result<void> add(const std::shared_ptr<Communicator>& communicator, const std::shared_ptr<Stream>& stream,
                   const R& request) {
    if (request.route.queued()) {
      auto batch = TUTTI_TRY(host_staged_batch_for(communicator));
      batch->add(request);
      return {};
    }
    if (!request.route.takes_turn()) {
      kernels_for(communicator).add(request);
      return {};
    }
    auto batch = TUTTI_TRY(batch_for(communicator, stream));
    batch->add(request);
    return {};
  }
  void add(std::unique_ptr<Operation> operation, std::function<void()> finisher);

  /// A call inside the group was refused: no call of the group will be started.
  void refuse(Error error);

  /// The outermost end submits everything: first the calls on streams, stream by stream; then it runs the calls without
  /// a stream in this thread. Errors: invalid_usage (no group open); the first refusal; the first failure.
  Result<void> end(Process& process);

 private:
  Result<Batch*> batch_for(const std::shared_ptr<Communicator>& communicator, const std::shared_ptr<Stream>& stream);
  Result<HostStagedBatch*> host_staged_batch_for(const std::shared_ptr<Communicator>& communicator);
  /// Of calls that take no turn among others: a group may have such and others. Those of the kind that came first are
  /// queued first.
  Batch& kernels_for(const std::shared_ptr<Communicator>& communicator);
  Submission& submission_for(const std::shared_ptr<Stream>& stream);
  struct OpenBatch {
    Communicator* communicator;
    Batch* batch = nullptr;
    std::shared_ptr<Stream> stream = nullptr;
    HostStagedBatch* host_staged = nullptr;  ///< set instead of `batch` for calls through the host
    Batch* kernels = nullptr;                ///< beside either
    Operation* first = nullptr;              ///< of those without a stream
    InOrder* in_order = nullptr;             ///< all of those, once there are several
  };
  OpenBatch& open_batch(Communicator& communicator);
  void append(OpenBatch& open, std::unique_ptr<Operation> part);

  // Every call asks for it: this access costs one instruction, where the default model calls a function.
  [[gnu::tls_model("initial-exec")]] static inline thread_local int depth_ = 0;
  std::vector<std::pair<std::shared_ptr<Stream>, Submission>> submissions_;
  std::vector<OpenBatch> batches_;  // one for each communicator, of which a thread has few
  bool has_kernels_ = false;        // calls that take no turn
  std::optional<Error> refused_;
};

}  // namespace tutti
