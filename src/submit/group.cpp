#include "submit/group.h"

#include <algorithm>
#include <tuple>

namespace tutti {

/// The parts of a group that belong to one communicator and go different ways: each is queued before the next begins.
/// Streams hold each other up if two ranks queue the same calls in different orders.
class InOrder final : public Operation {
 public:
  void add(std::unique_ptr<Operation> part) { parts_.push_back(std::move(part)); }

  void enqueue() override {
    for (auto& part : parts_) part->enqueue();
  }
  Result<Progress> advance() override {
    auto progress = parts_[next_]->advance();
    if (!progress || *progress != Progress::done) return progress;
    return ++next_ == parts_.size() ? Progress::done : Progress::moved;
  }
  Communicator* communicator() override { return parts_.front()->communicator(); }
  Result<void> poll_peers() override { return current().poll_peers(); }
  std::string where() const override { return current().where(); }
  Rank waits_for() const override { return current().waits_for(); }
  std::int64_t poll_set(std::vector<PollItem>& items) const override { return current().poll_set(items); }

 private:
  Operation& current() const { return *parts_[std::min(next_, parts_.size() - 1)]; }

  std::vector<std::unique_ptr<Operation>> parts_;
  std::size_t next_ = 0;
};

Group& Group::current() {
  thread_local Group group;
  return group;
}

namespace {

/// Kernels of several communicators that wait for peers are launched in the same order on all ranks, as they may share
/// a stream: in that of what identifies rank 0 of each.
void order(Submission& submission) {
  std::ranges::stable_sort(submission.operations, {}, [](const std::unique_ptr<Operation>& one) {
    using Key = std::tuple<std::uint64_t, SegmentName, Rank>;
    const Communicator* const communicator = one->communicator();
    if (communicator == nullptr) return Key();
    const Peer& first = communicator->members().peers.front();
    return Key(first.token, first.area_name, communicator->rank());
  });
}

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

Group::OpenBatch& Group::open_batch(Communicator& communicator) {
  const auto known = std::ranges::find(batches_, &communicator, &OpenBatch::communicator);
  return known != batches_.end() ? *known : batches_.emplace_back(OpenBatch{.communicator = &communicator});
}

Result<Batch*> Group::batch_for(const std::shared_ptr<Communicator>& communicator,
                                const std::shared_ptr<Stream>& stream) {
  OpenBatch& open = open_batch(*communicator);
  if (open.host_staged != nullptr) return mixed();
  if (open.batch != nullptr) {
    if (open.stream != stream)
      return Error{.code = Code::invalid_usage, .what = "calls on one communicator in one group must name one stream"};
    return open.batch;
  }
  auto batch = std::make_unique<Batch>(communicator);
  open.batch = batch.get();
  open.stream = stream;
  if (stream)
    submission_for(stream).operations.push_back(std::move(batch));
  else
    append(open, std::move(batch));
  return open.batch;
}

/// To the calls without a stream, behind the communicator's other ones.
void Group::append(OpenBatch& open, std::unique_ptr<Operation> part) {
  auto& operations = submission_for(nullptr).operations;
  if (open.in_order != nullptr) return open.in_order->add(std::move(part));
  if (open.first == nullptr) {
    open.first = part.get();
    operations.push_back(std::move(part));
    return;
  }
  auto in_order = std::make_unique<InOrder>();
  open.in_order = in_order.get();
  const auto at = std::ranges::find(operations, open.first, &std::unique_ptr<Operation>::get);
  std::unique_ptr<Operation> first = std::exchange(*at, std::move(in_order));
  open.in_order->add(std::move(first));
  open.in_order->add(std::move(part));
}

Batch& Group::kernels_for(const std::shared_ptr<Communicator>& communicator) {
  OpenBatch& open = open_batch(*communicator);
  if (open.kernels == nullptr) {
    auto batch = std::make_unique<Batch>(communicator);
    open.kernels = batch.get();
    has_kernels_ = true;
    append(open, std::move(batch));
  }
  return *open.kernels;
}

Result<HostStagedBatch*> Group::host_staged_batch_for(const std::shared_ptr<Communicator>& communicator) {
  OpenBatch& open = open_batch(*communicator);
  if (open.batch != nullptr) return mixed();
  if (open.host_staged != nullptr) return open.host_staged;
  auto batch = std::make_unique<HostStagedBatch>(communicator);
  open.host_staged = batch.get();
  append(open, std::move(batch));
  return open.host_staged;
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
  const bool has_kernels = std::exchange(has_kernels_, false);
  if (auto refused = std::exchange(refused_, std::nullopt)) return *std::move(refused);

  for (auto& [stream, submission] : submissions)
    if (has_kernels && !stream) order(submission);
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
