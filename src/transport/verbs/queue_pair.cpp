#include "transport/verbs/queue_pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "base/random.h"

namespace tutti::verbs {
namespace {

constexpr std::uint32_t psn_mask = 0xff'ffff;
/// More is refused.
constexpr std::uint32_t inline_bytes_of_siw = 80;

/// The part of a key that its user chooses, and that must change from one use of a window to the next.
constexpr std::uint32_t consumer_key = 0xff;

std::uint32_t next_key(std::uint32_t key) {
  return (key & ~consumer_key) | ((key + 1) & consumer_key);
}

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::create(const std::shared_ptr<Endpoint>& endpoint, const QueueShape& shape,
                                                     std::uint32_t sink, std::uint32_t index) {
  std::unique_ptr<QueuePair> pair(new QueuePair(endpoint, shape));
  TUTTI_TRY(pair->make(sink, index));
  return pair;
}

std::uint32_t QueuePair::pieces_of(const Port& port) {
  return std::clamp(static_cast<std::uint32_t>(std::max(port.device->attributes.max_sge, 0)), 1u, pieces_max);
}

Result<void> QueuePair::make(std::uint32_t sink, std::uint32_t index) {
  first_id_ = work_id(sink, index << 24);
  TUTTI_TRY(fill_random(std::as_writable_bytes(std::span(&psn_, 1))));
  psn_ &= psn_mask;
  QpInit init{.qp_context = nullptr,
              .send_cq = endpoint_->cq(),
              .recv_cq = endpoint_->cq(),
              .srq = nullptr,
              .cap = {.max_send_wr = shape_.sends,
                      .max_recv_wr = shape_.receives,
                      .max_send_sge = pieces_of(endpoint_->port),
                      .max_recv_sge = 1,
                      .max_inline_data = shape_.inline_bytes},
              .qp_type = QpType::reliable,
              .sq_sig_all = 0};
  const bool with_headers = endpoint_->port.iwarp;
  if (with_headers) init.cap.max_send_wr *= 2;
  qp_ = TUTTI_TRY(create_queues(init));
  inline_bytes_ = std::min(init.cap.max_inline_data, shape_.inline_bytes);
  waiting_.reserve(init.cap.max_send_wr, std::size_t{shape_.sends} * (pieces_max + 1));
  receives_.resize(shape_.receives);
  receives_missing_ = shape_.receives;
  if (with_headers) {
    if (inline_bytes_ < sizeof(WriteHeaders::Header))
      return Error{.code = Code::system, .what = endpoint_->port.text() + " sends nothing inline"};
    headers_.emplace(TUTTI_TRY(RegisteredMemory::make(endpoint_, shape_.receives * sizeof(WriteHeaders::Header),
                                                      access_flag::local_write)),
                     shape_.sends, shape_.receives);
  }
  QpAttributes attributes{.qp_state = QpState::init,
                          .qp_access_flags = static_cast<unsigned>(access_flag::remote_write),
                          .port_num = endpoint_->port.number};
  namespace q = qp_attribute;
  TUTTI_TRY(modify(attributes, q::state | q::pkey_index | q::port | q::access_flags, "initialise a queue pair"));
  return post_receives();
}

/// Some devices refuse as much inline data as they cannot take, instead of saying less.
Result<Qp*> QueuePair::create_queues(QpInit& init) {
  const std::uint32_t wanted = init.cap.max_inline_data;
  for (const std::uint32_t inline_bytes : {wanted, inline_bytes_of_siw, 0u}) {
    if (inline_bytes > wanted) continue;
    init.cap.max_inline_data = inline_bytes;
    Qp* const made = endpoint_->library().ibv_create_qp(endpoint_->pd(), &init);
    if (made != nullptr) return made;
  }
  return endpoint_->port.failed("make a queue pair", errno);
}

QueuePair::~QueuePair() {
  if (qp_ != nullptr) (void)endpoint_->library().ibv_destroy_qp(qp_);
}

Result<void> QueuePair::modify(QpAttributes& attributes, int mask, std::string_view doing) {
  const int code = endpoint_->library().ibv_modify_qp(qp_, &attributes, mask);
  if (code == 0) return {};
  return endpoint_->port.failed(doing, code);
}

Result<void> QueuePair::connect(const QueueAddress& queue, const PortAddress& port) {
  namespace q = qp_attribute;
  const bool routed = port.link_layer != LinkLayer::infiniband;
  QpAttributes attributes{.qp_state = QpState::ready_to_receive,
                          .path_mtu = std::clamp(std::min(port.mtu, endpoint_->port.mtu), 1, 5),
                          .rq_psn = queue.psn & psn_mask,
                          .dest_qp_num = queue.number,
                          .ah_attr = {.grh = {.dgid = port.gid,
                                              .flow_label = 0,
                                              .sgid_index = endpoint_->port.gid_index,
                                              .hop_limit = 64,
                                              .traffic_class = static_cast<std::uint8_t>(shape_.traffic_class)},
                                      .dlid = port.lid,
                                      .is_global = static_cast<std::uint8_t>(routed ? 1 : 0),
                                      .port_num = endpoint_->port.number},
                          .max_dest_rd_atomic = 1,
                          .min_rnr_timer = 12};
  if (auto set =
          modify(attributes,
                 q::state | q::av | q::path_mtu | q::dest_qpn | q::rq_psn | q::max_dest_rd_atomic | q::min_rnr_timer,
                 "connect a queue pair");
      !set)
    return set;
  QpAttributes sending{.qp_state = QpState::ready_to_send,
                       .sq_psn = psn_,
                       .max_rd_atomic = 1,
                       .timeout = static_cast<std::uint8_t>(shape_.timeout),
                       .retry_cnt = static_cast<std::uint8_t>(shape_.retries),
                       .rnr_retry = 7};
  return modify(sending, q::state | q::timeout | q::retry_count | q::rnr_retry | q::sq_psn | q::max_rd_atomic,
                "start sending on a queue pair");
}

void QueuePair::stop() {
  QpAttributes attributes{.qp_state = QpState::error};
  (void)endpoint_->library().ibv_modify_qp(qp_, &attributes, qp_attribute::state);
}

/// With a header of its own, a write asks for the completion of the header: siw sends the memory of a write without
/// copying it if no completion is asked for.
void QueuePair::add(const Write& write) {
  const unsigned signal = count_.add(write.last && !write.is_inline);
  const bool inlines = write.is_inline && !write.memory.empty();
  assert(write.memory.size() <= pieces_max);
  const std::uint32_t immediate = htonl(write.immediate);
  std::uint32_t bytes = 0;
  for (const Sge& piece : write.memory) bytes += piece.length;
  if (!headers_ || bytes > 0) {
    SendWork& work = waiting_.add(last_id(), headers_ ? WorkOpcode::rdma_write : WorkOpcode::rdma_write_with_immediate,
                                  (headers_ ? 0u : signal) | (inlines ? send_flag::inlined : 0u), write.memory);
    work.immediate = immediate;
    work.rdma.remote_addr = write.remote_address;
    work.rdma.rkey = write.rkey;
  }
  if (!headers_) return;
  const Sge header = headers_->put(immediate, bytes);
  waiting_.add(last_id(), WorkOpcode::send, signal | send_flag::inlined, std::span(&header, 1));
}

void QueuePair::add_bind(Window& window, std::uint32_t key, Mr& mr, std::span<std::byte> memory) {
  const unsigned flags = count_.add(false);
  auto& bind = waiting_.add(last_id(), WorkOpcode::bind_window, flags).bind;
  bind.window = &window;
  bind.rkey = key;
  bind.mr = &mr;
  bind.addr = reinterpret_cast<std::uint64_t>(memory.data());
  bind.length = memory.size();
  bind.access = static_cast<unsigned>(access_flag::remote_write);
}

void QueuePair::add_invalidate(std::uint32_t key) {
  const unsigned flags = count_.add(true);
  waiting_.add(last_id(), WorkOpcode::invalidate, flags).immediate = key;
}

Result<bool> QueuePair::post() {
  if (waiting_.empty()) return true;
  if (silent_) return false;
  SendWork* bad = nullptr;
  const int code = endpoint_->port.device->context->ops.post_send(qp_, waiting_.chain(), &bad);
  if (code == 0) {
    waiting_.clear();
    return true;
  }
  // A part was accepted; the rest is posted when completions have made space.
  if (bad != nullptr) waiting_.drop_before(*bad);
  if (std::abs(code) == ENOMEM && count_.added() - count_.completed() > waiting_.requests()) return false;
  return endpoint_->port.failed("post a message", code);
}

Completion QueuePair::used_receive(const Completion& completion) {
  ++receives_missing_;
  silent_ = false;
  if (!headers_) return completion;
  return headers_->read(completion, WorkWord{static_cast<std::uint32_t>(completion.wr_id)}.number());
}

Result<void> QueuePair::post_receives() {
  if (receives_missing_ == 0) return {};
  const std::uint64_t id = first_id_ | std::uint64_t{1} << 31;
  for (std::uint32_t i = 0; i < receives_missing_; ++i) {
    receives_[i] = {
        .wr_id = id, .next = i + 1 < receives_missing_ ? &receives_[i + 1] : nullptr, .sg_list = nullptr, .num_sge = 0};
    if (headers_) headers_->add_buffer(receives_[i]);
  }
  ReceiveWork* bad = nullptr;
  const int code = endpoint_->port.device->context->ops.post_recv(qp_, receives_.data(), &bad);
  if (code != 0) return endpoint_->port.failed("post receives", code);
  receives_missing_ = 0;
  return {};
}

WriteHeaders::WriteHeaders(RegisteredMemory buffers, std::uint32_t sends, std::uint32_t receives)
    : sent_(sends), buffers_(std::move(buffers)) {
  for (std::uint32_t i = 0; i < receives; ++i)
    places_.push_back(
        {.addr = buffers_.address() + i * sizeof(Header), .length = sizeof(Header), .lkey = buffers_.lkey()});
}

Sge WriteHeaders::put(std::uint32_t immediate, std::uint32_t bytes) {
  Header& header = sent_[next_sent_];
  next_sent_ = (next_sent_ + 1) % sent_.size();
  header = {.immediate = immediate, .bytes = htonl(bytes)};
  return {.addr = reinterpret_cast<std::uint64_t>(&header), .length = sizeof header, .lkey = 0};
}

void WriteHeaders::add_buffer(ReceiveWork& receive) {
  receive.wr_id |= next_buffer_;
  receive.sg_list = &places_[next_buffer_];
  receive.num_sge = 1;
  next_buffer_ = (next_buffer_ + 1) % static_cast<std::uint32_t>(places_.size());
}

Completion WriteHeaders::read(Completion completion, std::uint32_t index) const {
  completion.wc_flags = 0;
  if (completion.opcode != DoneOpcode::receive || completion.byte_len != sizeof(Header) || index >= places_.size())
    return completion;
  Header header;
  std::memcpy(&header, buffers_.data() + std::size_t{index} * sizeof(Header), sizeof header);
  completion.immediate = header.immediate;
  completion.byte_len = ntohl(header.bytes);
  completion.wc_flags = with_immediate;
  return completion;
}

std::unique_ptr<MemoryWindow> MemoryWindow::make(std::shared_ptr<Endpoint> endpoint) {
  Window* const window = endpoint->port.device->context->ops.alloc_mw(endpoint->pd(), WindowType::two);
  if (window == nullptr) return nullptr;
  return std::unique_ptr<MemoryWindow>(new MemoryWindow(std::move(endpoint), window));
}

std::uint32_t MemoryWindow::open(QueuePair& queue, Mr& mr, std::span<std::byte> memory) {
  assert(is_closed());
  window_->rkey = key_;  // by its last key the device knows the window
  key_ = next_key(key_);
  queue.add_bind(*window_, key_, mr, memory);
  queue_ = &queue;
  closing_ = false;
  return key_;
}

void MemoryWindow::close() {
  assert(queue_ != nullptr && !closing_);
  queue_->add_invalidate(key_);
  closing_ = true;
  closed_at_ = queue_->added();
}

}  // namespace tutti::verbs
