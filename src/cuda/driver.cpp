#include "cuda/driver.h"

#include <fmt/format.h>

#include "base/descriptors.h"

namespace tutti::cuda {
namespace {

constexpr const char* system_library = "libcuda.so.1";
constexpr int version_min = 12000;  // the first version that loads kernels without a context

/// cuGetProcAddress_v2, which exists since CUDA 12.0.
using GetProcAddress = Status(const char* name, void** function, int version, std::uint64_t flags, int* found);

Error none(std::string what) {
  return {.code = Code::cuda, .what = std::move(what)};
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

template <class Member>
bool find(GetProcAddress* lookup, const char* name, int version, Member& member) {
  void* function = nullptr;
  int found = 0;
  if (lookup(name, &function, version, 0, &found) != status::success) function = nullptr;
  member = reinterpret_cast<Member>(function);
  return function != nullptr;
}

Result<Api> functions_of(GetProcAddress* lookup) {
  Api api;
#define DRIVER_FUNCTION(member, name, version, parameters) \
  if (!find(lookup, #name, version, api.member))           \
    return none(fmt::format("the CUDA driver is too old: it has no {} of CUDA {}", #name, version_text(version)));
#define DRIVER_OPTION(member, name, version, parameters) (void)find(lookup, #name, version, api.member);
#include "cuda/driver_functions.inc"
#undef DRIVER_OPTION
#undef DRIVER_FUNCTION
  return api;
}

}  // namespace

bool is_sticky(Status code) {
  switch (code) {
    case status::deinitialized:
    case status::ecc_uncorrectable:
    case status::nvlink_uncorrectable:
    case status::illegal_address:
    case status::launch_timeout:
    case status::context_is_destroyed:
    case status::assert_failed:
    case status::launch_failed: return true;
    default: return code >= status::hardware_stack_error && code < status::launch_failed;
  }
}

Result<std::shared_ptr<const Driver>> Driver::open(Dylib library) {
  auto* const lookup = library.symbol<GetProcAddress>("cuGetProcAddress_v2");
  if (lookup == nullptr)
    return none(fmt::format("the CUDA driver is older than CUDA {}, the oldest version that tutti supports",
                            version_text(version_min)));
  auto api = TUTTI_TRY(functions_of(lookup));
  int version = 0;
  (void)api.driver_version(&version);
  std::shared_ptr<const Driver> driver(new Driver(std::move(library), api, version));
  const HeldStdio held;
  TUTTI_TRY(driver->check(api.init(0), "cuInit"));
  auto count = TUTTI_TRY(driver->devices());
  if (count == 0) return none("the CUDA driver is loaded, but finds no GPU that this process may use");
  return driver;
}

Error Driver::error(Status code, std::string_view function) const {
  const char* name = nullptr;
  const char* words = nullptr;
  if (api.error_name(code, &name) != status::success || name == nullptr) name = "an unknown code";
  if (api.error_string(code, &words) != status::success || words == nullptr) words = "no description";
  std::string what = fmt::format("{}: {} ({}): {}", function, name, code, words);
  if (is_sticky(code)) what += "; the CUDA context is lost: nothing can be run on this GPU by this process any more";
  return {.code = Code::cuda, .what = std::move(what)};
}

Result<void> Driver::check(Status code, std::string_view function) const {
  if (code == status::success) return {};
  return error(code, function);
}

Result<int> Driver::devices() const {
  int count = 0;
  TUTTI_TRY(check(api.device_count(&count), "cuDeviceGetCount"));
  return count;
}

Result<int> Driver::device_attribute(Ordinal device, int attribute) const {
  int value = 0;
  TUTTI_TRY(check(api.device_attribute(&value, attribute, device), "cuDeviceGetAttribute"));
  return value;
}

DeviceUuid Driver::uuid(Ordinal device) const {
  DeviceUuid uuid;
  return api.device_uuid(&uuid, device) == status::success ? uuid : DeviceUuid{};
}

bool Driver::shares_by_mps(Ordinal device) const {
  const auto enabled = device_attribute(device, attribute::mps_enabled);
  return enabled && *enabled != 0;
}

std::string Driver::bus_id(Ordinal device) const {
  const auto domain = device_attribute(device, attribute::pci_domain);
  const auto bus = device_attribute(device, attribute::pci_bus);
  const auto slot = device_attribute(device, attribute::pci_device);
  return domain && bus && slot ? fmt::format("{:04x}:{:02x}:{:02x}.0", *domain, *bus, *slot) : std::string();
}

Result<std::shared_ptr<const Driver>> DriverSlot::load() {
  if (driver_) return driver_;
  if (failure_) return *failure_;
  auto library = Dylib::open({library_.empty() ? system_library : library_.c_str()});
  auto driver = library ? Driver::open(*std::move(library)) : none("no CUDA driver: " + library.error().what);
  if (driver)
    driver_ = *driver;
  else
    failure_ = driver.error();
  return driver;
}

Result<std::shared_ptr<const Driver>> DriverSlot::get() {
  const std::lock_guard lock(mutex_);
  return load();
}

std::shared_ptr<const Driver> DriverSlot::if_loaded() {
  const std::lock_guard lock(mutex_);
  if (driver_) return driver_;
  if (!Dylib::is_loaded(library_.empty() ? system_library : library_.c_str())) return nullptr;
  auto driver = load();
  return driver ? *std::move(driver) : nullptr;
}

}  // namespace tutti::cuda
