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
  /// False: the driver cannot say. Errors: cuda (sticky errors only).
  Result<bool> told(Status status, std::string_view function) const;

  // ---- Work on a stream; the context must be current. Errors: cuda ----

  Result<void> copy(void* to, const void* from, std::size_t bytes, Stream stream) const;
  Result<void> clear(void* at, std::size_t bytes, Stream stream) const;
  /// Waits for the work that the stream holds.
  Result<void> synchronize(Stream stream) const;
  /// The event is when the work that the stream holds now has ended.
  Result<void> record(Event event, Stream stream) const;
  /// Makes later work of the stream wait for the event.
  Result<void> follow(Stream stream, Event event) const;

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

/// An object of the driver, which the function `destroy` ends: at once, or when it is Quiet. Moving exchanges two.
template <auto destroy, class T, bool when_quiet = false>
class Owned {
 public:
  Owned() = default;
  Owned(SharedGpu gpu, T object) : gpu_(std::move(gpu)), object_(object) {}
  Owned(Owned&& other) noexcept { *this = std::move(other); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
    if (object_ == T{}) return;
    if constexpr (when_quiet)
      gpu_->quiet().give_back([gpu = gpu_, object = object_] { (void)end(*gpu, object); });
    else
      (void)end(*gpu_, object_);
  }
  T get() const { return object_; }

 protected:
  void end_now() {
    if (object_ != T{} && end(*gpu_, object_)) object_ = {};
  }

 private:
  /// False: the context is lost.
  static bool end(const Gpu& gpu, T object) {
    const auto current = Current::enter(gpu);
    if (current) (void)(gpu.api().*destroy)(object);
    return static_cast<bool>(current);
  }

  SharedGpu gpu_;
  T object_ = {};
};

/// Memory of a GPU. Freed when it is Quiet.
class DeviceMemory : public Owned<&Api::memory_free, Address, true> {
 public:
  using Owned::Owned;
  /// The context must be current. Errors: cuda.
  static Result<DeviceMemory> allocate(const SharedGpu& gpu, std::size_t bytes);

  std::byte* data() const { return reinterpret_cast<std::byte*>(get()); }  // NOLINT: an address of the GPU's
  std::size_t bytes() const { return bytes_; }

  /// Frees it now, and waits for kernels as cuMemFree does: where the program asked for it.
  void free() { end_now(); }

 private:
  std::size_t bytes_ = 0;
};

/// Zeroed host memory that running kernels may read and write. Freed when it is Quiet.
class PinnedMemory : public Owned<&Api::host_free, std::byte*, true> {
 public:
  using Owned::Owned;
  /// The context must be current. Errors: cuda.
  static Result<PinnedMemory> allocate(const SharedGpu& gpu, std::size_t bytes);

  std::byte* host() const { return get(); }
  std::size_t bytes() const { return bytes_; }
  std::byte* device() const { return reinterpret_cast<std::byte*>(device_); }  // NOLINT: an address of the GPU's

 private:
  Address device_ = 0;
  std::size_t bytes_ = 0;
};

/// Pins host memory, which it does not own, so that GPUs can copy from and to it asynchronously. To end while it is
/// Quiet, as it waits for kernels otherwise.
struct Registration : Owned<&Api::host_unregister, std::byte*> {
  /// The context must be current. Errors: cuda.
  static Result<Registration> make(const SharedGpu& gpu, std::byte* at, std::size_t bytes);
};

/// A stream that does not wait for the legacy default stream.
struct OwnStream : Owned<&Api::stream_destroy, Stream> {
  static Result<OwnStream> create(const SharedGpu& gpu);
};

struct OwnEvent : Owned<&Api::event_destroy, Event> {
  static Result<OwnEvent> create(const SharedGpu& gpu);
};

}  // namespace tutti::cuda
