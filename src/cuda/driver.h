// The CUDA driver as a table of functions. tutti never links with it: it is loaded when a GPU is first needed, and
// tests replace it by a fake.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/dylib.h"
#include "base/error.h"
#include "cuda/driver_types.h"

namespace tutti::cuda {

/// The members are listed in driver_functions.inc. All are set except optional ones that the driver lacks.
struct Api {
  // NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define DRIVER_FUNCTION(member, name, version, parameters) Status(*member) parameters = nullptr;
#define DRIVER_OPTION DRIVER_FUNCTION
#include "cuda/driver_functions.inc"
#undef DRIVER_OPTION
#undef DRIVER_FUNCTION
};

/// Thread-safe.
class Driver {
 public:
  /// Initialises the driver in `library`, which must have cuGetProcAddress and at least one GPU.
  /// Errors: cuda (a driver older than CUDA 12.0, a driver that does not work, no GPU).
  static Result<std::shared_ptr<const Driver>> open(Dylib library);

  const Api api;
  const int version;  ///< 12040: CUDA 12.4

  /// Success, or an Error (Code::cuda) with CUDA's name and description of the code. If the code is sticky (is_sticky),
  /// the error says that the context is lost. `function` is CUDA's name of the function called.
  Result<void> check(Status status, std::string_view function) const;
  Error error(Status status, std::string_view function) const;

  Result<int> devices() const;
  Result<int> device_attribute(Ordinal device, int attribute) const;
  /// All zero: the driver does not say.
  DeviceUuid uuid(Ordinal device) const;
  /// Whether the kernels of several processes run on it at the same time.
  bool shares_by_mps(Ordinal device) const;
  /// "0000:81:00.0"; empty: the driver does not say.
  std::string bus_id(Ordinal device) const;

 private:
  Driver(Dylib library, const Api& functions, int driver_version)
      : api(functions), version(driver_version), library_(std::move(library)) {}

  Dylib library_;
};

/// Whether a context in which a call returned `status` can run nothing any more, so that the process must end.
bool is_sticky(Status status);

/// The driver of a process, loaded once, or the error of loading it.
class DriverSlot {
 public:
  /// `library`: a path in place of libcuda.so.1, or empty.
  explicit DriverSlot(std::string library) : library_(std::move(library)) {}

  /// Loads the driver on the first call. Errors: as Driver::open, and cuda if there is no library. Later calls return
  /// the same error.
  Result<std::shared_ptr<const Driver>> get();

  /// As get, but null if no code in this process has loaded CUDA so far: then no pointer can be to GPU memory. Null on
  /// errors, too.
  std::shared_ptr<const Driver> if_loaded();

 private:
  Result<std::shared_ptr<const Driver>> load();

  const std::string library_;
  std::mutex mutex_;
  std::shared_ptr<const Driver> driver_;
  std::optional<Error> failure_;
};

}  // namespace tutti::cuda
