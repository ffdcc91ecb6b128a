#include "gpu/gpu_messages.h"

#include <algorithm>

#include "call/self_messages.h"
#include "gpu/gpu_context.h"

namespace tutti {

Result<Progress> GpuMessages::advance() {
  const std::vector<cuda::Stream> streams = this->streams();
  const std::vector<device::Message> messages = to_peers();
  const auto copies = TUTTI_TRY(to_self());
  GpuContext& context = *gpu_context(communicator_);
  const cuda::MessagesJob job{.streams = streams, .messages = messages, .copies = copies};
  TUTTI_TRY(context.launch_group->launch_messages(job));
  if (context.launch_group->has_captured())
    for (const PeerRequest& request : requests_) context.paths.note_captured(request);
  return Progress::done;
}

std::vector<cuda::Stream> GpuMessages::streams() const {
  std::vector<cuda::Stream> all;
  for (const PeerRequest& request : requests_) {
    auto* const stream = static_cast<cuda::Stream>(request.stream);
    if (std::ranges::find(all, stream) == all.end()) all.push_back(stream);
  }
  return all;
}

std::vector<device::Message> GpuMessages::to_peers() const {
  std::vector<device::Message> messages;
  for (const PeerRequest& request : requests_)
    if (request.peer != communicator_.rank())
      messages.push_back({.data = request.data,
                          .bytes = request.bytes,
                          .peer = static_cast<std::uint16_t>(request.peer),
                          .send = static_cast<std::uint8_t>(request.send ? 1 : 0),
                          .type = static_cast<std::uint8_t>(request.type)});
  std::ranges::stable_sort(messages, {}, &device::Message::queue);
  return messages;
}

Result<std::vector<cuda::MessagesJob::Copy>> GpuMessages::to_self() const {
  std::vector<const PeerRequest*> sends, receives;
  for (const PeerRequest& request : requests_)
    if (request.peer == communicator_.rank()) (request.send ? sends : receives).push_back(&request);
  TUTTI_TRY(check_self_messages(sends, receives, communicator_.rank()));
  std::vector<cuda::MessagesJob::Copy> copies;
  for (std::size_t k = 0; k < sends.size(); ++k)
    if (sends[k]->data != receives[k]->data && sends[k]->bytes > 0)
      copies.push_back({.to = receives[k]->data, .from = sends[k]->data, .bytes = sends[k]->bytes});
  return copies;
}

}  // namespace tutti
