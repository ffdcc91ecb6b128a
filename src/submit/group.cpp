#include "submit/group.h"

#include <algorithm>

namespace tutti {

Group& Group::current() {
  thread_local Group group;
  return group;
}

namespace {

/// Calls through the host wait for the GPU, other calls must not wait for it, and no call may overtake another.
Error mixed() {
  return {.code = Code::invalid_usage,
          .what =
              "calls on one communicator in one group must go the same way: some of these are on device memory and go "
              "through the host, others are on host memory or run as kernels; put them into separate groups"};
}

}  // namespace

Submission& Group::submission_for(const std::shared_ptr<Stream>& stream) {
  for (auto& [known, submission] : submissions_)
    if (known == stream) return submission;
  return submissions_.emplace_back(stream, Submission{}).second;
}

Result<Batch*> Group::batch_for(const std::shared_ptr<Communicator>& communicator,
                                const std::shared_ptr<Stream>& stream) {
  if (const auto known = batches_.find(communicator.get()); known != batches_.end()) {
    if (known->second.host_staged != nullptr) return mixed();
    if (known->second.stream != stream)
      return Error{.code = Code::invalid_usage, .what = "calls on one communicator in one group must name one stream"};
    return known->second.batch;
  }
  auto batch = std::make_unique<Batch>(communicator);
  Batch* const made = batch.get();
  submission_for(stream).operations.push_back(std::move(batch));
  batches_[communicator.get()] = {.batch = made, .stream = stream};
  return made;
}

Result<HostStagedBatch*> Group::host_staged_batch_for(const std::shared_ptr<Communicator>& communicator) {
  if (const auto known = batches_.find(communicator.get()); known != batches_.end()) {
    if (known->second.host_staged == nullptr) return mixed();
    return known->second.host_staged;
  }
  auto batch = std::make_unique<HostStagedBatch>(communicator);
  HostStagedBatch* const made = batch.get();
  submission_for(nullptr).operations.push_back(std::move(batch));
  batches_[communicator.get()] = {.host_staged = made};
  return made;
}

void Group::add(std::unique_ptr<Operation> operation, std::function<void()> finisher) {
  auto& submission = submission_for(nullptr);
  submission.operations.push_back(std::move(operation));
  submission.finishers.push_back(std::move(finisher));
}

void Group::refuse(Error error) {
  if (!refused_) refused_ = std::move(error);
}

Result<void> Group::end(Process& process) {
  if (depth_ == 0) return Error{.code = Code::invalid_usage, .what = "tuttiGroupEnd without tuttiGroupStart"};
  if (--depth_ > 0) return {};
  auto submissions = std::exchange(submissions_, {});
  batches_.clear();
  if (auto refused = std::exchange(refused_, std::nullopt)) return *std::move(refused);

  for (auto& [stream, submission] : submissions)
    for (auto& operation : submission.operations) operation->enqueue();
  Submission* mine = nullptr;
  for (auto& [stream, submission] : submissions) {
    if (stream) {
      stream->push(std::move(submission));
    } else {
      mine = &submission;
    }
  }
  return mine == nullptr ? Result<void>() : run_now(process, *mine);
}

}  // namespace tutti
