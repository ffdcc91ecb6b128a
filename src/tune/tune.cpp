#include "tune/tune.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/file.h"

namespace tutti {
namespace {

constexpr std::size_t kept_bytes_max = 64 * 1024;
constexpr std::int64_t try_again_s = 3600;
constexpr int distances_max = 4;       // of cores for which numbers are kept
constexpr double same_distance = 1.6;  // least ratio of two hops that are not the same distance

double ratio(double one, double other) {
  return std::max(one, other) / std::min(one, other);
}

}  // namespace

Tune::Tune(std::string folder, int library_version, Measure measure)
    : folder_(std::move(folder)), library_version_(library_version), measure_(std::move(measure)) {}

Machine Tune::machine(const cpu_set_t& cpus, Log& log) {
  if (!measure_.machine) return given_;
  const std::lock_guard lock(mutex_);
  const int cores = CPU_COUNT(&cpus);
  if (!known_ || cores_ != cores) known_ = make(cpus, log);
  cores_ = cores;
  return known_->machine;
}

Tune::Known Tune::make(const cpu_set_t& cpus, Log& log) const {
  const std::string mine = fingerprint(CPU_COUNT(&cpus), library_version_);
  const auto hop_us = folder_.empty() ? std::nullopt : measure_.hop_us(cpus);
  std::string replaced;  // file of the nearest distance, or of none
  double least = std::numeric_limits<double>::infinity();
  for (int nth = 0; nth < distances_max && !folder_.empty(); ++nth) {
    const std::string path = machine_file(folder_, mine, nth);
    const auto known = kept(path, mine, log);
    const double apart = !known ? 0 : hop_us ? ratio(known->machine.hop_us, *hop_us) : 1;
    if (known && apart < same_distance) {
      if (!known->contradicted.empty()) return measure_now(cpus, path, known, log);
      return {.machine = known->machine, .path = path, .measured_s = known->measured_s};
    }
    if (apart < least) replaced = path;
    least = std::min(apart, least);
  }
  return measure_now(cpus, replaced, std::nullopt, log);
}

Tune::Known Tune::measure_now(const cpu_set_t& cpus, const std::string& path,
                              const std::optional<MachineRecord>& contradicted, Log& log) const {
  const std::string mine = fingerprint(CPU_COUNT(&cpus), library_version_);
  if (tried_lately(mine, log)) return {.machine = contradicted ? contradicted->machine : Machine{}};
  const auto measured = measure_.machine(cpus);
  if (!measured) note_try(mine, log);
  if (contradicted)
    log.info(LogTopic::tune, "tune", "{}: contradicted {}; {}", path, contradicted->contradicted,
             measured ? "measured again" : "other work uses the cores: not measured again yet");
  if (!measured) {
    if (contradicted) return {.machine = contradicted->machine};
    log.info(LogTopic::tune, "tune", "other work uses the cores: not measured, this process uses built-in numbers");
    return {};
  }
  log.info(LogTopic::tune, "tune", "measured: {:.3f} µs from rank to rank, {:.1f} GB/s read and {:.1f} GB/s written",
           measured->machine.hop_us, measured->machine.read.gbps[2], measured->machine.write.gbps[2]);
  if (path.empty()) return {.machine = measured->machine};
  if (!measured->quiet) {
    log.info(LogTopic::tune, "tune", "beside other work: this process uses the numbers, and they are not kept");
    return {.machine = measured->machine};
  }
  const std::int64_t now_s = measure_.now_s();
  const std::string text = to_text(measured->machine, mine, now_s, contradicted.has_value());
  if (auto written = write_atomically(path, text); !written) {
    log.info(LogTopic::tune, "tune", "not kept: {}", written.error().text());
    return {.machine = measured->machine};
  }
  // With as many digits as the next process reads: choices are kept by these numbers.
  const auto rounded = from_text(text, mine);
  return {.machine = rounded ? rounded->machine : measured->machine, .path = path, .measured_s = now_s};
}

/// Whether other work kept this from being measured within the last hour, as a file says.
bool Tune::tried_lately(const std::string& mine, Log& log) const {
  if (folder_.empty()) return false;
  const auto text = read_file(tried_file(folder_, mine), kept_bytes_max);
  if (!text) return false;
  const std::int64_t passed_s = measure_.now_s() - tried_in(*text, mine).value_or(0);
  if (passed_s < 0 || passed_s >= try_again_s) return false;
  log.info(LogTopic::tune, "tune", "other work used the cores {} min ago: not measured before an hour has passed",
           passed_s / 60);
  return true;
}

void Tune::note_try(const std::string& mine, Log& log) const {
  if (folder_.empty()) return;
  if (auto written = write_atomically(tried_file(folder_, mine), tried_text(mine, measure_.now_s())); !written)
    log.info(LogTopic::tune, "tune", "not noted: {}", written.error().text());
}

/// Another process may have measured meanwhile, or marked the file: what is there must be what this process uses.
void Tune::contradict(const Machine& machine, const std::string& seen, Log& log) {
  const std::lock_guard lock(mutex_);
  if (!known_ || known_->path.empty() || known_->machine != machine) return;
  auto text = read_file(known_->path, kept_bytes_max);
  if (!text) return;
  const auto there = from_text(*text, fingerprint(cores_, library_version_));
  if (!there || there->measured_s != known_->measured_s || !there->contradicted.empty()) return;
  const std::int64_t now_s = measure_.now_s();
  if (!may_be_contradicted(*there, now_s)) {
    log.info(LogTopic::tune, "tune", "calls contradict numbers that were measured {}, which stay: {}",
             there->again ? "again this week" : "within the last hour", seen);
    return;
  }
  auto marked = write_atomically(known_->path, with_contradiction(*text, now_s, seen));
  log.info(LogTopic::tune, "tune", "calls contradict the numbers kept in {}; {}: {}", known_->path,
           marked ? "the next start measures again" : marked.error().text(), seen);
}

std::optional<MachineRecord> Tune::kept(const std::string& path, const std::string& mine, Log& log) const {
  auto text = read_file(path, kept_bytes_max);
  if (!text) {
    if (text.error().sys_errno != ENOENT) log.info(LogTopic::tune, "tune", "{}", text.error().text());
    return std::nullopt;
  }
  auto numbers = from_text(*text, mine);
  if (numbers) return *std::move(numbers);
  log.info(LogTopic::tune, "tune", "{}: {}; measured again", path, numbers.error().what);
  return std::nullopt;
}

std::string cache_folder(const std::string& setting, const char* xdg_cache_home, const char* home) {
  if (!setting.empty()) return setting;
  if (xdg_cache_home != nullptr && *xdg_cache_home == '/') return std::string(xdg_cache_home) + "/tutti";
  if (home != nullptr && *home == '/') return std::string(home) + "/.cache/tutti";
  return {};
}

}  // namespace tutti
