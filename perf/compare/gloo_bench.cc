// Gloo with the protocol, over TCP on the device COMPARE_DEVICE (lo): it has no shared-memory transport.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <functional>
#include <memory>

#include "protocol.h"

namespace {

std::shared_ptr<gloo::rendezvous::Context> context;
std::function<void()> prepared;  // options are made once per cell, as a training loop would

int supports(Kind kind, size_t) {
  return kind <= BARRIER && kind != REDUCE_SCATTER;
}

void barrier() {
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

void prepare(Kind kind, size_t bytes) {
  const size_t count = bytes / sizeof(float), block = count / static_cast<size_t>(rank_count);
  if (kind == ALL_REDUCE) {
    auto options = std::make_shared<gloo::AllreduceOptions>(context);
    options->setInput(send_buffer, count);
    options->setOutput(recv_buffer, count);
    void (*sum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;
    options->setReduceFunction(sum);
    prepared = [options] { gloo::allreduce(*options); };
  } else if (kind == ALL_GATHER) {
    auto options = std::make_shared<gloo::AllgatherOptions>(context);
    options->setInput(send_buffer, block);
    options->setOutput(recv_buffer, count);
    prepared = [options] { gloo::allgather(*options); };
  } else if (kind == BROADCAST) {
    auto options = std::make_shared<gloo::BroadcastOptions>(context);
    options->setRoot(0);
    options->setOutput(my_rank == 0 ? send_buffer : recv_buffer, count);
    prepared = [options] { gloo::broadcast(*options); };
  } else if (kind == ALLTOALL) {
    auto options = std::make_shared<gloo::AlltoallOptions>(context);
    options->setInput(send_buffer, count);
    options->setOutput(recv_buffer, count);
    prepared = [options] { gloo::alltoall(*options); };
  } else if (kind == REDUCE) {
    auto options = std::make_shared<gloo::ReduceOptions>(context);
    options->setInput(send_buffer, count);
    options->setOutput(recv_buffer, count);
    options->setRoot(0);
    void (*sum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;
    options->setReduceFunction(sum);
    prepared = [options] { gloo::reduce(*options); };
  } else {
    prepared = barrier;
  }
}

void call(Kind, size_t) {
  prepared();
}

}  // namespace

int main() {
  join_board(atoi(setting("COMPARE_RANK", "-1")), atoi(setting("COMPARE_RANKS", "-1")));
  gloo::transport::tcp::attr attributes;
  attributes.iface = setting("COMPARE_DEVICE", "lo");
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(setting("COMPARE_FOLDER", "."));
  context = std::make_shared<gloo::rendezvous::Context>(my_rank, rank_count);
  context->connectFullMesh(store, device);
  const Library library = {supports, nullptr, prepare, call, barrier, 1};
  run(&library);
  barrier();
  fflush(stdout);
  _exit(0);  // otherwise slower peers would see a lost connection
}
