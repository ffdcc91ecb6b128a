// Owners of driver objects: the current context, memory, streams and events.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/error.h"
#include "cuda/driver.h"
#include "cuda/quiet.h"

namespace tutti::cuda {

/// A GPU that this process uses. Holds the GPU's primary context, which the CUDA runtime uses too.
class Gpu {
 public:
  /// `quiet`: of the process. Errors: invalid_argument (no such GPU), cuda.
  static Result<std::shared_ptr<const Gpu>> open(std::shared_ptr<const Driver> driver, Ordinal ordinal,
                                                 std::shared_ptr<Quiet> quiet = std::make_shared<Quiet>());
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Driver& driver() const { return *driver_; }
  const Api& api() const { return driver_->api; }
  Ordinal ordinal() const { return ordinal_; }
  Context context() const { return context_; }
  int multiprocessors() const { return multiprocessors_; }
  Quiet& quiet() const { return *quiet_; }
  Result<void> check(Status status, std::string_view function) const { return driver_->check(status, function); }

 private:
  Gpu(std::shared_ptr<const Driver> driver, Ordinal ordinal, Context context, std::shared_ptr<Quiet> quiet)
      : driver_(std::move(driver)), quiet_(std::move(quiet)), ordinal_(ordinal), context_(context) {}

  std::shared_ptr<const Driver> driver_;
  std::shared_ptr<Quiet> quiet_;
  Ordinal ordinal_;
  Context context_;
  int multiprocessors_ = 0;
};
using SharedGpu = std::shared_ptr<const Gpu>;

/// Makes a GPU's context current in the calling thread until the end of the scope. Also lets the thread allocate memory
/// and load kernels while any thread captures a stream.
class Current {
 public:
  static Result<Current> enter(const Gpu& gpu);
  Current(Current&& other) noexcept : gpu_(std::exchange(other.gpu_, nullptr)), mode_(other.mode_) {}
  Current& operator=(Current&&) = delete;
  ~Current();

 private:
  Current(const Gpu& gpu, int mode) : gpu_(&gpu), mode_(mode) {}
  const Gpu* gpu_;
  int mode_;  // the thread's capture mode before
};

/// Memory of a GPU. Freed when it is Quiet.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// The context must be current. Errors: cuda.
  static Result<DeviceMemory> allocate(const SharedGpu& gpu, std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  std::byte* data() const { return reinterpret_cast<std::byte*>(at_); }  // NOLINT: an address of the GPU's
  Address address() const { return at_; }
  std::size_t bytes() const { return bytes_; }

  /// Frees it now, and waits for kernels as cuMemFree does: where the program asked for it.
  void free();

 private:
  SharedGpu gpu_;
  Address at_ = 0;
  std::size_t bytes_ = 0;
};

/// Zeroed host memory that running kernels may read and write. Freed when it is Quiet.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  /// The context must be current. Errors: cuda.
  static Result<PinnedMemory> allocate(const SharedGpu& gpu, std::size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  ~PinnedMemory();

  std::byte* host() const { return host_; }
  std::size_t bytes() const { return bytes_; }
  std::byte* device() const { return reinterpret_cast<std::byte*>(device_); }  // NOLINT: an address of the GPU's

 private:
  SharedGpu gpu_;
  std::byte* host_ = nullptr;
  Address device_ = 0;
  std::size_t bytes_ = 0;
};

/// Pins host memory, which it does not own, so that GPUs can copy from and to it asynchronously. To end while it is
/// Quiet, as it waits for kernels otherwise.
class Registration {
 public:
  Registration() = default;
  /// The context must be current. Errors: cuda.
  static Result<Registration> make(const SharedGpu& gpu, std::byte* at, std::size_t bytes);
  Registration(Registration&& other) noexcept { *this = std::move(other); }
  Registration& operator=(Registration&& other) noexcept;
  ~Registration();

 private:
  SharedGpu gpu_;
  std::byte* at_ = nullptr;
};

/// A stream that does not wait for the legacy default stream.
class OwnStream {
 public:
  OwnStream() = default;
  static Result<OwnStream> create(const SharedGpu& gpu);
  OwnStream(OwnStream&& other) noexcept { *this = std::move(other); }
  OwnStream& operator=(OwnStream&& other) noexcept;
  ~OwnStream();
  Stream get() const { return stream_; }

 private:
  SharedGpu gpu_;
  Stream stream_ = nullptr;
};

class OwnEvent {
 public:
  OwnEvent() = default;
  static Result<OwnEvent> create(const SharedGpu& gpu);
  OwnEvent(OwnEvent&& other) noexcept { *this = std::move(other); }
  OwnEvent& operator=(OwnEvent&& other) noexcept;
  ~OwnEvent();
  Event get() const { return event_; }

 private:
  SharedGpu gpu_;
  Event event_ = nullptr;
};

}  // namespace tutti::cuda
