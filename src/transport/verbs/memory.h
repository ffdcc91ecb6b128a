// Memory of the library that a device may read, or that the peer may write.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "transport/verbs/endpoint.h"

namespace tutti::verbs {

class RegisteredMemory {
 public:
  /// `access`: access_flag. Errors: system (no memory, or more than the process may lock, with the remedy).
  static Result<RegisteredMemory> make(const std::shared_ptr<Endpoint>& endpoint, std::size_t bytes, int access);

  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  Mr& region() const { return *mr_; }
  std::uint32_t lkey() const { return mr_->lkey; }
  std::uint32_t rkey() const { return mr_->rkey; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_.get()); }

 private:
  static constexpr std::align_val_t page{4096};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, page); }
  };
  struct Deregister {
    std::shared_ptr<Endpoint> endpoint;
    void operator()(Mr* mr) const { (void)endpoint->library().ibv_dereg_mr(mr); }
  };
  std::unique_ptr<std::byte, Free> data_;  // freed after its registration
  std::size_t bytes_ = 0;
  std::unique_ptr<Mr, Deregister> mr_;
};

}  // namespace tutti::verbs
