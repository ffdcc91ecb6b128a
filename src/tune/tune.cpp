#include "tune/tune.h"

#include <cerrno>

#include "base/file.h"
#include "tune/keep.h"

namespace tutti {
namespace {

constexpr std::size_t kept_bytes_max = 64 * 1024;

}  // namespace

Tune::Tune(std::string folder, int library_version, Measure measure)
    : folder_(std::move(folder)), library_version_(library_version), measure_(std::move(measure)) {}

Machine Tune::machine(const cpu_set_t& cpus, Log& log) {
  if (!measure_) return given_.value_or(Machine{});
  const std::lock_guard lock(mutex_);
  const int cores = CPU_COUNT(&cpus);
  if (!known_ || cores_ != cores) known_ = make(cpus, log);
  cores_ = cores;
  return *known_;
}

Machine Tune::make(const cpu_set_t& cpus, Log& log) const {
  const std::string mine = fingerprint(CPU_COUNT(&cpus), library_version_);
  const std::string path = folder_.empty() ? std::string() : machine_file(folder_, mine);
  if (!path.empty()) {
    auto text = read_file(path, kept_bytes_max, FileKind::regular);
    if (text) {
      auto kept = from_text(*text, mine);
      if (kept) return *kept;
      log.info(LogTopic::tune, "tune", "{}: {}; measured again", path, kept.error().what);
    } else if (text.error().sys_errno != ENOENT) {
      log.info(LogTopic::tune, "tune", "{}", text.error().text());
    }
  }
  const auto measured = measure_(cpus);
  if (!measured) {
    log.info(LogTopic::tune, "tune", "other work uses the cores: not measured, this process uses built-in numbers");
    return {};
  }
  log.info(LogTopic::tune, "tune", "measured: {:.3f} µs from rank to rank, {:.1f} GB/s read and {:.1f} GB/s written",
           measured->hop_us, measured->read.gbps[2], measured->write.gbps[2]);
  if (path.empty()) return *measured;
  if (auto kept = write_atomically(path, to_text(*measured, mine)); !kept)
    log.info(LogTopic::tune, "tune", "not kept: {}", kept.error().text());
  return *measured;
}

std::string cache_folder(const std::string& setting, const char* xdg_cache_home, const char* home) {
  if (!setting.empty()) return setting;
  if (xdg_cache_home != nullptr && *xdg_cache_home == '/') return std::string(xdg_cache_home) + "/tutti";
  if (home != nullptr && *home == '/') return std::string(home) + "/.cache/tutti";
  return {};
}

}  // namespace tutti
